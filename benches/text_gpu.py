#!/usr/bin/env python3
"""Compares `adead generate` on a GPU with a model of the same sizes in PyTorch (bf16, static cache, CUDA graph), in one run, in turns.

    python3 benches/text_gpu.py --model FILE.gguf [--adead target/release/adead] [--device cuda:0] [--rounds 5] [--prompt 512]
        [--answer 128] [--texts 32] [--in-process]

Needs only torch, and for --in-process the wheels of adead and adead-models. The network is written here with PyTorch's own attention
and products; its weights are random numbers, because times don't depend on them. adead's times are those that it reports, without
opening the model. The output has medians of tokens per second, of the prompt and of the answer, one text at a time, and the median of
the rounds' ratios; then of answers of several texts at once, whose prompts have one token, so that they hardly count.

The command is a new process each time, so its prompts contain what a first prompt costs. With --in-process, a process that has generated
before computes prompts and one token, as PyTorch does here; making tokens of the text is not counted.
"""

import argparse
import json
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

import torch
from torch.nn import functional

ROOT = Path(__file__).resolve().parent.parent


class Torch:
    """A decoder of the llama family, one text at a time."""

    def __init__(self, file, longest):
        meta = {entry["key"]: entry["value"] for entry in file["metadata"]}
        size = lambda name: int(meta[f"llama.{name}"])  # noqa: E731
        self.layers, self.width, hidden = size("block_count"), size("embedding_length"), size("feed_forward_length")
        self.heads, self.kv = size("attention.head_count"), size("attention.head_count_kv")
        self.head, self.longest = self.width // self.heads, longest
        vocabulary = next(tensor["dims"][0] for tensor in file["tensors"] if tensor["name"] == "token_embd.weight")
        make = lambda *dims: torch.randn(dims, device="cuda", dtype=torch.bfloat16) * 0.02  # noqa: E731
        self.words = make(vocabulary, self.width)
        inner = (self.heads + 2 * self.kv) * self.head
        self.all = [
            (make(inner, self.width), make(self.width, self.width), make(2 * hidden, self.width), make(self.width, hidden))
            for _ in range(self.layers)
        ]
        self.ones = torch.ones(self.width, device="cuda", dtype=torch.bfloat16)
        self.cache = torch.zeros(self.layers, 2, 1, self.kv, longest, self.head, device="cuda", dtype=torch.bfloat16)
        steps = torch.outer(torch.arange(longest), 1e5 ** (-torch.arange(0, self.head, 2) / self.head))
        self.cos, self.sin = (f(steps).cuda().to(torch.bfloat16).repeat(1, 2) for f in (torch.cos, torch.sin))
        self.numbers = torch.arange(longest, device="cuda")
        self.token, self.position = (torch.zeros(1, device="cuda", dtype=torch.long) for _ in range(2))
        self.graph = None

    def rotate(self, x, positions):
        half = torch.cat((-x[..., self.head // 2 :], x[..., : self.head // 2]), -1)
        return x * self.cos[positions] + half * self.sin[positions]

    def forward(self, tokens, positions, whole):
        """Returns the most likely token behind the last one. `whole`: the tokens are a prompt, from the first one on."""
        x = functional.embedding(tokens, self.words)
        seen = None if whole else (self.numbers <= positions)[None, None, None]
        for (qkv, out, up, down), cache in zip(self.all, self.cache):
            y = functional.linear(functional.rms_norm(x, (self.width,), self.ones), qkv).view(len(tokens), -1, self.head)
            q, k, v = y.transpose(0, 1)[None].split((self.heads, self.kv, self.kv), 1)
            q, k = self.rotate(q, positions), self.rotate(k, positions)
            cache[0].index_copy_(2, positions, k)
            cache[1].index_copy_(2, positions, v)
            if whole:
                y = functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
            else:
                y = functional.scaled_dot_product_attention(q, cache[0], cache[1], attn_mask=seen, enable_gqa=True)
            x = x + functional.linear(y[0].transpose(0, 1).reshape(x.shape), out)
            gate, up_to = functional.linear(functional.rms_norm(x, (self.width,), self.ones), up).chunk(2, -1)
            x = x + functional.linear(functional.silu(gate) * up_to, down)
        return functional.linear(functional.rms_norm(x[-1:], (self.width,), self.ones), self.words).argmax(-1)

    def step(self, tokens, position, caches):
        """Returns the most likely tokens behind those of several texts, which all have one position."""
        x, texts = functional.embedding(tokens, self.words), len(tokens)
        seen = (self.numbers <= position)[None, None, None]
        for (qkv, out, up, down), cache in zip(self.all, caches):
            y = functional.linear(functional.rms_norm(x, (self.width,), self.ones), qkv).view(texts, -1, 1, self.head)
            q, k, v = y.split((self.heads, self.kv, self.kv), 1)
            q, k = self.rotate(q, position), self.rotate(k, position)
            cache[0].index_copy_(2, position, k)
            cache[1].index_copy_(2, position, v)
            y = functional.scaled_dot_product_attention(q, cache[0], cache[1], attn_mask=seen, enable_gqa=True)
            x = x + functional.linear(y.reshape(x.shape), out)
            gate, up_to = functional.linear(functional.rms_norm(x, (self.width,), self.ones), up).chunk(2, -1)
            x = x + functional.linear(functional.silu(gate) * up_to, down)
        return functional.linear(functional.rms_norm(x, (self.width,), self.ones), self.words).argmax(-1)

    @torch.inference_mode()
    def run_all(self, texts, answer):
        """Returns the tokens per second of the answers of several texts. Capturing the graph is not counted."""
        shape = (self.layers, 2, texts, self.kv, self.longest, self.head)
        caches = torch.zeros(shape, device="cuda", dtype=torch.bfloat16)
        tokens, position = torch.zeros(texts, device="cuda", dtype=torch.long), torch.zeros(1, device="cuda", dtype=torch.long)
        for _ in range(3):
            self.step(tokens, position, caches)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            tokens.copy_(self.step(tokens, position, caches))
            position += 1
        position.zero_()
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(answer):
            graph.replay()
            tokens.tolist()
        return texts * answer / (time.perf_counter() - begin)

    @torch.inference_mode()
    def run(self, prompt, answer):
        """Returns the tokens per second of the prompt and of the answer."""
        tokens = torch.randint(0, len(self.words), (prompt,), device="cuda")
        if self.graph is None:
            for _ in range(3):
                self.forward(tokens, self.numbers[:prompt], True)
                self.forward(self.token, self.position, False)
            torch.cuda.synchronize()
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                self.token.copy_(self.forward(self.token, self.position, False))
                self.position += 1
        torch.cuda.synchronize()
        begin = time.perf_counter()
        self.token.copy_(self.forward(tokens, self.numbers[:prompt], True))
        self.token.item()
        of_prompt = time.perf_counter()
        self.position.fill_(prompt)
        # Like adead, it looks at every token, to see whether the answer ends.
        for _ in range(answer - 1):
            self.graph.replay()
            self.token.item()
        return prompt / (of_prompt - begin), (answer - 1) / max(time.perf_counter() - of_prompt, 1e-9)


def adead(options, prompt):
    command = [options.adead, "generate", "--model", options.model, "--device", options.device, "--json", "--prompt", "-"]
    run = subprocess.run(command + ["--max-tokens", str(options.answer)], input=prompt, capture_output=True, text=True)
    if run.returncode:
        sys.exit(run.stderr)
    result = json.loads(run.stdout)
    return result["prompt_tokens"] / result["prompt_seconds"], result["tokens_per_second"], result


def adead_all(options):
    """Returns the tokens per second of several answers at once, the time that recordings take included."""
    command = [options.adead, "generate", "--model", options.model, "--device", options.device, "--prompts", "-"]
    command += ["--max-tokens", str(options.answer)]
    run = subprocess.run(command, input="the\n" * options.texts, capture_output=True, text=True)
    if run.returncode:
        sys.exit(run.stderr)
    return float(re.search(r"tokens, ([\d.]+) tokens/s with", run.stderr).group(1))


class InProcess:
    """Prompts in this process."""

    def __init__(self, options):
        from adead_models import TextGenerator

        self.generator = TextGenerator(options.model, options.device)

    def run(self, prompt):
        """Returns the tokens per second of a prompt with one token of the answer."""
        begin = time.perf_counter()
        length = len(self.generator.tokenize(prompt))
        tokens = time.perf_counter()
        self.generator.generate(prompt, max_tokens=1)
        end = time.perf_counter()
        return length / (end - tokens - (tokens - begin))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--adead", default=str(ROOT / "target/release/adead"))
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--in-process", action="store_true", help="also prompts in a process that has generated before")
    for name, default in (("rounds", 5), ("prompt", 512), ("answer", 128), ("texts", 32)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()

    listing = subprocess.run([options.adead, "gguf", options.model, "--json"], capture_output=True, text=True, check=True)
    # A word of it is one token of most vocabularies.
    words = "the sea was calm and the boat came back to the old town before it was dark so we had time for a meal".split()
    prompt = " ".join(words[i % len(words)] for i in range(options.prompt))
    adead(options, prompt)
    length = adead(options, prompt)[2]["prompt_tokens"]
    peer = Torch(json.loads(listing.stdout), length + options.answer)
    peer.run(length, options.answer)
    rounds = [(adead(options, prompt), peer.run(length, options.answer)) for _ in range(options.rounds)]
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, {Path(options.model).name}, prompt of {length} tokens")
    for place, name in enumerate(("prompt", "answer")):
        ours, theirs = (statistics.median(round[side][place] for round in rounds) for side in (0, 1))
        ratio = statistics.median(round[0][place] / round[1][place] for round in rounds)
        print(f"{name:7} adead {ours:9.1f} tokens/s, PyTorch {theirs:9.1f} tokens/s, ratio {ratio:.2f}")
    if options.in_process:
        own = InProcess(options)
        own.run(prompt)
        rounds = [(own.run(prompt), peer.run(length, 1)[0]) for _ in range(3 * options.rounds)]
        ours, theirs = (statistics.median(round[side] for round in rounds) for side in (0, 1))
        ratio = statistics.median(ours / theirs for ours, theirs in rounds)
        print(f"prompt, in process: adead {ours:9.1f} tokens/s, PyTorch {theirs:9.1f} tokens/s, ratio {ratio:.2f}")
    peer.run_all(options.texts, options.answer)
    rounds = [(adead_all(options), peer.run_all(options.texts, options.answer)) for _ in range(options.rounds)]
    ours, theirs = (statistics.median(round[side] for round in rounds) for side in (0, 1))
    ratio = statistics.median(ours / theirs for ours, theirs in rounds)
    print(f"{options.texts} texts adead {ours:9.1f} tokens/s, PyTorch {theirs:9.1f} tokens/s, ratio {ratio:.2f}")


if __name__ == "__main__":
    main()
