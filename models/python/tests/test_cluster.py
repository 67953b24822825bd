"""Jobs over Parquet files on processes of this machine: hashes, lost workers, resumed runs, checks, errors, the command."""

import hashlib
import json
import subprocess

import adead
import pytest

pyarrow = pytest.importorskip("pyarrow")
from pyarrow import parquet

import cluster_shared as shared
from adead_models import TextGenerator, cluster
from adead_models.cluster import LocalEngine


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_the_number_of_workers_changes_nothing(folder, done, workers):
    out = folder / "out"
    report = shared.embed(folder, out, engine=LocalEngine(workers, threads=1))
    shared.assert_embedded(out, report)
    assert report.computed == tuple(range(6)) and not report.stale
    assert shared.lines_of(out) == shared.lines_of(done)


def test_a_shard_has_the_hash_that_every_language_has(folder):
    shared.embed(folder, folder / "out", rows_per_shard=32)
    job, entries = cluster.read_manifest(folder / "out")
    assert entries[0].sha256 == shared.HASH_OF_LINES
    assert [str(shard) for shard in job.shards()] == ["shard 0 (a.parquet, rows 0 to 31)", "shard 1 (b.parquet, rows 0 to 9)"]


@pytest.mark.parametrize("rows_per_shard", [1, 3, 100])
def test_texts_are_those_of_one_call(folder, rows_per_shard):
    out = folder / "out"
    report = shared.generate(folder, out, rows_per_shard=rows_per_shard, engine=LocalEngine(2))
    with TextGenerator(shared.GENERATOR, "cpu") as model:
        expected = model.generate_batch(shared.PROMPTS, **shared.DRAWN)
    table = pyarrow.concat_tables(parquet.read_table(path) for path in sorted(out.glob("*.parquet")))
    assert table.column("text").to_pylist() == [each.text for each in expected]
    assert table.column("tokens").to_pylist() == [each.tokens for each in expected]
    assert table.column("finish").to_pylist() == ["max_tokens"] * len(expected)
    # The hash as docs/clusters.md has it.
    digests = b""
    for start in range(0, len(expected), rows_per_shard):
        hashed = hashlib.sha256()
        for each in expected[start : start + rows_per_shard]:
            for text in (each.text, each.finish):
                hashed.update(len(text.encode()).to_bytes(8, "little") + text.encode())
            hashed.update(len(each.tokens).to_bytes(8, "little") + b"".join(token.to_bytes(4, "little") for token in each.tokens))
        digests += hashed.digest()
    assert report.sha256 == hashlib.sha256(digests).hexdigest()
    assert cluster.check(folder / "prompts", out, model=shared.GENERATOR).rows == len(expected)


def test_a_killed_worker_changes_nothing_and_is_told(folder, done, caplog):
    out = folder / "out"
    report = shared.embed(folder, out, engine=LocalEngine(2, make_worker=shared.killed_once(folder)))
    shared.assert_embedded(out, report, repeated=[shared.KILLED])
    assert report.repeated[0].why == "its process ended with exit code -9" and "pid" in report.repeated[0].worker
    assert "shard 3 (a.parquet, rows 24 to 31) was lost with process" in caplog.text
    assert shared.lines_of(out) == shared.lines_of(done)


def test_a_shard_that_kills_every_worker_is_an_error(folder):
    out = folder / "out"
    with pytest.raises(cluster.WorkerLostError, match=r"^shard 3 \(a.parquet, rows 24 to 31\) was lost with its worker 3 times"):
        shared.embed(folder, out, retries=2, engine=LocalEngine(make_worker=shared.KilledAlways))
    # What was finished stays, what was not goes.
    assert sorted(path.name for path in out.iterdir()) == [
        ".lock",
        "manifest.jsonl",
        *(f"part-0000{number}.parquet" for number in range(3)),
    ]
    shared.assert_embedded(out, report := shared.embed(folder, out))
    assert (report.skipped, report.computed) == ((0, 1, 2), (3, 4, 5))


def test_an_interrupted_run_goes_on(folder, done):
    out = folder / "out"

    def interrupt(status):
        if status.shards_done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        shared.embed(folder, out, progress=interrupt)
    assert len(shared.lines_of(out)) == 3
    told = []
    report = shared.embed(folder, out, engine=LocalEngine(2), progress=told.append)
    shared.assert_embedded(out, report)
    assert (report.skipped, report.computed, report.stale) == ((0, 1), (2, 3, 4, 5), {})
    assert told[-1] == cluster.Status(6, 6, 42, 42, 26)
    assert shared.lines_of(out) == shared.lines_of(done)
    assert shared.embed(folder, out).skipped == tuple(range(6))


def test_a_run_that_ended_between_two_steps_goes_on(folder, done):
    """The output of shard 5 has its name, its line is not complete; shard 4 has a line of an output that is gone."""
    lines = shared.lines_of(done)
    (done / "manifest.jsonl").write_text("".join(f"{line}\n" for line in lines[:-1]) + lines[-1][:30])
    (done / "part-00004.parquet").unlink()
    (done / ".part-00005.parquet.1-abcd.tmp").write_bytes(b"")
    report = shared.embed(folder, done)
    shared.assert_embedded(done, report)
    assert report.computed == (4, 5) and list(report.stale) == [4] and "part-00004.parquet" in report.stale[4]
    assert shared.lines_of(done) == lines


def test_an_output_that_has_changed_is_computed_again(folder, done, caplog):
    shared.changed(done, 1, 2)
    (done / "part-00002.parquet").write_bytes(b"PAR1")
    report = shared.embed(folder, done)
    shared.assert_embedded(done, report)
    assert report.computed == (1, 2) == tuple(report.stale)
    assert "part-00001.parquet has sha256" in report.stale[1] and "is not a Parquet file" in report.stale[2]
    assert "shard 1 (a.parquet, rows 8 to 15) is computed again: part-00001.parquet has sha256" in caplog.text


def test_a_check_finds_what_differs(folder, done):
    before = {path.name: path.read_bytes() for path in done.iterdir()}
    report = shared.check(folder, done, engine=LocalEngine(2))
    assert (report.checked, report.rows) == (tuple(range(6)), 42)
    assert shared.check(folder, done, shards=[5, 0, 5]).checked == (0, 5)
    assert {path.name: path.read_bytes() for path in done.iterdir()} == before

    shared.changed(done, 1, 2)
    with pytest.raises(cluster.CheckError, match="1 of 8 rows differ, row 2 of the shard first, by at most") as error:
        shared.check(folder, done)
    assert len(error.value.differences) == 1 and error.value.differences[0].startswith("shard 1 (a.parquet, rows 8 to 15): ")
    # The others are equal.
    assert shared.check(folder, done, shards=[0, 2, 3, 4, 5]).rows == 34

    lines = shared.lines_of(done)
    entry = json.loads(lines[1])
    wrong = {**entry, "sha256": "0" * 64, "input_sha256": "1" * 64, "truncated": 7}
    shared.write_lines(done, [lines[0], json.dumps(wrong), *lines[2:]])
    with pytest.raises(cluster.CheckError) as error:
        shared.check(folder, done, shards=[0])
    text = "\n".join(error.value.differences)
    assert f"its texts have sha256 {entry['input_sha256']}; the manifest has {'1' * 64}" in text
    assert f"computed again its results have sha256 {entry['sha256']}; the manifest has {'0' * 64}" in text
    assert "0 sentences are truncated; the manifest has 7" in text and len(error.value.differences) == 3
    (done / "part-00004.parquet").unlink()
    with pytest.raises(cluster.CheckError, match=r"shard 4 \(b.parquet, rows 0 to 7\): .*part-00004.parquet"):
        shared.check(folder, done, shards=[4])


def test_a_check_of_texts_says_which_differ(folder):
    out = folder / "out"
    shared.generate(folder, out)
    path = out / "part-00001.parquet"
    table = parquet.read_table(path)
    texts = ["other", *table.column("text").to_pylist()[1:]]
    parquet.write_table(table.set_column(1, "text", pyarrow.array(texts)), path)
    with pytest.raises(cluster.CheckError, match="1 of 3 rows differ, row 0 of the shard first, with 'other' and"):
        cluster.check(folder / "prompts", out, model=shared.GENERATOR)


def test_what_can_not_be_checked_is_an_error(folder, done):
    with pytest.raises(adead.InvalidArgumentError, match="shard 6 does not exist; the job has 6 shards"):
        shared.check(folder, done, shards=[6])
    with pytest.raises(adead.InvalidArgumentError, match="inputs are 1 files; the job has 2"):
        cluster.check(folder / "sentences/a.parquet", done, model=shared.ENCODER)
    with pytest.raises(adead.InvalidArgumentError, match="a.parquet has 32 rows; the job's b.parquet has 10"):
        cluster.check([folder / "sentences/a.parquet"] * 2, done, model=shared.ENCODER)
    other = folder / "model"
    subprocess.run(["cp", "-r", shared.ENCODER, other], check=True)
    config = (other / "sentence_bert_config.json").read_text()
    (other / "sentence_bert_config.json").write_text(config + "\n")
    with pytest.raises(adead.InvalidArgumentError, match="sentence_bert_config.json has sha256 .*; the job has"):
        shared.check(folder, done, model=other)
    shared.write_lines(done, shared.lines_of(done)[:-1])
    with pytest.raises(adead.InvalidArgumentError, match=r"shard 5 \(b.parquet, rows 8 to 9\) is not finished"):
        shared.check(folder, done)
    with pytest.raises(adead.IoError, match="manifest.jsonl: No such file"):
        shared.check(folder, folder / "nowhere")


def test_inputs_without_rows(folder):
    parquet.write_table(pyarrow.table({"text": pyarrow.array([], pyarrow.string())}), folder / "empty.parquet")
    report = cluster.embed(folder / "empty.parquet", folder / "out", model=shared.ENCODER)
    assert (report.shards, report.rows, report.sha256) == (0, 0, hashlib.sha256().hexdigest())
    files = [folder / "empty.parquet", folder / "sentences/b.parquet"]
    assert cluster.embed(files, folder / "two", model=shared.ENCODER).rows == 10


def test_text_columns_of_other_types(folder):
    for number, kind in enumerate((pyarrow.large_string(), pyarrow.dictionary(pyarrow.int32(), pyarrow.string()))):
        path = folder / f"{number}.parquet"
        parquet.write_table(pyarrow.table({"text": pyarrow.array(shared.LINES).cast(kind)}), path)
        cluster.embed(path, folder / f"out-{number}", model=shared.ENCODER)
        assert cluster.read_manifest(folder / f"out-{number}")[1][0].sha256 == shared.HASH_OF_LINES
