"""``Trainer`` and ``train``: the hash that every language has, files, ranks, errors."""

import json
import pathlib
import queue
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import adead
import numpy
import pytest

from adead_models import Epoch, Step, Trainer, train

SHARED = json.loads((pathlib.Path(__file__).resolve().parents[3] / "tests/train/trainer.json").read_text())


def trainer(**changed):
    description = SHARED["description"] | {"device": "cpu"} | changed
    return Trainer(description.pop("model"), description.pop("optimizer"), **description)


def samples(count=SHARED["samples"]):
    x = ((numpy.arange(count * 6) * 7919 % 1009) / 504.5 - 1).astype(numpy.float32).reshape(count, 6)
    return x, (x[:, 0] > 0).astype(numpy.int64) + (x[:, 1] > numpy.float32(0.3))


def free_place(size):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return [f"{rank}/{size}@127.0.0.1:{listener.getsockname()[1]}" for rank in range(size)]


@pytest.mark.parametrize("threads", [1, 3])
def test_the_shared_training_has_its_hash(threads):
    x, classes = samples()
    told = []
    with trainer(threads=threads) as net:
        before = net.evaluate(x, classes)
        loss = net.fit(x, classes, SHARED["epochs"], lambda *event: told.append(event))
        after = net.evaluate(x, classes)
        assert (net.steps, net.batch, net.device, net.sha256()) == (200, 24, "cpu", SHARED["sha256"])
        assert [event[1] for event in told] == list(range(1, 201)) and told[-1][0] == SHARED["epochs"]
        assert loss < before.loss and after.accuracy > 0.9 > before.accuracy
        predicted = net.predict(x)
        assert predicted.shape == (240, 3) and predicted.dtype == numpy.float32
        assert (predicted.argmax(axis=1) == classes).mean() == after.accuracy
        shapes = {name: values.shape for name, values in net.parameters().items()}
        assert sorted(shapes.values()) == [(3,), (3, 32), (32,), (32, 6)], shapes


def test_recomputation_changes_no_bit():
    x, classes = samples()
    with trainer(recompute=True) as net:
        net.fit(x, classes, SHARED["epochs"])
        assert net.sha256() == SHARED["sha256"]


def test_steps_of_batches_are_what_fit_makes():
    x, classes = samples(24)
    with trainer() as one, trainer() as other:
        losses = [one.step(x.tolist(), list(map(int, classes))) for _ in range(3)]
        assert losses == sorted(losses, reverse=True)
        for _ in range(3):
            other.step(x.astype(numpy.float64), classes.astype(numpy.int32))
        assert one.sha256() == other.sha256()


def test_a_training_goes_on_from_its_file(tmp_path):
    x, classes = samples(96)
    with trainer() as whole, trainer() as first, trainer(threads=1) as second:
        whole.fit(x, classes, 3)
        first.fit(x, classes, 1)
        first.save(tmp_path / "state.safetensors")
        second.load(tmp_path / "state.safetensors")
        assert second.steps == 4 and repr(second) == "Trainer(4 steps, batches of 24, cpu)"
        second.fit(x, classes, 2)
        assert second.sha256() == whole.sha256()
        with pytest.raises(adead.IoError, match="missing"):
            second.load(tmp_path / "missing.safetensors")


def test_ranks_have_the_hash_of_one():
    x, classes = samples()

    def rank(place):
        with trainer(threads=1) as net:
            net.join(place, patience=60)
            net.fit(x, classes, SHARED["epochs"])
            return net.sha256()

    with ThreadPoolExecutor(2) as pool:
        assert set(pool.map(rank, free_place(2))) == {SHARED["sha256"]}


class Post:
    """Ranks in threads of this process: each has a queue for each other one."""

    def __init__(self, rank, queues):
        self.rank, self.size, self.queues = rank, len(queues), queues

    def exchange(self, parts):
        for other in range(self.size):
            if other != self.rank:
                self.queues[other][self.rank].put(parts[other])
        return [b"" if other == self.rank else self.queues[self.rank][other].get(timeout=60) for other in range(self.size)]


@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_transport_of_the_program_has_the_hash_of_one_rank(size):
    x, classes = samples()
    queues = [[queue.Queue() for _ in range(size)] for _ in range(size)]

    def rank(number):
        with trainer(threads=1) as net:
            net.join(Post(number, queues))
            net.fit(x, classes, SHARED["epochs"])
            return net.sha256()

    with ThreadPoolExecutor(size) as pool:
        assert set(pool.map(rank, range(size))) == {SHARED["sha256"]}


def test_what_a_transport_raises_ends_the_call():
    class Alone:
        rank, size, result = 0, 1, [b""]

        def exchange(self, parts):
            if isinstance(self.result, BaseException):
                raise self.result
            return self.result

    x, classes = samples(24)
    with trainer() as net:
        for wrong in (1, -1):
            alone = Alone()
            alone.rank = wrong
            with pytest.raises(adead.InvalidArgumentError, match=f"rank {wrong} of 1 ranks"):
                net.join(alone)
        alone = Alone()
        alone.result = [b"", b""]
        with pytest.raises(adead.InvalidArgumentError, match="the bytes of 2 ranks; there are 1"):
            net.join(alone)
        alone.result = [b""]
        net.join(alone)
        net.step(x, classes)
        before = net.sha256()
        for wrong in (ValueError("no network"), KeyboardInterrupt()):
            net.join(Alone())
            alone = Alone()
            net.join(alone)
            alone.result = wrong
            with pytest.raises(type(wrong)):
                net.step(x, classes) if isinstance(wrong, ValueError) else net.fit(x, classes)
            with pytest.raises(adead.IoError, match="can't be used any longer"):
                net.step(x, classes)
        assert net.sha256() == before and net.steps == 1


def test_a_lost_rank_is_named():
    x, classes = samples(24)
    places = free_place(2)

    def leaves():
        with trainer() as net:
            net.join(places[1], patience=60)

    thread = threading.Thread(target=leaves)
    thread.start()
    with trainer() as net:
        net.join(places[0], patience=60)
        before = net.sha256()
        with pytest.raises(adead.IoError, match="rank 1 has left the training"):
            net.step(x, classes)
        assert net.sha256() == before
    thread.join()


def test_what_does_not_fit_is_refused():
    x, classes = samples(24)
    with trainer() as net:
        with pytest.raises(adead.ShapeMismatchError, match="24 samples and 23 targets"):
            net.step(x, classes[:23])
        with pytest.raises(adead.ShapeMismatchError, match="23 samples; a step takes a batch of 24"):
            net.step(x[:23], classes[:23])
        with pytest.raises(adead.ShapeMismatchError, match=r"x is \[24, 5\]; a sample has 6 values"):
            net.step(x[:, :5], classes)
        with pytest.raises(adead.DtypeMismatchError, match="targets is float32; the network takes int64"):
            net.step(x, classes.astype(numpy.float32))
        with pytest.raises(adead.InvalidArgumentError, match="element 3 of targets is 9; there are 3 classes"):
            net.step(x, [0, 0, 0, 9] + [0] * 20)
        with pytest.raises(adead.InvalidArgumentError, match="the loss is NaN"):
            net.step(x * numpy.float32("nan"), classes)
        with pytest.raises(adead.InvalidArgumentError, match="epochs is 0"):
            net.fit(x, classes, 0)
        with pytest.raises(KeyError, match="enough"):
            net.fit(x, classes, 2, lambda *_: (_ for _ in ()).throw(KeyError("enough")))
        assert net.steps == 1
        with pytest.raises(adead.InvalidArgumentError, match="'7' is no place of a rank"):
            net.join("7")
    with pytest.raises(adead.InvalidArgumentError, match="the trainer is closed"):
        net.sha256()
    assert repr(net) == "Trainer(closed)"
    with pytest.raises(adead.InvalidArgumentError, match="unknown variant `lstm`"):
        trainer(model=["lstm"])
    with pytest.raises(adead.InvalidArgumentError, match="threads is 0"):
        trainer(threads=0)
    with trainer(model=[{"linear": 2}], loss="mse") as net, pytest.raises(adead.UnsupportedError, match="has none"):
        net.evaluate(x, numpy.zeros((24, 2), numpy.float32))


JOB = """
batch = 8
epochs = 2
shards = 2
data = { kind = "text", files = ["text"] }
model = { kind = "gpt", layers = 1, heads = 1, width = 8, context = 16 }
optimizer = { kind = "adam", rate = 0.01 }
checkpoint = { file = "state.safetensors" }
"""


def test_a_job_runs_and_goes_on(tmp_path):
    (tmp_path / "text").write_text("a ferry came in, and nobody noticed. " * 40)
    (tmp_path / "job.toml").write_text(JOB)
    told = []
    whole = train(tmp_path / "job.toml", device="cpu", progress=told.append)
    steps = [event for event in told if isinstance(event, Step)]
    assert [event for event in told if isinstance(event, Epoch)] == whole.epochs and len(whole.epochs) == 2
    assert steps[-1].step == steps[-1].steps == whole.steps and len(whole.sha256) == 64
    (tmp_path / "state.safetensors").unlink()
    assert len(train(tmp_path / "job.toml", device="cpu", epochs=1).epochs) == 1
    rest = train(tmp_path / "job.toml", device="cpu", threads=1, resume=True)
    assert (rest.sha256, [epoch.epoch for epoch in rest.epochs]) == (whole.sha256, [2])

    def stops(event):
        raise RuntimeError(f"at {event.step}")

    with pytest.raises(RuntimeError, match="at 1"):
        train(tmp_path / "job.toml", device="cpu", progress=stops)
    with pytest.raises(adead.IoError, match="none.toml"):
        train(tmp_path / "none.toml")
