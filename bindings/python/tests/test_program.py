"""Programs, layouts, allocators."""

import numpy
import pytest

import adead


def test_programs(programs):
    program = adead.Program.load(programs / "mlp.adead")
    assert program.format == "adead" and len(program) > 0 and not program.is_agpu and program.notes == []
    slots = {slot.name: slot for slot in program.slots}
    assert slots["x"].direction == "in" and slots["x"].required and slots["x"].typed and "x" in repr(slots["x"])
    inputs = {
        name: adead.Tensor(numpy.linspace(-1, 1, slot.nbytes // 4, dtype=numpy.float32), shape=slot.shape)
        for name, slot in slots.items()
        if slot.required
    }
    outcome = program.run(inputs)
    assert set(outcome.outputs) == {name for name, slot in slots.items() if slot.direction != "in"}
    assert outcome.instructions == len(outcome.trace) > 0 and outcome.memory == program.validate()
    assert outcome.seconds > 0 and outcome.flops > 0 and outcome.trace[0].device == "cpu"
    again = program.run({name: numpy.asarray(x) for name, x in inputs.items()}, context=adead.Context("cpu"), parallel=True)
    for name, tensor in outcome.outputs.items():
        assert again[name].tobytes() == tensor.tobytes()
    with pytest.raises(KeyError):
        outcome["nothing"]
    survey = program.survey(adead.Context("cpu"))
    assert survey.alone_ns == {"cpu": survey.chosen_ns} and survey.findings == []
    assert survey.steps[0].device == "cpu" and survey.steps[0].total_ns > 0
    with pytest.raises(adead.Error, match="x"):
        program.run({})
    with pytest.raises(adead.OutOfMemoryError):
        program.run(inputs, memory_limit=1)
    with pytest.raises(adead.OutOfMemoryError):
        program.validate(1)


def test_formats(programs):
    program = adead.Program.load(programs / "attention.hex")
    assert program.format == "hex" and program.is_agpu
    for format in ("adead", "agpu", "hex", "text"):
        data = program.encode(format)
        same = adead.Program.decode(data)
        assert len(same) == len(program) and same.disassemble() == program.disassemble(), format
    assert adead.Program.assemble(program.disassemble()).encode() == program.encode()
    assert program.line(0) in program.disassemble()
    with pytest.raises(IndexError):
        program.line(10**6)
    with pytest.raises(adead.UnsupportedError, match="AHYB"):
        program.encode("ahyb")
    with pytest.raises(adead.InvalidArgumentError, match="format is 'elf'"):
        program.encode("elf")
    hybrid = adead.Program.load(programs / "hybrid.ahyb")
    assert hybrid.format == "ahyb" and isinstance(hybrid.symbols, dict)
    with pytest.raises(adead.InvalidProgramError):
        adead.Program.decode(b"nothing of the kind")
    with pytest.raises(adead.IoError):
        adead.Program.load("no-such.adead")
    assert len(adead.default_context().load_adead(programs / "mlp.adead")) == len(
        adead.Program.load(str(programs / "mlp.adead"))
    )


def test_layouts():
    data = numpy.arange(1, 16, dtype=numpy.int32)
    tiled = adead.optimize_matrix(data, 3, 5, 2)
    assert tiled.tolist()[:8] == [1, 2, 6, 7, 3, 4, 8, 9]
    assert adead.restore_matrix(tiled, 3, 5, 2).tolist() == data.tolist()
    assert adead.coalesce(data, 3).tolist()[:5] == [1, 4, 7, 10, 13]
    assert adead.scatter(adead.coalesce(data, 3), 3).tolist() == data.tolist()
    assert adead.align(data, 64).shape == (16,)
    for layout in (
        adead.Layout.tiled(3, 5, 2),
        adead.Layout.aligned(3, 5, "i32", 32),
        adead.Layout.coalesced(15, 5),
        adead.Layout.morton(3, 5),
    ):
        arranged = layout.apply(data)
        assert arranged.size == layout.stored == layout.dims[0] * layout.dims[1] and layout.elements == 15
        assert layout.undo(arranged).tolist() == data.tolist() and "Layout" in repr(layout)
    with pytest.raises(adead.InvalidArgumentError):
        adead.Layout.tiled(3, 5, 0)
    with pytest.raises(adead.ShapeMismatchError):
        adead.Layout.tiled(3, 5, 2).apply(data[:4])


def test_the_deterministic_allocator():
    offsets = []
    for _ in range(2):
        allocator = adead.DeterministicAllocator(block_size=64, blocks=100)
        a, b, c = (allocator.alloc(size) for size in (100, 1, 64))
        allocator.free(b)
        offsets.append((a, b, c, allocator.alloc(10), allocator.alloc(65)))
    assert offsets[0] == offsets[1]
    assert allocator.capacity == 6400 and allocator.live == 4 and allocator.used + allocator.available == 6400
    assert allocator.block_size == 64 and allocator.high_water > 0 and allocator.largest_free > 0
    memory = allocator.memory(a)
    view = memoryview(memory)
    view[:3] = b"abc"
    assert bytes(memoryview(allocator.memory(a))[:3]) == b"abc" and memory.nbytes == allocator.size(a) == 128
    numpy.frombuffer(memory, dtype=numpy.float32)[0] = 1.5
    with pytest.raises(adead.InvalidArgumentError, match="no allocation starts"):
        allocator.free(1)
    with pytest.raises(adead.OutOfMemoryError):
        allocator.alloc(1 << 20)
    allocator.reset()
    del allocator, memory
    # The memory lives as long as a view of it.
    view[:3] = b"xyz"
    assert adead.DeterministicAllocator().block_size == 4096
    with pytest.raises(adead.Error):
        adead.DeterministicAllocator(block_size=3)


def test_the_arena():
    arena = adead.ArenaAllocator(1000, 1000)
    first = arena.alloc(100, 64)
    second = arena.alloc(10, 16)
    assert first.address % 64 == 0 and second.address == first.address + 112 and arena.used == 122
    memoryview(first)[:] = bytes(range(100))
    with pytest.raises(adead.OutOfMemoryError):
        arena.alloc(1000, 1)
    with pytest.raises(adead.InvalidArgumentError, match="powers of two"):
        arena.alloc(1, 3)
    arena.reset()
    assert arena.used == 0 and arena.capacity >= 1000 and arena.alloc(100, 64).address == first.address
    view = memoryview(first)
    del arena, first, second
    assert view[5] == 5
    with pytest.raises(adead.InvalidArgumentError):
        adead.ArenaAllocator(limit=5)
    assert adead.ArenaAllocator().capacity == 0
