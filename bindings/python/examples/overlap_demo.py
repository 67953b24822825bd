"""Processes batches on a device in six ways, checks every result, and prints the speedup of each
way over one batch after the other. docs/overlap.md says when to use each.

    python overlap_demo.py [--tiny] [DEVICE]: the best device unless one is named
"""

import sys
import time
from collections.abc import Callable, Iterator

import adead

class Work:
    """The batches and their work: repeated products with one matrix."""

    def __init__(self, context: adead.Context, count: int, rows: int, width: int, steps: int) -> None:
        self.context, self.steps, self.shape = context, steps, (rows, width)
        row = [(i * 31 % 101) / 101 - 0.5 for i in range(width)]
        first = adead.Tensor(row * rows, shape=self.shape)
        self.batches = [first * (n + 1) for n in range(count)]
        # The entries are so small that products of products stay in range.
        small = [((i * 37 % 103) / 51 - 1) / width for i in range(width * width)]
        self.matrix = context.buffer(adead.Tensor(small, shape=(width, width)))

    def enqueue(
        self, stream: adead.Stream, x: adead.Buffer | adead.BufferView, between: list[adead.BufferView]
    ) -> adead.BufferView:
        """Multiplies back and forth between two buffers. Returns the one with the last product."""
        for step in range(self.steps):
            stream.run("matmul", [x, self.matrix], between[step % 2])
            x = between[step % 2]
        return between[(self.steps - 1) % 2]

    def stage(self, stage: adead.Stage) -> adead.BufferView:
        between = [stage.buffer(self.shape), stage.buffer(self.shape)]
        return self.enqueue(stage.stream, stage.input, between)

    def by_hand(self, streams: int) -> Iterator[adead.Tensor]:
        """Loops over streams; a batch waits until the one before it on its stream is done. One
        stream is sequential; several run concurrently, in no order."""
        lanes = [self.context.stream() for _ in range(streams)]
        size = 4 * self.shape[0] * self.shape[1]
        buffers = [[self.context.buffer(nbytes=size).view(shape=self.shape) for _ in range(3)] for _ in lanes]
        under_way: list[adead.Download] = []
        for n in range(len(self.batches) + streams):
            lane, (x, *between) = lanes[n % streams], buffers[n % streams]
            if n >= streams:
                lane.synchronize()  # raises errors that only the device can find
                yield under_way.pop(0).read_tensor("f32", self.shape)
            if n < len(self.batches):
                lane.upload(x.buffer, self.batches[n])
                under_way.append(lane.download(self.enqueue(lane, x, between).buffer))

    def buffered(self, depth: int) -> Iterator[adead.Tensor]:
        """Keeps `depth` batches in flight."""
        return adead.overlap(self.batches, self.stage, depth, context=self.context)

    def loaded(self) -> Iterator[adead.Tensor]:
        """A loader makes batches, at most four ahead, and three are in flight."""
        return adead.overlap(adead.DataLoader(self.batches, 4), self.stage, 3, context=self.context)

    def training(self) -> Iterator[adead.Tensor]:
        """Changes a state on the device with every batch, while a loader makes the next batch and
        it is uploaded. The one result is the sum of all products."""
        state = self.context.buffer(adead.Tensor.zeros(self.shape))

        def step(stage: adead.Stage) -> None:
            y, total = self.stage(stage), stage.buffer(self.shape)
            stage.stream.run("add", [state, y], total)
            stage.stream.copy(total.buffer, state)

        for _ in adead.overlap(adead.DataLoader(self.batches, 2), step, 2, context=self.context):
            pass
        yield state.read()


def main() -> int:
    words = sys.argv[1:]
    tiny = "--tiny" in words
    named = [word for word in words if word != "--tiny"]
    context = adead.Context(named[0] if named else "auto")
    # A context that chooses devices has its buffers on the GPU.
    place = context.buffer(size=1).device
    device = next(device for device in context.devices if device.id == place)
    large = device.kind in ("discrete", "virtual") and not tiny
    count = 24 if large else 6
    work = Work(context, count, *((16384, 512, 3) if large else (64, 64, 2)))
    print(f"{count} batches of {work.batches[0].nbytes} bytes on {device.name} ({device.id})")

    expected = list(work.by_hand(1))
    total = adead.Tensor.zeros(work.shape)
    for result in expected:
        total = total + result
    patterns: list[tuple[str, Callable[[], Iterator[adead.Tensor]], list[adead.Tensor]]] = [
        ("sequential", lambda: work.by_hand(1), expected),
        ("double buffering", lambda: work.buffered(2), expected),
        ("triple buffering", lambda: work.buffered(3), expected),
        ("training with prefetch", work.training, [total]),
        ("data loader", work.loaded, expected),
        ("four streams", lambda: work.by_hand(4), expected),
    ]
    sequential = 0.0
    for name, pattern, right in patterns:
        found = [result.tobytes() for result in pattern()]
        if found != [result.tobytes() for result in right]:
            print(f"overlap_demo: {name}: wrong results", file=sys.stderr)
            return 1
        del found
        begin = time.perf_counter()
        for _ in pattern():
            pass
        rate = count / (time.perf_counter() - begin)
        sequential = sequential or rate
        print(f"{name:<24} {rate:>9.1f} batches/s, {rate / sequential:.2f} of sequential")
    print("checked all results: exact")
    return 0


if __name__ == "__main__":
    sys.exit(main())
