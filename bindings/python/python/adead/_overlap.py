"""Batches through a device, several in flight at once, and items that a thread makes ahead.
docs/overlap.md is the guide."""

import math
import threading
import weakref
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from queue import SimpleQueue
from typing import TYPE_CHECKING, Generic, TypeVar, overload

from ._adead import Buffer, BufferView, Context, Download, Event, InvalidArgumentError, Stream, Tensor, default_context

if TYPE_CHECKING:
    from typing_extensions import Buffer as _ArrayLike

__all__ = ["DataLoader", "Stage", "overlap"]

MAX_DEPTH = 64

_T = TypeVar("_T")


class _Queue(Generic[_T]):
    """A bounded queue that either side can end."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._changed = threading.Condition()
        self._items: deque[tuple[_T] | BaseException] = deque()
        self._ended = False

    def wait_for_room(self) -> bool:
        """Waits until there is room for another item. Returns False if the consumer wants no more
        items."""
        with self._changed:
            self._changed.wait_for(lambda: self._ended or len(self._items) < self._most)
            return not self._ended

    def push(self, item: tuple[_T] | BaseException) -> None:
        with self._changed:
            self._items.append(item)
            self._changed.notify_all()

    def pop(self) -> tuple[_T] | BaseException | None:
        """Returns the next item; None if the queue has ended and is empty."""
        with self._changed:
            self._changed.wait_for(lambda: self._ended or bool(self._items))
            item = self._items.popleft() if self._items else None
            self._changed.notify_all()
            return item

    def end(self, forget: bool = False) -> None:
        with self._changed:
            self._ended = True
            if forget:
                self._items.clear()
            self._changed.notify_all()


def _fill(queue: _Queue[_T], iterable: Iterable[_T]) -> None:
    """Puts items of the iterable into the queue, until an exception or until the consumer closes the queue."""
    try:
        items = iter(iterable)
        while queue.wait_for_room():
            try:
                item = next(items)
            except StopIteration:
                break
            queue.push((item,))
            del item
    except BaseException as error:
        queue.push(error)
    finally:
        queue.end()


def _stop(queue: _Queue[_T], thread: threading.Thread, wake: Callable[[], None] | None) -> None:
    queue.end(forget=True)
    if wake is not None:
        wake()
    if thread is not threading.current_thread():
        thread.join()
    queue.end(forget=True)


class _Ahead(Iterator[_T]):
    """The items of an iterable that another thread consumes; ``wake`` ends that thread's waits."""

    def __init__(self, iterable: Iterable[_T], ahead: int, wake: Callable[[], None] | None = None) -> None:
        self._queue: _Queue[_T] = _Queue(ahead)
        thread = threading.Thread(target=_fill, args=(self._queue, iterable), name="adead-ahead", daemon=True)
        thread.start()
        # The thread holds no reference to this object. So it stops when the last reference goes.
        self._stop = weakref.finalize(self, _stop, self._queue, thread, wake)

    def __iter__(self) -> "_Ahead[_T]":
        return self

    def __next__(self) -> _T:
        item = self._queue.pop()
        if isinstance(item, tuple):
            return item[0]
        self.close()
        if item is None:
            raise StopIteration
        try:
            raise item
        finally:
            # The exception refers to this frame, so the frame must not refer to the exception.
            del item

    def close(self) -> None:
        """Stops the producer and waits for its thread, which finishes the item that it is
        making."""
        self._stop()

    def __enter__(self) -> "_Ahead[_T]":
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()


class DataLoader(_Ahead[_T]):
    """Iterates over an iterable in a separate thread, at most ``ahead`` items before the consumer, including the one
    that is being made.

    An exception of the iterable is raised after the items before it, and ends both. ``close``, the
    end of a ``with`` block and garbage collection stop the thread.
    """

    def __init__(self, iterable: Iterable[_T], ahead: int = 2) -> None:
        if ahead < 1:
            raise InvalidArgumentError(f"a loader must be at least 1 item ahead, not {ahead}")
        super().__init__(iterable, ahead)


# The core's names for the buffer protocol's formats. The size of longs, ``l``, depends on the machine.
_DTYPES = {"f": "f32", "e": "f16", "i": "i32", "I": "u32", "q": "i64"}
_SIZES = {"f32": 4, "f16": 2, "bf16": 2, "i32": 4, "u32": 4, "i64": 8, "bool": 1, "u8": 1, "f64": 8}


def _described(batch: object) -> "tuple[Tensor | memoryview | bytes, str, tuple[int, ...]]":
    """Returns the data of a batch to upload, its dtype and its shape."""
    if isinstance(batch, Tensor):
        # The buffer protocol has no format for bf16.
        return batch.tobytes() if batch.dtype == "bf16" else batch, batch.dtype, batch.shape
    try:
        view = memoryview(batch)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    except TypeError:
        return _described(Tensor(batch))  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    letter = view.format.lstrip("@=<")
    if letter == "l":
        letter = "q" if view.itemsize == 8 else "i"
    if letter not in _DTYPES or not view.c_contiguous:
        # Tensor converts what it can, and refuses the rest with the reason.
        return _described(Tensor(view))
    return view, _DTYPES[letter], view.shape or ()


class _Lane:
    """A stream and the buffers of the one batch in flight on it."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.stream: Stream = context.stream()
        self.buffers: list[Buffer] = []

    def fit(self, place: int, dtype: str, shape: tuple[int, ...]) -> BufferView:
        """Returns the lane's buffer number ``place`` as such an array. It reuses the old buffer if
        the size is the same."""
        size = math.prod(shape) * _SIZES[dtype]
        if place == len(self.buffers):
            self.buffers.append(self.context.buffer(nbytes=size))
        elif self.buffers[place].nbytes != size:
            self.buffers[place] = self.context.buffer(nbytes=size)
        return self.buffers[place].view(dtype, shape)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]


class Stage:
    """The context of a batch's work in ``overlap``: the stream to enqueue work on, the batch on the
    device, and buffers."""

    def __init__(self, lane: _Lane, index: int, batch: BufferView) -> None:
        self._lane = lane
        self._used = 1
        self._index = index
        self._input = batch

    @property
    def index(self) -> int:
        """The index of the batch; the first one is 0."""
        return self._index

    @property
    def stream(self) -> Stream:
        """The stream for the batch's work."""
        return self._lane.stream

    @property
    def input(self) -> BufferView:
        """The batch on the device, with its dtype and shape. Pass ``input.buffer`` to a kernel."""
        return self._input

    def buffer(self, shape: int | tuple[int, ...], dtype: str = "f32") -> BufferView:
        """Returns a buffer for results and intermediate values, as an array. The n-th call for a
        batch reuses the buffer of an earlier batch's n-th call, with its old bytes, if the size is
        the same. Otherwise it returns a new buffer of zeros."""
        shape = (shape,) if isinstance(shape, int) else shape
        if dtype not in _SIZES:
            raise InvalidArgumentError(f"there is no dtype '{dtype}'")
        if any(n < 0 for n in shape):
            raise InvalidArgumentError(f"a dimension can't be {min(shape)}")
        view = self._lane.fit(self._used, dtype, shape)
        self._used += 1
        return view


class _Started:
    """A batch in flight."""

    def __init__(self, lane: _Lane, download: Download | None, result: "Buffer | BufferView | None") -> None:
        self.lane = lane
        self._download = download
        self._kind = None if result is None else (result.dtype, result.shape)

    def finish(self) -> Tensor | None:
        """Waits for the batch; then its lane is free."""
        # This raises errors that only the device can find.
        self.lane.stream.synchronize()
        if self._download is None or self._kind is None:
            return None
        return self._download.read_tensor(*self._kind)


def _start_all(
    batches: Iterable[object],
    fn: "Callable[[Stage], Buffer | BufferView | None]",
    lanes: "SimpleQueue[_Lane | None]",
) -> Iterator[_Started]:
    """Starts batches while there are free lanes."""
    before: Event | None = None
    items = iter(batches)
    index = 0
    while (lane := lanes.get()) is not None:
        try:
            batch = next(items)
        except StopIteration:
            return
        data, dtype, shape = _described(batch)
        view = lane.fit(0, dtype, shape)
        lane.stream._begin(view.buffer, data, before)  # pyright: ignore[reportPrivateUsage]
        del batch, data
        result = fn(Stage(lane, index, view))
        offset, buffer = (result.offset, result.buffer) if isinstance(result, BufferView) else (0, result)
        size = 0 if result is None else math.prod(result.shape) * _SIZES[result.dtype]
        own = any(buffer is one for one in lane.buffers)
        before, download = lane.stream._bring(buffer, offset, size, own)  # pyright: ignore[reportPrivateUsage]
        yield _Started(lane, download, result)
        index += 1


def _results(started: _Ahead[_Started], lanes: "SimpleQueue[_Lane | None]") -> Generator[Tensor | None, None, None]:
    with started:
        for batch in started:
            result = batch.finish()
            lanes.put(batch.lane)
            del batch
            yield result


@overload
def overlap(
    batches: "Iterable[_ArrayLike | object]",
    fn: Callable[[Stage], Buffer | BufferView],
    depth: int = 3,
    *,
    context: Context | None = None,
) -> Generator[Tensor, None, None]: ...
@overload
def overlap(
    batches: "Iterable[_ArrayLike | object]",
    fn: Callable[[Stage], None],
    depth: int = 3,
    *,
    context: Context | None = None,
) -> Generator[None, None, None]: ...
def overlap(
    batches: "Iterable[_ArrayLike | object]",
    fn: "Callable[[Stage], Buffer | BufferView | None]",
    depth: int = 3,
    *,
    context: Context | None = None,
) -> Generator[Tensor | None, None, None]:
    """Processes batches on a device, at most ``depth`` at once, each on its own stream. A batch is
    uploaded, ``fn`` enqueues work on it, and the array that ``fn`` returns is downloaded as a
    tensor. Depth 1 is sequential, 2 double buffering, 3 triple buffering.

    A batch is an array, a tensor or numbers. At every depth the results equal those of a loop that processes one batch
    after the other. A batch's work begins when the work of the previous batch is done, so ``fn`` may use buffers that
    all batches share. Results come in order. An exception is raised in its batch's place and ends the generator; then
    no other batch starts.

    ``batches`` and ``fn`` run in a separate thread. A batch is requested only when one of the ``depth`` lanes is free,
    which means that the result of its last batch was taken. Uploads and downloads release the GIL. Closing the
    generator waits for the batches in flight, and for ``batches`` if it is making one. On the CPU the stages run one
    after the other. ``context`` None is the default context.
    """
    if not 1 <= depth <= MAX_DEPTH:
        raise InvalidArgumentError(f"overlap: the depth is {depth}; it must be from 1 to {MAX_DEPTH}")
    context = default_context() if context is None else context
    lanes: SimpleQueue[_Lane | None] = SimpleQueue()
    for _ in range(depth):
        lanes.put(_Lane(context))
    return _results(_Ahead(_start_all(batches, fn, lanes), depth, lambda: lanes.put(None)), lanes)
