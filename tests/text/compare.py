#!/usr/bin/env python3
"""Compares adead with a forward pass in NumPy, written from the papers, and with llama.cpp, on a real model of the llama family.

    python3 compare.py MODEL.gguf [--prompts 20] [--tokens 64] [--characters 20000]

Needs adead_models, numpy, gguf and, unless --no-peer, xllamacpp. NumPy computes in f32 with the dequantised weights. It is given what
adead wrote and says at each position how likely the token was, so one pass checks an answer. Fails if

- a token of adead's answer is not NumPy's most likely one, and NumPy's margin between both is more than --margin (logits; products
  with rows cut to 8 bits are that far from products with floats: in NumPy with such rows, a change of 10⁻⁷ in them moves logarithms
  of probabilities by up to 0.2, because integers change),
- llama.cpp's answer differs at a token where NumPy's margin between both is more than --margin,
- the perplexity of a text is not within 0.5 % of NumPy's and of llama.cpp's.
"""

import argparse
import json
import math
import sys
from pathlib import Path

import gguf
import numpy
from adead_models import TextGenerator

ROOT = Path(__file__).resolve().parents[2]
QUESTIONS = [
    "The capital of France is", "Explain quantum computing.", "Once upon a time", "def fibonacci(n):", "Der Fluss fließt durch",
    "La capital de España es", "What is the best way to boil an egg?", "1, 2, 3, 4, 5,", "Water boils at", "Dear Sir or Madam,",
    "The three laws of motion are", "import numpy as np\n", "Le soleil se lève à", "To be, or not to be,", "SELECT name FROM",
    "The old captain photographed a broken violin while", "<|im_start|>user\nWhy is the sky blue?<|im_end|>\n<|im_start|>assistant\n",
    "Photosynthesis is the process by which", "# Shopping list\n\n-", "In 1969, the first man",
]  # fmt: skip


class Network:
    """The llama family: RMS norms, neighbouring pairs of queries and keys rotated by positions, grouped heads, gated layers."""

    def __init__(self, path):
        file = gguf.GGUFReader(path)
        field = lambda name: file.fields[f"llama.{name}"].contents()  # noqa: E731
        self.tensors = {t.name: gguf.dequantize(t.data, t.tensor_type).astype(numpy.float32) for t in file.tensors}
        self.layers, self.heads, self.kv = field("block_count"), field("attention.head_count"), field("attention.head_count_kv")
        self.eps, self.base = field("attention.layer_norm_rms_epsilon"), field("rope.freq_base")
        self.size = field("embedding_length") // self.heads

    def norm(self, x, name):
        return x / numpy.sqrt((x * x).mean(-1, keepdims=True) + self.eps) * self.tensors[f"{name}.weight"]

    def rotated(self, x):
        angles = numpy.arange(len(x))[:, None] * self.base ** (-numpy.arange(0, self.size, 2) / self.size)
        cos, sin = numpy.cos(angles)[:, None], numpy.sin(angles)[:, None]
        a, b = x[..., 0::2], x[..., 1::2]
        return numpy.stack([a * cos - b * sin, a * sin + b * cos], -1).reshape(x.shape).astype(numpy.float32)

    def logits(self, tokens):
        """The logits behind each token, [tokens, vocabulary]."""
        linear = lambda x, name: x @ self.tensors[f"{name}.weight"].T  # noqa: E731
        x, n = self.tensors["token_embd.weight"][tokens], len(tokens)
        hidden = numpy.triu(numpy.full((n, n), -numpy.inf, numpy.float32), 1)
        for i in range(self.layers):
            rows = self.norm(x, f"blk.{i}.attn_norm")
            q = self.rotated(linear(rows, f"blk.{i}.attn_q").reshape(n, self.heads, self.size))
            k = self.rotated(linear(rows, f"blk.{i}.attn_k").reshape(n, self.kv, self.size))
            v = linear(rows, f"blk.{i}.attn_v").reshape(n, self.kv, self.size)
            k, v = (numpy.repeat(it, self.heads // self.kv, axis=1) for it in (k, v))
            scores = numpy.einsum("qhd,khd->hqk", q, k) / math.sqrt(self.size) + hidden
            shares = numpy.exp(scores - scores.max(-1, keepdims=True))
            shares /= shares.sum(-1, keepdims=True)
            x = x + linear(numpy.einsum("hqk,khd->qhd", shares, v).reshape(n, -1), f"blk.{i}.attn_output")
            rows = self.norm(x, f"blk.{i}.ffn_norm")
            gate = linear(rows, f"blk.{i}.ffn_gate")
            x = x + linear(gate / (1 + numpy.exp(-gate)) * linear(rows, f"blk.{i}.ffn_up"), f"blk.{i}.ffn_down")
        head = "output" if "output.weight" in self.tensors else "token_embd"
        return linear(self.norm(x, "output_norm"), head)


def logprobs(logits, tokens):
    """The logarithms of the probabilities of tokens 1… by the logits behind the tokens before them."""
    logits = logits[:-1].astype(numpy.float64)
    total = numpy.log(numpy.exp(logits - logits.max(-1, keepdims=True)).sum(-1)) + logits.max(-1)
    return logits[numpy.arange(len(tokens) - 1), tokens[1:]] - total


class Llama:
    """llama.cpp."""

    def __init__(self, path):
        import xllamacpp

        params = xllamacpp.CommonParams()
        params.model.path, params.n_ctx, params.n_parallel, params.n_gpu_layers, params.verbosity = path, 4096, 1, 0, -1
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 2
        self.server = xllamacpp.Server(params)

    def next(self, tokens, count, cached, bias=()):
        options = {"prompt": tokens, "n_predict": count, "temperature": 0, "cache_prompt": cached, "n_probs": 1, "logprobs": 1}
        answer = self.server.handle_completions(options | {"logit_bias": list(bias), "ignore_eos": False})
        # None for a token that is only a part of a character.
        return (answer["choices"][0]["logprobs"] or {}).get("content") or []

    def answer(self, tokens, count):
        return [step["id"] for step in self.next(tokens, count, False)]

    def logprobs(self, tokens):
        """Those of tokens 1…, NaN for tokens that it does not report."""
        # A bias makes it take the token. What it reports are the probabilities without a bias.
        steps = (self.next(tokens[:i], 1, True, [[tokens[i], 1000]]) for i in range(1, len(tokens)))
        return numpy.array([step[0]["logprob"] if step and step[0]["id"] == token else math.nan
                            for step, token in zip(steps, tokens[1:])])  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--prompts", type=int, default=len(QUESTIONS))
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--characters", type=int, default=20_000)
    parser.add_argument("--margin", type=float, default=0.5)
    parser.add_argument("--no-peer", action="store_true")
    args = parser.parse_args()
    model, network = TextGenerator(args.model, device="cpu"), Network(args.model)
    peer = None if args.no_peer else Llama(args.model)
    faults, widest, equal, equal_answers, same, apart = [], 0.0, 0, 0, 0, 0.0
    total = 0
    for number, prompt in enumerate(QUESTIONS[: args.prompts]):
        before = model.tokenize(prompt)
        answer = model.generate(prompt, max_tokens=args.tokens).tokens
        theirs = peer.answer(before, args.tokens) if peer else answer
        tokens = before + answer
        logits = network.logits(tokens)
        own = numpy.array(model.logprobs(tokens))
        apart = max(apart, float(numpy.abs(own - logprobs(logits, tokens)).max()))
        behind = logits[len(before) - 1 : -1]
        margins = behind.max(-1) - behind[numpy.arange(len(answer)), answer]
        total += len(answer)
        equal += int((margins == 0).sum())
        equal_answers += not margins.any()
        widest = max(widest, float(margins.max()))
        if margins.max() > args.margin:
            faults.append(f"prompt {number}: token {margins.argmax()} has a margin of {margins.max():.3f}")
        differs = next((i for i, (a, b) in enumerate(zip(answer, theirs)) if a != b), None)
        if differs is None:
            same += 1
        else:
            margin = float(abs(behind[differs][answer[differs]] - behind[differs][theirs[differs]]))
            print(f"prompt {number}: llama.cpp's answer differs from token {differs} on; NumPy's margin is {margin:.3f}")
            if margin > args.margin:
                faults.append(f"prompt {number}: llama.cpp differs at token {differs}, margin {margin:.3f}")
    print(f"{equal} of {total} tokens are NumPy's most likely ones, in {equal_answers} of {args.prompts} answers all of them; "
          f"the widest margin of another is {widest:.3f}; probabilities are at most {apart:.3f} apart (logarithms)")  # fmt: skip
    if peer:
        print(f"{same} of {args.prompts} answers of {args.tokens} tokens are llama.cpp's")

    lines = (ROOT / "tests/sentences/sentences.txt").read_text(encoding="utf-8")
    text = lines[20_000 : 20_000 + args.characters]
    sums = {"adead": 0.0, "NumPy": 0.0} | ({"llama.cpp": 0.0} if peer else {})
    count = left_out = 0
    for start in range(0, len(text), 2000):
        tokens = model.tokenize(text[start : start + 2000])
        found = {"adead": numpy.array(model.logprobs(tokens)), "NumPy": logprobs(network.logits(tokens), tokens)}
        if peer:
            found["llama.cpp"] = peer.logprobs(tokens)
        reported = ~numpy.isnan(sum(found.values()))
        count, left_out = count + int(reported.sum()), left_out + int((~reported).sum())
        for name, values in found.items():
            sums[name] += float(numpy.sum(values[reported], dtype=numpy.float64))
    if left_out > count // 20:
        sys.exit(f"llama.cpp reports {count} tokens and not {left_out} others")
    found = {name: math.exp(-value / count) for name, value in sums.items()}
    print(f"perplexity of {count} tokens: " + ", ".join(f"{name} {value:.6f}" for name, value in found.items()))
    for name, most in (("NumPy", 0.005), ("llama.cpp", 0.005)):
        if name in found and abs(found["adead"] / found[name] - 1) > most:
            faults.append(f"adead's perplexity is {found['adead'] / found[name] - 1:+.4%} from {name}'s")
    if faults:
        sys.exit("\n".join(faults))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
