"""What the tests of clusters share: inputs, the result to compare with, and workers that are killed. Workers import this module."""

import functools
import hashlib
import json
import os
import pathlib
import signal

import numpy

from adead_models import SentenceEncoder, cluster
from adead_models.cluster._worker import ShardWorker

ROOT = pathlib.Path(__file__).resolve().parents[3]
ENCODER = ROOT / "tests/sentences/tiny"
LINES = (ROOT / "tests/sentences/tiny.txt").read_text(encoding="utf-8").removesuffix("\n").split("\n")
# Of all LINES, in every language.
HASH_OF_LINES = (ROOT / "tests/sentences/tiny.sha256").read_text().strip()
GENERATOR = ROOT / "tests/text/llama.gguf"
PROMPTS = ["the ferry", "the ferry came in", "a boat", "the ferry", "quiet", "the harbour was quiet", "a"]
DRAWN = {"max_tokens": 12, "ignore_end": True, "temperature": 1.5, "top_k": 60, "seed": 42}
# 32 and 10 rows: shards 0 to 3 of the first file, 4 and 5 of the second.
ROWS_PER_SHARD = 8
SHARDS = 6
KILLED = 3


def write_inputs(folder):
    """Writes two files of sentences into ``folder/sentences`` and one of prompts into ``folder/prompts``."""
    import pyarrow
    from pyarrow import parquet

    for name in ("sentences", "prompts"):
        (folder / name).mkdir()
    ids = [f"id-{number}" for number in range(42)]
    # Row groups of 5 rows: a shard begins and ends within one.
    parquet.write_table(pyarrow.table({"text": LINES, "id": ids[:32]}), folder / "sentences/a.parquet", row_group_size=5)
    parquet.write_table(pyarrow.table({"id": ids[32:], "text": LINES[:10]}), folder / "sentences/b.parquet")
    parquet.write_table(pyarrow.table({"prompt": PROMPTS}), folder / "prompts/prompts.parquet", row_group_size=2)


def embed(folder, out, **options):
    options = {"rows_per_shard": ROWS_PER_SHARD, "keep": ["id"], "model": ENCODER, **options}
    return cluster.embed(folder / "sentences", out, **options)


def generate(folder, out, **options):
    options = {"rows_per_shard": 3, "column": "prompt", "model": GENERATOR, **DRAWN, **options}
    return cluster.generate(folder / "prompts", out, **options)


def check(folder, out, **options):
    return cluster.check(folder / "sentences", out, **{"model": ENCODER, **options})


def expected_rows():
    """The embeddings of all rows of the sentences, computed at once."""
    rows, _ = encode([*LINES, *LINES[:10]])
    return rows


def encode(sentences):
    from adead_models._encoder import encode_and_count

    with SentenceEncoder(ENCODER, "cpu", threads=2) as encoder:
        return encode_and_count(encoder, sentences)


def expected_manifest(rows):
    """The hash of each shard, and the job's."""
    starts = [0, 8, 16, 24, 32, 40, 42]
    digests = [hashlib.sha256(rows[start:stop].tobytes()) for start, stop in zip(starts, starts[1:])]
    job = hashlib.sha256(b"".join(digest.digest() for digest in digests)).hexdigest()
    return [digest.hexdigest() for digest in digests], job


def assert_embedded(out, report, repeated=()):
    """Compares a finished job with the rows of one call: manifest, outputs, report."""
    import pyarrow
    from pyarrow import parquet

    rows = expected_rows()
    hashes, job = expected_manifest(rows)
    _, *entries = map(json.loads, (out / "manifest.jsonl").read_text(encoding="utf-8").splitlines())
    assert [entry["shard"] for entry in entries] == list(range(SHARDS))
    assert [entry["sha256"] for entry in entries] == hashes
    assert report.sha256 == job
    assert (report.shards, report.rows) == (SHARDS, 42)
    assert sorted(report.computed + report.skipped) == list(range(SHARDS))
    assert report.truncated == sum(entry["truncated"] for entry in entries) == 3
    assert [repeat.shard for repeat in report.repeated] == list(repeated)
    names = [".lock", "manifest.jsonl", *(f"part-{number:05}.parquet" for number in range(SHARDS))]
    assert sorted(path.name for path in out.iterdir()) == names
    table = pyarrow.concat_tables(parquet.read_table(out / name) for name in names[2:])
    assert table.column_names == ["row", "id", "embedding"]
    assert table.column("row").to_pylist() == list(range(42))
    assert table.column("id").to_pylist() == [f"id-{number}" for number in range(42)]
    values = numpy.concatenate([chunk.flatten().to_numpy() for chunk in table.column("embedding").chunks])
    assert values.dtype == numpy.float32 and values.tobytes() == rows.tobytes()


def lines_of(out):
    """The lines of a manifest."""
    return (out / "manifest.jsonl").read_text(encoding="utf-8").splitlines()


def write_lines(out, lines):
    (out / "manifest.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def changed(out, number, row):
    """Changes the last bit of a value in an output."""
    import pyarrow
    from pyarrow import parquet

    path = out / f"part-{number:05}.parquet"
    table = parquet.read_table(path)
    values = table.column("embedding").combine_chunks().flatten().to_numpy().copy()
    values.view("u4")[row * 32 + 7] ^= 1
    column = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(values), 32)
    parquet.write_table(table.set_column(2, "embedding", column), path)


class KilledOnce(ShardWorker):
    """Is killed where its shard's output is written and does not have its name yet. Another time it is not: a file tells."""

    def __init__(self, recipe, marker, shard=KILLED):
        super().__init__(recipe)
        self.marker, self.output = marker, f"part-{shard:05}.parquet"

    def publish(self, unfinished, output):
        if output.name == self.output and not self.marker.exists():
            self.marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        super().publish(unfinished, output)


class KilledAlways(ShardWorker):
    """Is killed by its shard, each time."""

    def publish(self, unfinished, output):
        if output.name == f"part-{KILLED:05}.parquet":
            os.kill(os.getpid(), signal.SIGKILL)
        super().publish(unfinished, output)


def killed_once(folder):
    return functools.partial(KilledOnce, marker=folder / "killed")


def not_made(_recipe):
    raise ZeroDivisionError("a fault")
