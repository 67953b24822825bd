"""The package on the small model of tests/sentences: bits, streams, errors, threads."""

import gc
import hashlib
import pathlib
import threading
import warnings

import adead
import numpy
import pytest

import adead_models
from adead_models import SentenceEncoder, TruncationWarning

SHARED = pathlib.Path(__file__).resolve().parents[3] / "tests/sentences"
LINES = (SHARED / "tiny.txt").read_text(encoding="utf-8").removesuffix("\n").split("\n")
HASH = (SHARED / "tiny.sha256").read_text().strip()


def bits(rows):
    assert rows.dtype == numpy.float32 and rows.flags.c_contiguous
    return rows.tobytes()


@pytest.fixture(scope="module")
def encoder():
    with SentenceEncoder(SHARED / "tiny", "cpu", threads=2) as encoder:
        yield encoder


@pytest.fixture(scope="module")
def expected(encoder):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TruncationWarning)
        return encoder.encode(LINES)


def test_every_language_has_these_bits(encoder, expected):
    assert expected.shape == (len(LINES), 32) == (32, encoder.width)
    assert hashlib.sha256(bits(expected)).hexdigest() == HASH
    assert (encoder.max_tokens, encoder.device) == (24, "cpu")
    assert repr(encoder) == "SentenceEncoder(32 values, 24 tokens at most, cpu)"
    assert adead_models.__version__ == adead.__version__


@pytest.mark.filterwarnings("ignore::adead_models.TruncationWarning")
def test_no_choice_changes_a_bit(encoder, expected):
    for padded in (None, False, True):
        for batch in (None, 1, 3, 2**70):
            assert bits(encoder.encode(LINES, batch=batch, padded=padded)) == bits(expected), (batch, padded)
    for line, row in zip(LINES, expected):
        alone = encoder.encode(line)
        assert alone.shape == (32,) and bits(alone) == row.tobytes(), line
    with SentenceEncoder(str(SHARED / "tiny"), "cpu", 1) as other:
        assert bits(other.encode(tuple(LINES))) == bits(expected)
    assert encoder.encode([]).shape == (0, 32)


@pytest.mark.filterwarnings("ignore::adead_models.TruncationWarning")
def test_precision(expected):
    for precision, most in (("f32", 0), ("fixed24", 2e-6), ("fixed16", 1e-3)):
        with SentenceEncoder(SHARED / "tiny", "cpu", precision=precision) as other:
            rows = other.encode(LINES)
        assert numpy.abs(rows - expected).max() <= most and (bits(rows) == bits(expected)) == (precision == "f32")
    with pytest.raises(adead.InvalidArgumentError, match="precision is 'f16'; it must be one of f32, fixed24, fixed16"):
        SentenceEncoder(SHARED / "tiny", "cpu", precision="f16")


def test_a_nul_is_a_character(encoder):
    assert bits(encoder.encode("a\0b")) != bits(encoder.encode("a"))


def test_what_is_cut_is_told(encoder):
    with pytest.warns(TruncationWarning, match="cut to 24 tokens: 3 of 32 sentences, sentence 17 first") as told:
        encoder.encode(LINES)
    numbers = told[0].message.sentences
    assert [LINES[number][:9] for number in numbers] == ["xxxxxxxxx", "the ferry", "a b c d e"]
    assert told[0].filename == __file__
    with pytest.warns(TruncationWarning) as told:
        list(encoder.batch_embed(["a"] * 100 + LINES))
    assert [number for one in told for number in one.message.sentences] == [100 + number for number in numbers]


@pytest.mark.filterwarnings("ignore::adead_models.TruncationWarning")
@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 1000])
def test_a_stream_gives_the_rows_of_its_sentences_in_their_order(encoder, expected, count):
    told = []
    parts = list(encoder.batch_embed((LINES[i % 32] for i in range(count)), batch=7, progress=told.append))
    rows = numpy.concatenate([numpy.empty((0, 32), numpy.float32), *parts])
    assert bits(rows) == bits(expected[[i % 32 for i in range(count)]])
    assert told == list(numpy.cumsum([len(part) for part in parts]))


def test_an_endless_stream_is_taken_a_little_ahead_and_closed(encoder):
    taken, threads = 0, set()

    def endless():
        nonlocal taken
        while True:
            taken += 1
            threads.add(threading.get_ident())
            yield "a"

    source = endless()
    stream = encoder.batch_embed(source)
    given = 0
    while given < 3000:
        given += len(next(stream))
        assert taken - given <= 2 * 4096
    # Who iterates takes the sentences, so that what belongs to a thread stays in it.
    assert threads == {threading.get_ident()}
    stream.close()
    before = taken
    with pytest.raises(StopIteration):
        next(stream)
    assert taken == before
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("adead-models")]


def test_errors_of_the_source_and_of_progress_surface(encoder):
    def failing():
        yield from ["a"] * 300
        raise OSError("the disk is gone")

    given = 0
    with pytest.raises(OSError, match="the disk is gone"):
        for rows in encoder.batch_embed(failing()):
            given += len(rows)
    assert given < 300

    def progress(computed):
        raise KeyError(computed)

    with pytest.raises(KeyError, match="64"):
        list(encoder.batch_embed(["a"] * 100, progress=progress))
    with pytest.raises(adead.InvalidArgumentError, match="sentence 70 can't be encoded"):
        list(encoder.batch_embed(["a"] * 70 + ["\ud800"]))
    with pytest.raises(TypeError, match="sentence 65 is NoneType, not str"):
        list(encoder.batch_embed(["a"] * 65 + [None]))
    with pytest.raises(TypeError, match="one str"):
        encoder.batch_embed("a")
    with pytest.raises(TypeError, match="not iterable"):
        encoder.batch_embed(7)


def test_errors_have_the_classes_of_adead(encoder):
    with pytest.raises(adead.IoError, match="nowhere") as error:
        SentenceEncoder(SHARED / "nowhere", "cpu")
    assert (error.value.status, error.value.code) == (11, "io")
    with pytest.raises(adead.InvalidArgumentError, match="folder"):
        SentenceEncoder(SHARED / "tiny.txt", "cpu")
    with pytest.raises(adead.Error, match="tpu"):
        SentenceEncoder(SHARED / "tiny", "tpu")
    with pytest.raises(adead.Error, match="mmx"):
        SentenceEncoder(SHARED / "tiny", "cpu", isa="mmx")
    with pytest.raises(adead.InvalidArgumentError, match="threads is 0"):
        SentenceEncoder(SHARED / "tiny", "cpu", threads=0)
    with pytest.raises(adead.InvalidArgumentError, match="NUL"):
        SentenceEncoder("a\0b")
    with pytest.raises(TypeError):
        SentenceEncoder(None)
    for batch in (0, -1):
        with pytest.raises(adead.InvalidArgumentError, match=f"at least 1 sentence, not {batch}"):
            encoder.encode(["a"], batch=batch)
    with pytest.raises(adead.InvalidArgumentError, match="sentence 1 can't be encoded"):
        encoder.encode(["a", "\udcff"])
    with pytest.raises(TypeError, match="sentence 1 is bytes, not str"):
        encoder.encode(["a", b"b"])


def test_threads_share_an_encoder_and_closing_waits_for_them(expected):
    encoder = SentenceEncoder(SHARED / "tiny", "cpu", threads=2)
    lines = [line for line in LINES if len(line) < 40]
    wanted = bits(encoder.encode(lines))
    begun, found = threading.Barrier(5), []

    def work(batch):
        begun.wait()
        rows = []
        try:
            while len(rows) < 1000:
                rows.append(bits(encoder.encode(lines, batch=batch)) == wanted)
        except adead.InvalidArgumentError as error:
            assert "closed" in str(error)
        found.append(all(rows))

    threads = [threading.Thread(target=work, args=(batch,)) for batch in range(1, 5)]
    for thread in threads:
        thread.start()
    begun.wait()
    stream = encoder.batch_embed(lines * 10)
    first = next(stream)
    encoder.close()
    # What was begun goes on.
    assert bits(numpy.concatenate([first, *stream])) == wanted * 10
    for thread in threads:
        thread.join()
    assert found == [True] * 4
    encoder.close()
    assert repr(encoder) == "SentenceEncoder(closed)"
    for use in (lambda: encoder.encode("a"), lambda: encoder.width, lambda: encoder.batch_embed([]), encoder.__enter__):
        with pytest.raises(adead.InvalidArgumentError, match="the encoder is closed"):
            use()


def resident():
    pages = pathlib.Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * 4096


def test_encoders_and_calls_leave_no_memory_behind():
    def cycle():
        with SentenceEncoder(SHARED / "tiny", "cpu", threads=1) as encoder:
            encoder.encode(["a", "b"])
            next(encoder.batch_embed(["a"] * 100)).sum()

    for _ in range(10):
        cycle()
    gc.collect()
    before = resident()
    for _ in range(100):
        cycle()
    gc.collect()
    # An encoder of this model has some 60 KB.
    assert resident() - before < 3 << 20
