"""Jobs over Parquet files on processes of this machine: hashes, lost workers, resumed runs, checks, errors, the command."""

import hashlib
import io
import json
import logging
import shutil
import subprocess
import sys

import adead
import pytest

pyarrow = pytest.importorskip("pyarrow")
from pyarrow import parquet

import cluster_shared as shared
from adead_models import TextGenerator, cluster
from adead_models.cluster import LocalEngine
from adead_models.cluster._command import main
from adead_models.cluster._progress import Terminal, line_of


@pytest.fixture
def folder(tmp_path):
    shared.write_inputs(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished")
    shared.write_inputs(folder)
    shared.assert_embedded(folder / "done", shared.embed(folder, folder / "done"))
    return folder / "done"


@pytest.fixture
def done(folder, finished):
    """The folder of a finished job."""
    return shutil.copytree(finished, folder / "done")


def lines_of(out):
    return (out / "manifest.jsonl").read_text(encoding="utf-8").splitlines()


def write_lines(out, lines):
    (out / "manifest.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_the_number_of_workers_changes_nothing(folder, done, workers):
    out = folder / "out"
    report = shared.embed(folder, out, engine=LocalEngine(workers, threads=1))
    shared.assert_embedded(out, report)
    assert report.computed == tuple(range(6)) and not report.stale
    assert lines_of(out) == lines_of(done)


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
    assert lines_of(out) == lines_of(done)


def test_a_shard_that_kills_every_worker_is_an_error(folder):
    out = folder / "out"
    with pytest.raises(cluster.WorkerLostError, match=r"^shard 3 \(a.parquet, rows 24 to 31\) was lost with its worker 3 times"):
        shared.embed(folder, out, retries=2, engine=LocalEngine(make_worker=shared.KilledAlways))
    # What was finished stays, what was not goes.
    assert sorted(path.name for path in out.iterdir()) == ["manifest.jsonl", *(f"part-0000{number}.parquet" for number in range(3))]
    shared.assert_embedded(out, report := shared.embed(folder, out))
    assert (report.skipped, report.computed) == ((0, 1, 2), (3, 4, 5))


def test_an_interrupted_run_goes_on(folder, done):
    out = folder / "out"

    def interrupt(status):
        if status.shards_done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        shared.embed(folder, out, progress=interrupt)
    assert len(lines_of(out)) == 3
    told = []
    report = shared.embed(folder, out, engine=LocalEngine(2), progress=told.append)
    shared.assert_embedded(out, report)
    assert (report.skipped, report.computed, report.stale) == ((0, 1), (2, 3, 4, 5), {})
    assert told[-1] == cluster.Status(6, 6, 42, 42, 26)
    assert lines_of(out) == lines_of(done)
    assert shared.embed(folder, out).skipped == tuple(range(6))


def test_a_run_that_ended_between_two_steps_goes_on(folder, done):
    """The output of shard 5 has its name, its line is not complete; shard 4 has a line of an output that is gone."""
    lines = lines_of(done)
    (done / "manifest.jsonl").write_text("".join(f"{line}\n" for line in lines[:-1]) + lines[-1][:30])
    (done / "part-00004.parquet").unlink()
    (done / ".part-00005.parquet.1-abcd.tmp").write_bytes(b"")
    report = shared.embed(folder, done)
    shared.assert_embedded(done, report)
    assert report.computed == (4, 5) and list(report.stale) == [4] and "part-00004.parquet" in report.stale[4]
    assert lines_of(done) == lines


def changed(out, number, row):
    """Changes the last bit of a value in an output."""
    path = out / f"part-{number:05}.parquet"
    table = parquet.read_table(path)
    values = table.column("embedding").combine_chunks().flatten().to_numpy().copy()
    values.view("u4")[row * 32 + 7] ^= 1
    column = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(values), 32)
    parquet.write_table(table.set_column(2, "embedding", column), path)


def test_an_output_that_has_changed_is_computed_again(folder, done, caplog):
    changed(done, 1, 2)
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

    changed(done, 1, 2)
    with pytest.raises(cluster.CheckError, match="1 of 8 rows differ, row 2 of the shard first, by at most") as error:
        shared.check(folder, done)
    assert len(error.value.differences) == 1 and error.value.differences[0].startswith("shard 1 (a.parquet, rows 8 to 15): ")
    # The others are equal.
    assert shared.check(folder, done, shards=[0, 2, 3, 4, 5]).rows == 34

    lines = lines_of(done)
    entry = json.loads(lines[1])
    wrong = {**entry, "sha256": "0" * 64, "input_sha256": "1" * 64, "truncated": 7}
    write_lines(done, [lines[0], json.dumps(wrong), *lines[2:]])
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
    write_lines(done, lines_of(done)[:-1])
    with pytest.raises(adead.InvalidArgumentError, match=r"shard 5 \(b.parquet, rows 8 to 9\) is not finished"):
        shared.check(folder, done)
    with pytest.raises(adead.IoError, match="manifest.jsonl: No such file"):
        shared.check(folder, folder / "nowhere")


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
    lines = lines_of(done)
    edit(lines)
    write_lines(done, lines)
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
    assert [path.name for path in (folder / "out").iterdir()] == ["manifest.jsonl"]


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
    with pytest.raises(adead.IoError, match="nowhere/config.json: No such file"):
        shared.embed(folder, out, model=folder / "nowhere")
    with pytest.raises(adead.InvalidArgumentError, match="workers is 0; it must be at least 1"):
        LocalEngine(0)
    with pytest.raises(TypeError, match="unknown option 'max_token'; known are max_tokens"):
        shared.generate(folder, out, max_token=3)
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


def test_a_terminal_shows_progress_below_messages():
    status = cluster.Status(2, 4, 1500, 3000, 1000)
    assert line_of(status, 10.0) == "2 of 4 shards, 1,500 of 3,000 rows, 100 rows/s, 15 s left"
    assert line_of(status, 1000.0) == "2 of 4 shards, 1,500 of 3,000 rows, 1 rows/s, 25 min 0 s left"
    assert line_of(cluster.Status(1, 4, 500, 3000, 0), 1.0) == "1 of 4 shards, 500 of 3,000 rows"

    class Screen(io.StringIO):
        def isatty(self):
            return True

    screen, file = Screen(), io.StringIO()
    for stream in (screen, file):
        terminal = Terminal(stream)
        terminal(status)
        terminal.emit(logging.makeLogRecord({"msg": "lost"}))
        terminal(status)
        terminal.close()
    assert file.getvalue() == "lost\n"
    parts = screen.getvalue().split("\r")
    assert parts[1].startswith("2 of 4 shards") and parts[2].strip() == "" and parts[3] == "lost\n" and parts[4].endswith("left\n")


def command(*arguments):
    done = subprocess.run([sys.executable, "-m", "adead_models.cluster", *map(str, arguments)], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def test_the_command(folder, done):
    out = folder / "out"
    given = ["--model", shared.ENCODER, "--in", folder / "sentences", "--out", out]
    cut = ["--keep", "id", "--rows-per-shard", 8]
    status, printed, told = command("embed", *given, *cut, "--workers", 2)
    assert (status, told) == (0, "")
    assert printed.splitlines()[0] == "42 rows in 6 shards: 6 computed, 0 were finished"
    assert "3 sentences had more tokens" in printed and printed.splitlines()[-1].startswith("sha256 ")
    assert lines_of(out) == lines_of(done)
    changed(out, 1, 2)
    status, printed, told = command("check", *given, "--shards", "0,1")
    assert (status, printed) == (1, "") and "error: 1 differences in 2 shards:\nshard 1 (a.parquet" in told
    status, printed, told = command("embed", *given, *cut, "--json")
    assert status == 0 and json.loads(printed)["computed"] == [1] and "shard 1 (a.parquet, rows 8 to 15) is computed again" in told
    status, printed, _ = command("check", *given, "--workers", 2)
    assert (status, printed) == (0, "6 shards with 42 rows have the manifest's hashes\n")
    given = ["--model", shared.GENERATOR, "--in", folder / "prompts", "--out", folder / "texts", "--column", "prompt"]
    drawn = ["--max-tokens", 12, "--ignore-end", "--temperature", 1.5, "--top-k", 60, "--seed", 42]
    status, printed, _ = command("generate", *given, *drawn, "--rows-per-shard", 3, "--json")
    assert status == 0 and json.loads(printed)["sha256"] == shared.generate(folder, folder / "same").sha256
    assert command("embed")[0] == 2


def test_the_command_refuses_unknown_clusters(folder, capsys):
    given = ["--model", str(shared.ENCODER), "--in", str(folder / "sentences"), "--out", str(folder / "out")]
    for url in ("slurm://host", "ray://", "here"):
        assert main(["embed", *given, "--cluster", url]) == 1
        assert f"cluster is '{url}'; it must be local, ray://HOST:PORT" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["embed", *given, "--workers", "0"])
    assert "'0' is not a whole number from 1" in capsys.readouterr().err


@pytest.mark.parametrize(("module", "missing", "extra"), [("ray", "ray", "ray"), ("dask", "distributed", "dask"), ("cluster", "pyarrow", "cluster")])
def test_a_missing_extra_is_told(folder, module, missing, extra):
    code = f"""
import sys
sys.modules[{missing!r}] = None
import adead_models.{module}
adead_models.cluster.embed({str(folder / "sentences")!r}, {str(folder / "out")!r}, model={str(shared.ENCODER)!r})
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == f"ImportError: the Python package '{missing}' is missing: pip install adead-models[{extra}]"
