#!/usr/bin/env python3
"""Compares `adead embed` in f32, fixed24 and fixed16 with itself, in one run, in turns.

    python3 benches/precision_sentences.py [--model DIR] [--adead target/release/adead] [--device cpu] [--threads 1,16] [--rounds 5]

Needs numpy, and no model: without `--model` it makes one up that has all-MiniLM-L6-v2's sizes, but random weights and a small
vocabulary. A turn embeds all sentences, from text to normalised rows; its time is the one that `adead embed` reports, without opening the
model. Prints the medians of sentences per second, and the medians of each round's ratio to f32.
"""

import argparse
import json
import shutil
import statistics
import struct
import subprocess
import tempfile
from pathlib import Path

import numpy

ROOT = Path(__file__).resolve().parent.parent
TINY = ROOT / "tests/sentences/tiny"
PRECISIONS = ("f32", "fixed24", "fixed16")
WIDTH, HEADS, LAYERS, HIDDEN, POSITIONS = 384, 12, 6, 1536, 512
WORDS = "the ferry was quiet when came in ein schiff le port".split()


def tensors(words):
    """Name and values of each of the model's tensors."""
    draw = numpy.random.default_rng(1)

    def some(spread, *shape, middle=0.0):
        return (middle + spread * draw.standard_normal(shape)).astype(numpy.float32)

    def linear(name, outputs, inputs):
        yield f"{name}.weight", some(0.05, outputs, inputs)
        yield f"{name}.bias", some(0.05, outputs)

    def norm(name):
        yield f"{name}.weight", some(0.1, WIDTH, middle=1.0)
        yield f"{name}.bias", some(0.1, WIDTH)

    for name, rows in (("word", words), ("position", POSITIONS), ("token_type", 2)):
        yield f"embeddings.{name}_embeddings.weight", some(0.05, rows, WIDTH)
    yield from norm("embeddings.LayerNorm")
    for layer in range(LAYERS):
        prefix = f"encoder.layer.{layer}"
        for part in ("self.query", "self.key", "self.value", "output.dense"):
            yield from linear(f"{prefix}.attention.{part}", WIDTH, WIDTH)
        yield from norm(f"{prefix}.attention.output.LayerNorm")
        yield from linear(f"{prefix}.intermediate.dense", HIDDEN, WIDTH)
        yield from linear(f"{prefix}.output.dense", WIDTH, HIDDEN)
        yield from norm(f"{prefix}.output.LayerNorm")


def make_up(folder):
    """Writes a model of MiniLM's sizes, with the tokens of the tests' tiny model."""
    shutil.copytree(TINY, folder)

    def change(name, **values):
        path = folder / name
        path.write_text(json.dumps(json.loads(path.read_text()) | values))

    words = json.loads((folder / "config.json").read_text())["vocab_size"]
    change("config.json", hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS, intermediate_size=HIDDEN,
           max_position_embeddings=POSITIONS)  # fmt: skip
    change("sentence_bert_config.json", max_seq_length=256)
    change("1_Pooling/config.json", word_embedding_dimension=WIDTH)
    header, data, at = {}, [], 0
    for name, values in tensors(words):
        header[name] = {"dtype": "F32", "shape": values.shape, "data_offsets": [at, at + values.nbytes]}
        data.append(values.tobytes())
        at += values.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + b"".join(data))


def items(count):
    """Name and sentences. A word is one token, and there are two special ones."""
    draw = numpy.random.default_rng(2)
    sentence = lambda length: " ".join(draw.choice(WORDS, length))  # noqa: E731
    yield f"{count} of 128 tokens", [sentence(126) for _ in range(count)]
    yield f"{8 * count} of 8 to 40 tokens", [sentence(draw.integers(6, 39)) for _ in range(8 * count)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--adead", type=Path, default=ROOT / "target/release/adead")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", default="1")
    parser.add_argument("--sentences", type=int, help="of 128 tokens; default: 32 a thread, at most 256, and 8,192 on a GPU")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        model = options.model or folder / "model"
        if not options.model:
            make_up(model)
        print(f"{'':8} {'':26} " + " ".join(f"{name:>18}" for name in PRECISIONS))
        for threads in map(int, options.threads.split(",")):
            count = options.sentences or (32 * min(threads, 8) if options.device == "cpu" else 8192)
            for name, sentences in items(count):
                (folder / "in.txt").write_text("\n".join(sentences) + "\n")
                command = [options.adead, "embed", "--model", model, "--in", folder / "in.txt", "--out", folder / "out.npy",
                           "--json", "--device", options.device, "--threads", threads]  # fmt: skip
                rates = {precision: [] for precision in PRECISIONS}
                for _ in range(options.rounds):
                    for precision, kept in rates.items():
                        own = [*map(str, command), "--precision", precision]
                        done = subprocess.run(own, stdout=subprocess.PIPE, check=True, text=True)
                        kept.append(len(sentences) / json.loads(done.stdout)["seconds"])
                texts = []
                for precision, kept in rates.items():
                    ratio = statistics.median(own / first for own, first in zip(kept, rates["f32"]))
                    texts.append(f"{statistics.median(kept):9.0f} ({ratio:5.2f} x)")
                print(f"{threads:3} thr. {name:26} " + " ".join(f"{text:>18}" for text in texts), flush=True)


if __name__ == "__main__":
    main()
