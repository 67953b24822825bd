"""Jobs on Dask, its actors and its data frames: the hashes of a run on one machine, a killed worker, the order of rows."""

import re

import adead
import numpy
import pytest

pyarrow = pytest.importorskip("pyarrow")
distributed = pytest.importorskip("distributed")
dataframe = pytest.importorskip("dask.dataframe")

import cluster_shared as shared
from adead_models import TextGenerator
from adead_models.cluster import WorkerLostError
from adead_models.cluster._command import main
from adead_models.cluster._worker import Recipe
from adead_models.dask import DaskEngine, SentenceEmbedder, TextWriter, embed_frame, generate_frame

# Of Dask itself.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def cluster_of_dask():
    with distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=None) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def client(cluster_of_dask):
    with distributed.Client(cluster_of_dask) as client:
        yield client


@pytest.mark.parametrize("workers", [1, 2, None])
def test_dask_computes_what_one_process_does(folder, done, client, workers):
    report = shared.embed(folder, folder / "dask", engine=DaskEngine(client, workers))
    shared.assert_embedded(folder / "dask", report)
    assert shared.lines_of(folder / "dask") == shared.lines_of(done)
    assert shared.check(folder, done, engine=DaskEngine(client, workers)).checked == tuple(range(6))


def test_texts_are_the_same(folder, client):
    reports = [shared.generate(folder, folder / "dask", engine=DaskEngine(client)), shared.generate(folder, folder / "local")]
    assert reports[0].sha256 == reports[1].sha256 and shared.lines_of(folder / "dask") == shared.lines_of(folder / "local")


def test_a_killed_worker_changes_nothing_and_is_told(folder, done, client, caplog):
    report = shared.embed(folder, folder / "dask", engine=DaskEngine(client, 2, make_worker=shared.killed_once(folder)))
    shared.assert_embedded(folder / "dask", report, repeated=[shared.KILLED])
    assert re.match(r"actor \d on tcp://127.0.0.1:\d+$", report.repeated[0].worker)
    assert "shard 3 (a.parquet, rows 24 to 31) was lost with actor" in caplog.text
    assert shared.lines_of(folder / "dask") == shared.lines_of(done)


def test_a_shard_that_kills_every_worker_is_an_error(folder, client):
    with pytest.raises(WorkerLostError, match="shard 3 .* was lost with its worker 2 times"):
        shared.embed(folder, folder / "dask", retries=1, engine=DaskEngine(client, 1, make_worker=shared.KilledAlways))
    report = shared.embed(folder, folder / "dask", engine=DaskEngine(client, 2))
    shared.assert_embedded(folder / "dask", report)
    assert report.skipped == (0, 1, 2)


def test_an_actor_that_waits_for_a_worker_that_is_gone_starts_on_another(client, monkeypatch):
    threads_of, submit, calls = client.nthreads, client.submit, []

    def nthreads():
        """Names a worker that is gone, as a scheduler does that has not noticed it."""
        return threads_of() if calls else {"tcp://127.0.0.1:1": 1}

    def submits(*arguments, **options):
        # Dask keeps the first task waiting for that worker.
        calls.append(options["workers"])
        return submit(*arguments, **options | {"allow_other_workers": len(calls) > 1})

    monkeypatch.setattr(client, "nthreads", nthreads)
    monkeypatch.setattr(client, "submit", submits)
    workers = DaskEngine(client, 1, threads=1, patience=60).open(Recipe(None, "", (), ""))
    assert re.match(r"actor 0 on tcp://127.0.0.1:\d+$", workers.start(wait=False))
    assert len(calls) == 2 and calls[0] == ["tcp://127.0.0.1:1"] and calls[1] == sorted(threads_of())
    workers.close()


def test_errors(folder, client):
    with pytest.raises(adead.InvalidArgumentError, match="workers is 0; it must be at least 1"):
        DaskEngine(client, 0)
    with pytest.raises(adead.BackendUnavailableError, match="Dask starts no actor: ZeroDivisionError: a fault"):
        shared.embed(folder, folder / "dask", engine=DaskEngine(client, make_worker=shared.not_made))
    with pytest.raises(adead.Error, match=r"shard \d \(.*tpu"):
        shared.embed(folder, folder / "dask", device="tpu", engine=DaskEngine(client))
    scheduler = {"cls": distributed.Scheduler, "options": {"dashboard": False, "port": 0}}
    with distributed.SpecCluster(scheduler=scheduler, workers={}) as empty, distributed.Client(empty) as other:
        with pytest.raises(adead.BackendUnavailableError, match="the Dask cluster has no worker, and none came in 0.1 s"):
            shared.embed(folder, folder / "dask", engine=DaskEngine(other, 1, patience=0.1))


def test_actors(client):
    embedder = client.submit(SentenceEmbedder, str(shared.ENCODER), device="cpu", actor=True).result()
    assert embedder.encode(shared.LINES).result().tobytes() == shared.encode(shared.LINES)[0].tobytes()
    assert embedder.width().result() == 32
    writer = client.submit(TextWriter, str(shared.GENERATOR), device="cpu", actor=True, **shared.DRAWN).result()
    with TextGenerator(shared.GENERATOR, "cpu") as model:
        expected = model.generate_batch(shared.PROMPTS, **shared.DRAWN)
    assert writer.generate(shared.PROMPTS, list(range(7))).result() == expected


@pytest.mark.parametrize("partitions", [1, 3])
def test_frames_of_embeddings(folder, client, partitions):
    """Parquet in, Parquet out, rows in their order."""
    frame = dataframe.read_parquet(str(folder / "sentences")).repartition(npartitions=partitions)
    embedded = embed_frame(frame, shared.ENCODER, device="cpu", threads=1)
    assert list(embedded.columns) == ["text", "id", "embedding"] and embedded.npartitions == partitions
    embedded.to_parquet(str(folder / "out"))
    rows = dataframe.read_parquet(str(folder / "out"), dtype_backend="pyarrow").compute()
    assert list(rows["id"]) == [f"id-{number}" for number in range(42)]
    values = numpy.stack(list(rows["embedding"])).astype(numpy.float32)
    assert values.tobytes() == shared.expected_rows().tobytes()


def test_frames_of_texts(folder, client):
    frame = dataframe.read_parquet(str(folder / "prompts"), index=False)
    frame["number"] = frame["prompt"].map_partitions(lambda part: part.reset_index().index.to_series(part.index), meta=("number", int))
    frame = frame.repartition(npartitions=2)
    made = generate_frame(frame, shared.GENERATOR, "prompt", sequence_column="number", device="cpu", stop=["no such text"], **shared.DRAWN)
    rows = made.compute()
    with TextGenerator(shared.GENERATOR, "cpu") as model:
        expected = model.generate_batch(shared.PROMPTS, **shared.DRAWN)
    assert list(rows["generated"]) == [each.text for each in expected]
    assert [list(tokens) for tokens in rows["generated_tokens"]] == [each.tokens for each in expected]
    assert list(rows["generated_finish"]) == ["max_tokens"] * 7


def test_errors_of_frames(folder, client):
    frame = dataframe.read_parquet(str(folder / "sentences"))
    with pytest.raises(adead.InvalidArgumentError, match="has no column 'texts'; it has 'text', 'id'"):
        embed_frame(frame, shared.ENCODER, "texts")
    with pytest.raises(adead.InvalidArgumentError, match="has no column 'number'; it has 'text', 'id'"):
        generate_frame(frame, shared.GENERATOR, sequence_column="number")
    frame["text"] = frame["text"].where(frame["id"] != "id-3")
    with pytest.raises(adead.InvalidArgumentError, match="row 3 of the batch has .* in column 'text'; it must be a str"):
        embed_frame(frame, shared.ENCODER).compute()


def test_the_command(folder, done, client, cluster_of_dask, capsys):
    address = cluster_of_dask.scheduler_address.replace("tcp://", "dask://")
    given = ["--model", str(shared.ENCODER), "--in", str(folder / "sentences"), "--out", str(folder / "dask")]
    assert main(["embed", *given, "--keep", "id", "--rows-per-shard", "8", "--cluster", address]) == 0
    assert main(["check", *given, "--cluster", "dask://local", "--workers", "1"]) == 0
    assert "6 shards with 42 rows have the manifest's hashes" in capsys.readouterr().out
    assert shared.lines_of(folder / "dask") == shared.lines_of(done)
