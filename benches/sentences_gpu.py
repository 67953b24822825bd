#!/usr/bin/env python3
"""Compares `adead embed` on a GPU with the same model in PyTorch (fp32, TF32 off), in one run, in turns.

    python3 benches/sentences_gpu.py --model DIR [--adead target/release/adead] [--device cuda:0] [--rounds 5]
    python3 benches/sentences_gpu.py --model DIR --device cpu --torch cpu --threads 1 --sentences 128 --batches 32

Needs only torch, numpy and tokenizers: the network is written here with PyTorch's own fused attention and layers. A turn embeds
all sentences of an item, from text to normalised rows in host memory, in batches by length, of 32 and of 1. The output has
medians of sentences per second, and the median of the rounds' ratios. Embeddings that differ by more than 1e-5 end the run.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy
import torch
from tokenizers import Tokenizer
from torch.nn import functional

ROOT = Path(__file__).resolve().parent.parent
LAYERS, WIDTH, HEADS, LONGEST = 6, 384, 12, 256
TOLERANCE = 1e-5


def items():
    """Name and sentences. A word of the first is one token, and there are two special ones."""
    words = "the sea was calm and the boat came back to the old town before it was dark so we had time for a meal".split()
    full = [" ".join(words[(i + j) % len(words)] for j in range(126)) for i in range(512)]
    lines = (ROOT / "tests/sentences/sentences.txt").read_text(encoding="utf-8").split("\n")[:-1]
    return [("512 of 128 tokens", full), ("1,024 of all lengths", lines[:1024])]


def weights(path, device):
    """Reads the f32 tensors of a safetensors file."""
    data = Path(path).read_bytes()
    begin = 8 + int.from_bytes(data[:8], "little")
    found = {}
    for name, entry in json.loads(data[8:begin]).items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            low, high = (begin + at for at in entry["data_offsets"])
            array = numpy.frombuffer(data[low:high], numpy.float32).reshape(entry["shape"])
            found[name.removeprefix("bert.")] = torch.from_numpy(array.copy()).to(device)
    return found


class Torch:
    def __init__(self, model, device):
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
        self.device = torch.device(device)
        self.all = weights(f"{model}/model.safetensors", self.device)
        self.tokenizer = Tokenizer.from_file(f"{model}/tokenizer.json")
        self.tokenizer.enable_truncation(LONGEST)
        self.tokenizer.enable_padding()

    def linear(self, x, name):
        return functional.linear(x, self.all[f"{name}.weight"], self.all[f"{name}.bias"])

    def norm(self, x, name):
        return functional.layer_norm(x, (WIDTH,), self.all[f"{name}.weight"], self.all[f"{name}.bias"], 1e-12)

    def forward(self, ids, own):
        table = "embeddings."
        x = functional.embedding(ids, self.all[f"{table}word_embeddings.weight"])
        x = x + self.all[f"{table}token_type_embeddings.weight"][0]
        x = self.norm(x + self.all[f"{table}position_embeddings.weight"][: ids.shape[1]], f"{table}LayerNorm")
        mask = own[:, None, None, :].bool()
        heads = lambda y: y.view(*ids.shape, HEADS, WIDTH // HEADS).transpose(1, 2)  # noqa: E731
        for layer in range(LAYERS):
            at = f"encoder.layer.{layer}."
            q, k, v = (heads(self.linear(x, f"{at}attention.self.{name}")) for name in ("query", "key", "value"))
            y = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2).reshape(x.shape)
            x = self.norm(x + self.linear(y, f"{at}attention.output.dense"), f"{at}attention.output.LayerNorm")
            y = functional.gelu(self.linear(x, f"{at}intermediate.dense"))
            x = self.norm(x + self.linear(y, f"{at}output.dense"), f"{at}output.LayerNorm")
        own = own[:, :, None].float()
        return functional.normalize((x * own).sum(1) / own.sum(1), dim=1)

    @torch.inference_mode()
    def embed(self, sentences, size):
        rows = numpy.empty((len(sentences), WIDTH), numpy.float32)
        order = sorted(range(len(sentences)), key=lambda i: -len(sentences[i]))
        for first in range(0, len(order), size):
            batch = order[first : first + size]
            encoded = self.tokenizer.encode_batch([sentences[i] for i in batch])
            ids = torch.tensor([each.ids for each in encoded]).to(self.device, non_blocking=True)
            own = torch.tensor([each.attention_mask for each in encoded]).to(self.device, non_blocking=True)
            rows[batch] = self.forward(ids, own).cpu().numpy()
        return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help="the folder of all-MiniLM-L6-v2")
    parser.add_argument("--adead", default=str(ROOT / "target/release/adead"))
    parser.add_argument("--device", default="cuda:0", help="adead's")
    parser.add_argument("--torch", default="cuda", help="PyTorch's")
    parser.add_argument("--threads", type=int, help="of both on the CPU")
    parser.add_argument("--sentences", type=int, default=1024, help="of each item, at most")
    parser.add_argument("--batches", default="32,1")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    if args.threads:
        torch.set_num_threads(args.threads)
    threads = ["--threads", str(args.threads)] if args.threads else []
    peer = Torch(args.model, args.torch)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "rows.npy"
        for title, sentences in items():
            sentences = sentences[: args.sentences]
            text = "".join(f"{sentence}\n" for sentence in sentences).encode()
            for size in map(int, args.batches.split(",")):
                times = []
                for turn in range(args.rounds + 1):  # the first is not counted
                    command = [args.adead, "embed", "--model", args.model, "--device", args.device, "--batch", str(size),
                               *threads, "--out", str(out), "--json"]  # fmt: skip
                    done = subprocess.run(command, input=text, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
                    own = json.loads(done.stdout)["seconds"]
                    begun = time.perf_counter()
                    rows = peer.embed(sentences, size)
                    seconds = time.perf_counter() - begun
                    if turn:
                        times.append((own, seconds))
                    elif (far := abs(rows - numpy.load(out)).max()) > TOLERANCE:
                        sys.exit(f"{title}: they differ by {far}")
                adead, torch_ = (len(sentences) / statistics.median(each) for each in zip(*times))
                ratio = statistics.median(theirs / own for own, theirs in times)
                print(f"{title}, {len(sentences)} sentences, batch {size}: adead {adead:.0f}, PyTorch {torch_:.0f} sentences/s; {ratio:.2f}", flush=True)


main()
