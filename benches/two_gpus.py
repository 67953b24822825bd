#!/usr/bin/env python3
"""Measures how much two devices do compared with one, for embedding, generation and training.

    python3 benches/two_gpus.py --text FILE.gguf --sentences DIR [--devices cuda:0 cuda:1] [--rounds 5]

Needs the wheels of adead and adead-models, and numpy. One process computes everything on the first device, or one process for each
device computes half of it, all of them started before the clock. Rounds alternate. The output has medians and the efficiency: the time of
one device divided by twice the time of two. 1.00 means that two devices do twice as much.

Items: 8,192 sentences of all lengths; 64 texts of 128 tokens; 20 steps of a GPT, batch 16 × 128, as one rank or as two that share
a batch. `--layers`, `--heads` and `--width` change the GPT from 4 blocks with 8 heads of 256 values. With PyTorch, item ddp trains
the same GPT by DistributedDataParallel over NCCL, in f32 without TF32. Its rounds alternate with adead's, and the ratios are PyTorch's
times divided by adead's, on one device and on two.
"""

import argparse
import importlib.util
import multiprocessing
import socket
import statistics
import time
from pathlib import Path

import numpy

ROOT = Path(__file__).resolve().parent.parent
WORDS = "the sea was calm and the boat came back to the old town before it was dark so we had time for a meal".split()
STEPS = 20
BATCH, CONTEXT = 16, 128


def sentences(options):
    lines = (ROOT / "tests/sentences/sentences.txt").read_text(encoding="utf-8").split("\n")[:-1]
    return [lines[i % len(lines)] for i in range(options.count)]


def embed(options, device, rank, ranks):
    from adead_models import SentenceEncoder

    encoder = SentenceEncoder(options.sentences, device)
    own = sentences(options)[rank::ranks]
    return lambda: encoder.encode(own)


def generate(options, device, rank, ranks):
    from adead_models import TextGenerator

    generator = TextGenerator(options.text, device)
    prompts = [" ".join(WORDS[(i + j) % len(WORDS)] for j in range(8)) for i in range(options.texts)][rank::ranks]
    return lambda: generator.generate_batch(prompts, max_tokens=128, ignore_end=True)


def train(options, device, rank, ranks):
    from adead_models import Trainer

    model = {"kind": "gpt", "layers": options.layers, "heads": options.heads, "width": options.width, "context": CONTEXT}
    trainer = Trainer(model, {"kind": "adamw", "rate": 0.001}, batch=BATCH, shards=2, device=device, precision=options.precision)
    if ranks > 1:
        trainer.join(f"{rank}/{ranks}@127.0.0.1:{options.port}")
    x, y = texts()

    def steps():
        for _ in range(STEPS):
            trainer.step(x, y)

    return steps


def texts():
    ids = numpy.random.default_rng(7).integers(0, 256, (BATCH, CONTEXT + 1))
    return numpy.ascontiguousarray(ids[:, :-1]), numpy.ascontiguousarray(ids[:, 1:])


def ddp(options, device, rank, ranks):
    import torch
    from train import Gpt, step_of_torch

    torch.backends.cuda.matmul.allow_tf32 = False
    device = device if device == "cpu" else torch.device(device)
    if device != "cpu":
        torch.cuda.set_device(device)

    def build():
        net = Gpt(options.layers, options.heads, options.width, CONTEXT).to(device)
        if ranks == 1:
            return net
        store = f"tcp://127.0.0.1:{options.port}"
        torch.distributed.init_process_group("gloo" if device == "cpu" else "nccl", store, rank=rank, world_size=ranks)
        return torch.nn.parallel.DistributedDataParallel(net, device_ids=None if device == "cpu" else [device])

    step = step_of_torch(build, [part[rank::ranks] for part in texts()], device, False)

    def steps():
        for _ in range(STEPS):
            step()

    return steps


ITEMS = {"embed": embed, "generate": generate, "train": train, "ddp": ddp}


def work(options, item, device, rank, ranks, pipe):
    run = ITEMS[item](options, device, rank, ranks)
    run()
    pipe.send("ready")
    while pipe.recv() == "go":
        run()
        pipe.send("done")


class Group:
    """Processes that compute one item together."""

    def __init__(self, options, item, devices):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            options.port = free.getsockname()[1]
        context = multiprocessing.get_context("spawn")
        self.pipes, self.processes = [], []
        for rank, device in enumerate(devices):
            own, other = context.Pipe()
            arguments = (options, item, device, rank, len(devices), other)
            process = context.Process(target=work, args=arguments, daemon=True)
            process.start()
            other.close()
            self.pipes.append(own)
            self.processes.append(process)
        for pipe in self.pipes:
            pipe.recv()

    def run(self):
        begin = time.perf_counter()
        for pipe in self.pipes:
            pipe.send("go")
        for pipe in self.pipes:
            pipe.recv()
        return time.perf_counter() - begin

    def end(self):
        for pipe in self.pipes:
            pipe.send("end")
        for process in self.processes:
            process.join()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", help="a language model in a GGUF file")
    parser.add_argument("--sentences", help="the folder of a model of sentence-transformers")
    parser.add_argument("--devices", nargs=2, default=["cuda:0", "cuda:1"])
    parser.add_argument("--only", choices=ITEMS)
    for name, default in (("rounds", 5), ("count", 8192), ("texts", 64), ("layers", 4), ("heads", 8), ("width", 256)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--precision", default="f32", help="of adead's products in training")
    options = parser.parse_args()
    given = {"embed": options.sentences, "generate": options.text, "train": True, "ddp": importlib.util.find_spec("torch")}
    for item in ITEMS:
        if not given[item] or options.only not in (None, item):
            continue
        groups = [Group(options, item, options.devices[:count]) for count in (1, 2)]
        if item == "ddp":
            groups += [Group(options, "train", options.devices[:count]) for count in (1, 2)]
        rounds = [[group.run() for group in groups] for _ in range(options.rounds)]
        for group in groups:
            group.end()
        first, second = (1e3 * statistics.median(round[side] for round in rounds) for side in (0, 1))
        efficiency = statistics.median(round[0] / (2 * round[1]) for round in rounds)
        print(f"{item:9} one {first:9.1f} ms, two {second:9.1f} ms, efficiency {efficiency:.2f}", flush=True)
        if item == "ddp":
            ratios = [statistics.median(round[side] / round[side + 2] for round in rounds) for side in (0, 1)]
            print(f"train beside ddp: one {ratios[0]:.2f}, two {ratios[1]:.2f}", flush=True)


if __name__ == "__main__":
    main()
