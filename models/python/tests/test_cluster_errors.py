"""Jobs over Parquet files: errors of manifests, inputs and workers."""

import json
import os
import pathlib

import adead
import pytest

pyarrow = pytest.importorskip("pyarrow")
from pyarrow import parquet

import cluster_shared as shared
from adead_models import cluster
from adead_models.cluster import LocalEngine


def entry_with(**fields):
    def edit(lines):
        lines[3] = json.dumps({**json.loads(lines[3]), **fields})

    return edit


def line(number, text):
    def edit(lines):
        lines[number - 1] = text

    return edit


@pytest.mark.parametrize(
    ("edit", "told"),
    [
        (line(1, "{"), "line 1 is not JSON: .*remove the file to start again"),
        (line(1, '{"format": 2}'), "line 1: format is 2; this version reads format 1"),
        (line(1, '{"format": 1}'), "line 1 does not describe a job: KeyError: 'inputs'"),
        (line(4, "\0\0\0"), "line 4 is not JSON: .*remove the line to compute its shard again"),
        (line(4, "[]"), "line 4 is not a JSON object"),
        (line(4, "{}"), "line 4: it has ; it must have shard, rows, output, input_sha256, sha256, truncated"),
        (entry_with(shard=6), "line 4: shard is 6; the job has shards 0 to 5"),
        (entry_with(rows=7), "line 4: rows and output of shard 2 are 7 and 'part-00002.parquet'; they must be 8 and"),
        (entry_with(sha256="abc"), "line 4: sha256 is 'abc'; it must be 64 hexadecimal digits"),
        (entry_with(truncated=-1), "line 4: truncated: -1 is not a whole number from 0"),
    ],
)
def test_a_malformed_manifest_is_an_error_with_the_line(folder, done, edit, told):
    lines = shared.lines_of(done)
    edit(lines)
    shared.write_lines(done, lines)
    for use in (shared.embed, shared.check):
        with pytest.raises(adead.InvalidArgumentError, match=told):
            use(folder, done)
    (done / "manifest.jsonl").write_bytes(b"")
    with pytest.raises(adead.InvalidArgumentError, match="manifest.jsonl has no complete line"):
        shared.embed(folder, done)


def test_a_manifest_of_another_job_is_an_error(folder, done):
    with pytest.raises(adead.InvalidArgumentError, match="another job's: rows_per_shard is 8 there and 9 here; choose another"):
        shared.embed(folder, done, rows_per_shard=9)
    with pytest.raises(adead.InvalidArgumentError, match='options is {"precision": "f32"} there and {"precision": "fixed24"} here'):
        shared.embed(folder, done, precision="fixed24")


def test_two_runs_at_once_are_an_error(folder, done):
    def other(_status):
        with pytest.raises(adead.InvalidArgumentError, match="another run writes to .*done"):
            shared.embed(folder, done)

    shared.embed(folder, done, progress=other)


def test_a_run_that_ended_keeps_no_lock(folder):
    """Although another process has its files, as one that is being started has."""
    kept = []

    def keep(_status):
        files = pathlib.Path("/proc/self/fd")
        locks = [int(file.name) for file in files.iterdir() if os.path.realpath(file).endswith("new/.lock")]
        kept.extend(os.dup(lock) for lock in locks if not kept)

    shared.embed(folder, folder / "new", progress=keep)
    assert kept
    assert shared.embed(folder, folder / "new").skipped == tuple(range(6))
    os.close(kept[0])


class OtherModel(shared.ShardWorker):
    def _open(self):
        model = dict(self.recipe.job.model)
        object.__setattr__(self.recipe.job, "model", {**model, "config.json": "0" * 64})
        return super()._open()


class Failing(shared.ShardWorker):
    def publish(self, unfinished, output):
        raise ZeroDivisionError("a fault")


def test_a_worker_with_another_model_or_a_fault_ends_the_run(folder):
    with pytest.raises(adead.InvalidArgumentError, match=r"shard 0 .*: config.json has sha256 .* on this worker; the job has 0000"):
        shared.embed(folder, folder / "out", engine=LocalEngine(make_worker=OtherModel))
    with pytest.raises(RuntimeError, match=r"shard 0 \(a.parquet, rows 0 to 7\): ZeroDivisionError: a fault") as error:
        shared.embed(folder, folder / "out", engine=LocalEngine(make_worker=Failing))
    assert "in publish" in error.value.__notes__[0]
    assert sorted(path.name for path in (folder / "out").iterdir()) == [".lock", "manifest.jsonl"]


def test_errors_of_inputs(folder):
    out, table = folder / "out", folder / "other.parquet"
    for inputs, told in (
        (folder / "nowhere", "nowhere: there is no such file"),
        (folder, r"has no \*.parquet file"),
        ([], "inputs is empty"),
    ):
        with pytest.raises(adead.Error, match=told):
            cluster.embed(inputs, out, model=shared.ENCODER)
    with pytest.raises(adead.InvalidArgumentError, match="a.parquet has no column 'texts'; it has 'text', 'id'"):
        shared.embed(folder, out, column="texts")
    with pytest.raises(adead.InvalidArgumentError, match="keep has 'embedding'; the output has a column of this name"):
        shared.embed(folder, out, keep=["embedding"])
    with pytest.raises(adead.InvalidArgumentError, match="rows_per_shard is 0; it must be at least 1"):
        shared.embed(folder, out, rows_per_shard=0)
    with pytest.raises(adead.InvalidArgumentError, match="retries is -1; it must be at least 0"):
        shared.embed(folder, out, retries=-1)
    with pytest.raises(adead.IoError, match="nowhere/config.json: No such file"):
        shared.embed(folder, out, model=folder / "nowhere")
    with pytest.raises(adead.InvalidArgumentError, match="workers is 0; it must be at least 1"):
        LocalEngine(0)
    with pytest.raises(TypeError, match="unknown option 'max_token'; known are max_tokens"):
        shared.generate(folder, out, max_token=3)
    # No error of arguments leaves anything behind.
    assert not out.exists()
    parquet.write_table(pyarrow.table({"text": [1, 2]}), table)
    with pytest.raises(adead.InvalidArgumentError, match="column 'text' has elements of int64; it must have strings"):
        cluster.embed(table, out, model=shared.ENCODER)
    parquet.write_table(pyarrow.table({"text": ["a"] * 5 + [None]}), table)
    with pytest.raises(adead.InvalidArgumentError, match="row 5 of other.parquet has no text in column 'text'"):
        cluster.embed(table, out, model=shared.ENCODER, rows_per_shard=4)
    parquet.write_table(pyarrow.table({"text": ["a"] * 5 + [" a" * 300]}), table)
    with pytest.raises(adead.InvalidArgumentError, match="row 5 of other.parquet: the prompt has .* tokens and the context length is 256"):
        cluster.generate(table, folder / "texts", model=shared.GENERATOR, rows_per_shard=4, max_tokens=2)
    table.write_bytes(b"text")
    with pytest.raises(adead.InvalidArgumentError, match="other.parquet is not a Parquet file"):
        cluster.embed(table, folder / "none", model=shared.ENCODER)
    assert not (folder / "none").exists()
