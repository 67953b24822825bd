"""Jobs on Ray, and actors of Ray Data: the hashes of a run on one machine, a killed worker, the order of rows."""

import json
import pathlib

import adead
import numpy
import pytest

pyarrow = pytest.importorskip("pyarrow")
ray = pytest.importorskip("ray")
pytest.importorskip("ray.data")
from pyarrow import parquet

import cluster_shared as shared
from adead_models import TextGenerator
from adead_models.cluster import WorkerLostError
from adead_models.cluster._command import main
from adead_models.ray import RayEngine, SentenceEmbedder, TextWriter

# Of Ray itself.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module", autouse=True)
def cluster_of_ray():
    with pytest.raises(adead.InvalidArgumentError, match=r"Ray is not connected: call ray.init\(\) first"):
        RayEngine()
    # Ray's processes can't import the tests.
    ray.cloudpickle.register_pickle_by_value(shared)
    # Not the one that this machine may have.
    ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    context = ray.data.DataContext.get_current()
    context.execution_options.preserve_order = True
    context.enable_progress_bars = False
    yield
    ray.shutdown()


@pytest.mark.parametrize("workers", [1, 2])
def test_ray_computes_what_one_process_does(folder, done, workers):
    report = shared.embed(folder, folder / "ray", engine=RayEngine(workers))
    shared.assert_embedded(folder / "ray", report)
    assert shared.lines_of(folder / "ray") == shared.lines_of(done)
    assert shared.check(folder, done, engine=RayEngine(workers)).checked == tuple(range(6))


def test_texts_are_the_same(folder):
    reports = [shared.generate(folder, folder / "ray", engine=RayEngine(2)), shared.generate(folder, folder / "local")]
    assert reports[0].sha256 == reports[1].sha256 and shared.lines_of(folder / "ray") == shared.lines_of(folder / "local")


def test_a_killed_worker_changes_nothing_and_is_told(folder, done, caplog):
    report = shared.embed(folder, folder / "ray", engine=RayEngine(2, make_worker=shared.killed_once(folder)))
    shared.assert_embedded(folder / "ray", report, repeated=[shared.KILLED])
    assert report.repeated[0].worker.startswith("actor ") and "ActorDiedError" in report.repeated[0].why
    assert "shard 3 (a.parquet, rows 24 to 31) was lost with actor" in caplog.text
    assert shared.lines_of(folder / "ray") == shared.lines_of(done)


def test_a_shard_that_kills_every_worker_is_an_error(folder):
    with pytest.raises(WorkerLostError, match="shard 3 .* was lost with its worker 2 times"):
        shared.embed(folder, folder / "ray", retries=1, engine=RayEngine(1, make_worker=shared.KilledAlways))
    report = shared.embed(folder, folder / "ray", engine=RayEngine(2))
    shared.assert_embedded(folder / "ray", report)
    assert report.skipped == (0, 1, 2)


def test_errors(folder):
    for engine, told in (({"num_cpus": 3}, "needs 3 CPU; the Ray cluster has 2"), ({"num_gpus": 1}, "needs 1 GPU; the Ray cluster has 0")):
        with pytest.raises(adead.InvalidArgumentError, match=told):
            shared.embed(folder, folder / "ray", engine=RayEngine(**engine))
    with pytest.raises(adead.InvalidArgumentError, match="workers is 0; it must be at least 1"):
        RayEngine(0)
    with pytest.raises(RuntimeError, match=r"(?s)shard \d .*ActorDiedError: .*ZeroDivisionError: a fault"):
        shared.embed(folder, folder / "ray", engine=RayEngine(make_worker=shared.not_made))
    with pytest.raises(adead.Error, match=r"shard \d \(.*tpu"):
        shared.embed(folder, folder / "ray", device="tpu", engine=RayEngine())


@pytest.mark.parametrize("batch_size", [1, 5, None])
def test_map_batches_of_a_data_set(folder, batch_size):
    """Parquet in, Parquet out, rows in their order."""
    rows = (
        ray.data.read_parquet([str(folder / "sentences/a.parquet"), str(folder / "sentences/b.parquet")])
        .map_batches(
            SentenceEmbedder,
            fn_constructor_kwargs={"model": str(shared.ENCODER), "device": "cpu", "threads": 1},
            compute=ray.data.ActorPoolStrategy(size=2),
            num_cpus=0.5,
            batch_size=batch_size,
        )
        .materialize()
    )
    rows.write_parquet(str(folder / "out"))
    written = rows.take_all()
    assert [row["id"] for row in written] == [f"id-{number}" for number in range(42)]
    embeddings = numpy.stack([row["embedding"] for row in written])
    assert embeddings.dtype == numpy.float32 and embeddings.tobytes() == shared.expected_rows().tobytes()
    assert sum(parquet.read_metadata(path).num_rows for path in pathlib.Path(folder / "out").glob("*.parquet")) == 42


@pytest.mark.parametrize("batch_size", [2, 100])
def test_map_batches_generates(folder, batch_size):
    prompts = [{"prompt": prompt, "number": number} for number, prompt in enumerate(shared.PROMPTS)]
    rows = (
        ray.data.from_items(prompts, override_num_blocks=2)
        .map_batches(
            TextWriter,
            fn_constructor_kwargs={
                "model": str(shared.GENERATOR),
                "column": "prompt",
                "sequence_column": "number",
                "device": "cpu",
                **shared.DRAWN,
            },
            compute=ray.data.ActorPoolStrategy(size=2),
            num_cpus=0.5,
            batch_size=batch_size,
        )
        .take_all()
    )
    with TextGenerator(shared.GENERATOR, "cpu") as model:
        expected = model.generate_batch(shared.PROMPTS, **shared.DRAWN)
    assert [row["generated"] for row in rows] == [each.text for each in expected]
    assert [list(row["generated_tokens"]) for row in rows] == [each.tokens for each in expected]
    assert [row["generated_finish"] for row in rows] == ["max_tokens"] * 7


def test_actors_without_a_cluster():
    writer = TextWriter(shared.GENERATOR, device="cpu", **shared.DRAWN)
    with TextGenerator(shared.GENERATOR, "cpu") as model:
        alone = [model.generate(prompt, **shared.DRAWN) for prompt in shared.PROMPTS]
    # Without numbers, each has the same sequence.
    assert writer.generate(shared.PROMPTS) == alone
    assert writer.generate([]) == [] and writer({"text": []})["generated"].shape == (0,)
    likely = TextWriter(shared.GENERATOR, device="cpu", max_tokens=5)
    assert likely.generate(shared.PROMPTS) == [likely.generate([prompt])[0] for prompt in shared.PROMPTS]
    with pytest.raises(adead.InvalidArgumentError, match="sequences has 1 numbers for 7 prompts"):
        writer.generate(shared.PROMPTS, [0])
    embedder = SentenceEmbedder(shared.ENCODER, device="cpu")
    assert embedder({"text": numpy.array([], object)})["embedding"].shape == (0, embedder.width()) == (0, 32)
    with pytest.raises(adead.InvalidArgumentError, match="the batch has no column 'text'; it has 'a', 'b'"):
        embedder({"a": [], "b": []})
    with pytest.raises(adead.InvalidArgumentError, match="row 1 of the batch has NoneType in column 'text'; it must be a str"):
        embedder({"text": ["a", None]})


def test_the_command_starts_a_cluster_and_ends_it(folder, capsys, monkeypatch):
    # The tests have one.
    begun = []
    monkeypatch.setattr(ray, "init", lambda *args, **kwargs: begun.append((args, kwargs)))
    monkeypatch.setattr(ray, "shutdown", lambda: begun.append("end"))
    given = ["--model", str(shared.ENCODER), "--in", str(folder / "sentences"), "--out", str(folder / "ray"), "--json"]
    assert main(["embed", *given, "--cluster", "ray://local", "--workers", "2"]) == 0
    assert begun == [(("local",), {"num_cpus": 2, "include_dashboard": False, "log_to_driver": False}), "end"]
    assert json.loads(capsys.readouterr().out)["computed"] == [0, 1]
