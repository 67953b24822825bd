#!/usr/bin/env python3
"""Measures how much two devices do compared with one, for embedding, generation and training.

    python3 benches/two_gpus.py --text FILE.gguf --sentences DIR [--devices cuda:0 cuda:1] [--rounds 5]

Needs the wheels of adead and adead-models, and numpy. One process computes everything on the first device, or one process for each
device computes half of it, all of them started before the clock. Rounds alternate. The output has medians and the efficiency: the time of
one device divided by twice the time of two. 1.00 means that two devices do twice as much.

Items: 8,192 sentences of all lengths; 64 texts of 128 tokens; steps of a GPT with 4 blocks of 256 values, batch 16 × 128, as one
rank or as two over TCP that share a batch.
"""

import argparse
import multiprocessing
import socket
import statistics
import time
from pathlib import Path

import numpy

ROOT = Path(__file__).resolve().parent.parent
WORDS = "the sea was calm and the boat came back to the old town before it was dark so we had time for a meal".split()
STEPS = 20
GPT = {"kind": "gpt", "layers": 4, "heads": 8, "width": 256, "context": 128}


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

    trainer = Trainer(GPT, {"kind": "adamw", "rate": 0.001}, batch=16, shards=2, device=device)
    if ranks > 1:
        trainer.join(f"{rank}/{ranks}@127.0.0.1:{options.port}")
    ids = numpy.random.default_rng(7).integers(0, 256, (16, 129))
    x, y = numpy.ascontiguousarray(ids[:, :-1]), numpy.ascontiguousarray(ids[:, 1:])

    def steps():
        for _ in range(STEPS):
            trainer.step(x, y)

    return steps


ITEMS = {"embed": embed, "generate": generate, "train": train}


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
    for name, default in (("rounds", 5), ("count", 8192), ("texts", 64)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    given = {"embed": options.sentences, "generate": options.text, "train": True}
    for item in ITEMS:
        if not given[item] or options.only not in (None, item):
            continue
        one, two = Group(options, item, options.devices[:1]), Group(options, item, options.devices)
        rounds = [(one.run(), two.run()) for _ in range(options.rounds)]
        one.end()
        two.end()
        first, second = (statistics.median(round[side] for round in rounds) for side in (0, 1))
        efficiency = statistics.median(first / (2 * second) for first, second in rounds)
        print(f"{item:9} one {1e3 * first:9.1f} ms, two {1e3 * second:9.1f} ms, efficiency {efficiency:.2f}", flush=True)


if __name__ == "__main__":
    main()
