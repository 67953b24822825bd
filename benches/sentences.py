#!/usr/bin/env python3
"""Compares `adead embed` with sentence-transformers (PyTorch) and ONNX Runtime on the CPU, in one run, in turns.

    python3 benches/sentences.py --model DIR [--adead target/release/adead] [--threads 1,2] [--rounds 5]

Needs sentence-transformers, onnxruntime, onnx and onnxscript in the Python that runs it. Every peer has a process of its own for
each number of threads, and waits while another one works. A turn embeds all sentences of an item, from text to normalised rows.
adead's process is started anew for each turn; its time is the time that it reports, without opening the model. The output has
medians of sentences per second, and the median of each round's ratio to the better peer. Embeddings that differ from
sentence-transformers' by more than 1e-5 end the run.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy

ROOT = Path(__file__).resolve().parent.parent
BATCH = 32
TOLERANCE = 1e-5


def items():
    """Name and sentences. A word of the first is one token, and there are two special ones."""
    words = "the sea was calm and the boat came back to the old town before it was dark so we had time for a meal".split()
    full = [" ".join(words[(i + j) % len(words)] for j in range(126)) for i in range(64)]
    lines = (ROOT / "tests/sentences/sentences.txt").read_text(encoding="utf-8").split("\n")[:-1]
    return [("64 of 128 tokens", full), ("256 of all lengths", lines[3::4][:256]), ("512 short ones", lines[128:640])]


class Torch:
    """sentence-transformers unchanged."""

    def __init__(self, model, threads):
        import torch
        from sentence_transformers import SentenceTransformer

        torch.set_num_threads(threads)
        self.model = SentenceTransformer(model, device="cpu")

    def embed(self, sentences):
        return self.model.encode(sentences, batch_size=BATCH, show_progress_bar=False)


class Onnx:
    """The same network as an ONNX model, with its tokenizer and pooling, and batches by length as in sentence-transformers."""

    def __init__(self, model, threads):
        import onnxruntime
        from tokenizers import Tokenizer

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        self.session = onnxruntime.InferenceSession(exported(model), options, providers=["CPUExecutionProvider"])
        self.tokenizer = Tokenizer.from_file(f"{model}/tokenizer.json")
        self.tokenizer.enable_truncation(256)
        self.tokenizer.enable_padding()

    def embed(self, sentences):
        rows = numpy.empty((len(sentences), 384), numpy.float32)
        order = sorted(range(len(sentences)), key=lambda i: -len(sentences[i]))
        for first in range(0, len(order), BATCH):
            batch = order[first : first + BATCH]
            encoded = self.tokenizer.encode_batch([sentences[i] for i in batch])
            ids = numpy.array([each.ids for each in encoded], numpy.int64)
            mask = numpy.array([each.attention_mask for each in encoded], numpy.int64)
            (tokens,) = self.session.run(None, {"input_ids": ids, "attention_mask": mask})
            own = mask[:, :, None].astype(numpy.float32)
            means = (tokens * own).sum(1) / own.sum(1)
            rows[batch] = means / numpy.linalg.norm(means, axis=1, keepdims=True)
        return rows


def exported(model):
    """Exports the model as an ONNX file, once."""
    path = Path(tempfile.gettempdir()) / f"adead-bench-{os.getuid()}" / "model.onnx"
    if not path.exists():
        import torch
        from transformers import AutoModel

        class Tokens(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.bert = AutoModel.from_pretrained(model, attn_implementation="eager", add_pooling_layer=False).eval()

            def forward(self, input_ids, attention_mask):
                return self.bert(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state

        path.parent.mkdir(exist_ok=True)
        example, sizes = torch.ones(2, 16, dtype=torch.int64), {0: "batch", 1: "length"}
        torch.onnx.export(Tokens().eval(), (example, example), str(path), input_names=["input_ids", "attention_mask"],
                          dynamic_axes={"input_ids": sizes, "attention_mask": sizes}, dynamo=False)  # fmt: skip
    return str(path)


PEERS = {"sentence-transformers": Torch, "ONNX Runtime": Onnx}


def serve(name, model, threads):
    """Runs a peer's process: reads an item's number, writes seconds."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # a library's output must not mix with the answers
    peer, work = PEERS[name](model, threads), items()
    for line in sys.stdin:
        number, path = line.split(" ", 1)
        begun = time.perf_counter()
        rows = peer.embed(work[int(number)][1])
        seconds = time.perf_counter() - begun
        numpy.save(path.strip(), rows)
        print(seconds, file=out, flush=True)


class Process:
    def __init__(self, name, args, threads, folder):
        self.file = folder / "peer.npy"
        command = [sys.executable, __file__, "--model", args.model, "--serve", name, "--threads", str(threads)]
        environment = os.environ | {"OMP_NUM_THREADS": str(threads), "TOKENIZERS_PARALLELISM": "false"}
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)

    def seconds(self, number):
        self.process.stdin.write(f"{number} {self.file}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        return float(answer) if answer else sys.exit("a peer ended")


class Adead:
    def __init__(self, args, threads, folder):
        self.file = folder / "adead.npy"
        self.command = [args.adead, "embed", "--model", args.model, "--device", "cpu", "--threads", str(threads),
                        "--out", str(self.file), "--json"]  # fmt: skip

    def seconds(self, number):
        text = "".join(f"{sentence}\n" for sentence in items()[number][1])
        done = subprocess.run(self.command, input=text.encode(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
        return json.loads(done.stdout)["seconds"]

    def first(self):
        """Returns the seconds from starting the command to the first embedding in a file."""
        begun = time.perf_counter()
        subprocess.run(self.command, input=b"hello\n", stdout=subprocess.DEVNULL, check=True)
        return time.perf_counter() - begun


def measure(args, threads, folder):
    adead = Adead(args, threads, folder)
    peers = {name: Process(name, args, threads, folder) for name in PEERS if name not in args.without}
    for number, (title, sentences) in enumerate(items()):
        times = {name: [] for name in ["adead", *peers]}
        for turn in range(args.rounds + 1):  # the first is not counted
            for name, who in [("adead", adead), *peers.items()]:
                seconds = who.seconds(number)
                if turn:
                    times[name].append(seconds)
                elif name != "adead" and (far := abs(numpy.load(who.file) - numpy.load(adead.file)).max()) > TOLERANCE:
                    sys.exit(f"{title}: {name} differs by {far}")
        rates = {name: len(sentences) / statistics.median(each) for name, each in times.items()}
        best = zip(*(times[name] for name in peers))
        ratio = statistics.median(min(others) / own for own, others in zip(times["adead"], best))
        shown = ", ".join(f"{name} {rate:.1f}" for name, rate in rates.items())
        print(f"{title}, {threads} threads: {shown} sentences/s; adead to the better peer {ratio:.2f}", flush=True)
    first = statistics.median(adead.first() for _ in range(args.rounds))
    print(f"start to the first embedding, {threads} threads: {first:.3f} s", flush=True)
    for peer in peers.values():
        peer.process.stdin.close()
        peer.process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help="the folder of all-MiniLM-L6-v2")
    parser.add_argument("--adead", default=str(ROOT / "target/release/adead"))
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--without", default="", help="peers to leave out, with commas")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        serve(args.serve, args.model, int(args.threads))
        return
    args.without = args.without.split(",")
    with tempfile.TemporaryDirectory() as folder:
        for threads in map(int, args.threads.split(",")):
            measure(args, threads, Path(folder))


main()
