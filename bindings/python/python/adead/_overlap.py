"""Batches through a device, several under way at once, and items made ahead in a thread: docs/overlap.md."""

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
    """A bounded queue that either side may end."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._changed = threading.Condition()
        self._items: deque[tuple[_T] | BaseException] = deque()
        self._ended = False

    def wait_for_room(self) -> bool:
        """Waits until there is room for another item; False when none is wanted any more."""
        with self._changed:
            self._changed.wait_for(lambda: self._ended or len(self._items) < self._most)
            return not self._ended

    def push(self, item: tuple[_T] | BaseException) -> None:
        with self._changed:
            self._items.append(item)
            self._changed.notify_all()

    def pop(self) -> tuple[_T] | BaseException | None:
        """The next item; None when it ended and none is left."""
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
    """Takes items while there is room for them, until the first exception or until nobody wants more."""
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
    """What another thread makes of an iterable; `wake` gets that thread out of what it may wait for."""

    def __init__(self, iterable: Iterable[_T], ahead: int, wake: Callable[[], None] | None = None) -> None:
        self._queue: _Queue[_T] = _Queue(ahead)
        thread = threading.Thread(target=_fill, args=(self._queue, iterable), name="adead-ahead", daemon=True)
        thread.start()
        # The thread does not have this object: when nobody else has it, the thread is stopped.
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
            # The exception has this frame, which must not have the exception.
            del item

    def close(self) -> None:
        """Stops the producer and waits for its thread: an item that is just being made is still made."""
        self._stop()

    def __enter__(self) -> "_Ahead[_T]":
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()


class DataLoader(_Ahead[_T]):
    """An iterator over what an iterable gives in a thread of its own, at most ``ahead`` items before who takes them, counting
    the one that is being made.

    An exception of the iterable comes behind the items before it and ends both. ``close``, the end of a ``with`` block and
    being collected stop the thread.
    """

    def __init__(self, iterable: Iterable[_T], ahead: int = 2) -> None:
        if ahead < 1:
            raise InvalidArgumentError(f"a loader must be at least 1 item ahead, not {ahead}")
        super().__init__(iterable, ahead)


# Formats of the buffer protocol by what core calls them; longs have 8 bytes on some machines.
_DTYPES = {"f": "f32", "e": "f16", "i": "i32", "I": "u32", "q": "i64"}
_SIZES = {"f32": 4, "f16": 2, "bf16": 2, "i32": 4, "u32": 4, "i64": 8, "bool": 1}


def _described(batch: object) -> "tuple[Tensor | memoryview | bytes, str, tuple[int, ...]]":
    """A batch as something to upload, its dtype and its shape."""
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
        # What can be converted is, and what can't is refused with the reason.
        return _described(Tensor(view))
    return view, _DTYPES[letter], view.shape or ()


class _Lane:
    """A stream and the buffers of the one batch that is under way on it."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.stream: Stream = context.stream()
        self.buffers: list[Buffer] = []

    def fit(self, place: int, dtype: str, shape: tuple[int, ...]) -> BufferView:
        """Its buffer of that number as such an array: the one that is there if it has that size, else a new one."""
        size = math.prod(shape) * _SIZES[dtype]
        if place == len(self.buffers):
            self.buffers.append(self.context.buffer(nbytes=size))
        elif self.buffers[place].nbytes != size:
            self.buffers[place] = self.context.buffer(nbytes=size)
        return self.buffers[place].view(dtype, shape)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]


class Stage:
    """What ``overlap``'s function is given for a batch: the stream to enqueue work on, the batch on the device, buffers."""

    def __init__(self, lane: _Lane, index: int, batch: BufferView) -> None:
        self._lane = lane
        self._used = 1
        self._index = index
        self._input = batch

    @property
    def index(self) -> int:
        """Of which batch: the first one is 0."""
        return self._index

    @property
    def stream(self) -> Stream:
        """Where to enqueue work."""
        return self._lane.stream

    @property
    def input(self) -> BufferView:
        """The batch on the device, with its dtype and shape; ``input.buffer`` is what a kernel takes."""
        return self._input

    def buffer(self, shape: int | tuple[int, ...], dtype: str = "f32") -> BufferView:
        """A buffer for results and intermediate values, as an array. The n-th call for a batch gives what the n-th call gave
        for an earlier one, with what it had, if that has the same size; else a new one, zeroed."""
        shape = (shape,) if isinstance(shape, int) else shape
        if dtype not in _SIZES:
            raise InvalidArgumentError(f"there is no dtype '{dtype}'")
        if any(n < 0 for n in shape):
            raise InvalidArgumentError(f"a shape has no dimension of {min(shape)}")
        view = self._lane.fit(self._used, dtype, shape)
        self._used += 1
        return view


class _Started:
    """A batch under way."""

    def __init__(self, lane: _Lane, download: Download | None, result: "Buffer | BufferView | None") -> None:
        self.lane = lane
        self._download = download
        self._kind = None if result is None else (result.dtype, result.shape)

    def finish(self) -> Tensor | None:
        """Waits for it; the lane is free then."""
        # What only the device can find is told here.
        self.lane.stream.synchronize()
        if self._download is None or self._kind is None:
            return None
        return self._download.read_tensor(*self._kind)


def _start_all(
    batches: Iterable[object],
    fn: "Callable[[Stage], Buffer | BufferView | None]",
    lanes: "SimpleQueue[_Lane | None]",
) -> Iterator[_Started]:
    """Starts batches while there are lanes for them."""
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
    """Takes batches through a device, at most ``depth`` at once, each on a stream of its own: it is uploaded, ``fn`` enqueues
    work on it, and what ``fn`` returns is brought to the host as a tensor. 1 is sequential, 2 double buffering, 3 triple
    buffering.

    A batch is an array, a tensor or numbers. The results are those of a loop that does one batch after the other, whatever the
    depth: work of a batch begins when the work of the batch before is done, so ``fn`` may use buffers that all batches share.
    Results come in order. An exception comes in its batch's place and ends the generator; then nothing more is started.

    ``batches`` and ``fn`` run in a thread of their own, a batch only when one of the ``depth`` lanes is free: its result was
    taken. Uploads and downloads release the GIL. Closing the generator waits for what is under way, and for ``batches``
    if it is just being asked. On the CPU stages run one after the other. ``context`` None is the default one.
    """
    if not 1 <= depth <= MAX_DEPTH:
        raise InvalidArgumentError(f"overlap: the depth is {depth}; it must be from 1 to {MAX_DEPTH}")
    context = default_context() if context is None else context
    lanes: SimpleQueue[_Lane | None] = SimpleQueue()
    for _ in range(depth):
        lanes.put(_Lane(context))
    return _results(_Ahead(_start_all(batches, fn, lanes), depth, lambda: lanes.put(None)), lanes)
