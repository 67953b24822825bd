#!/usr/bin/env python3
"""Compares training steps of adead-models with PyTorch's, in one run, in turns.

    python3 benches/train.py [--device cuda:0] [--threads 1] [--only gpt] [--rounds 7] [--seconds 0.5] [--compile] [--precision fixed24]

Needs the wheels of adead and adead-models, numpy and torch. A step takes a batch from host memory, and returns the loss. The networks
are an MLP (784, 256, 10), the convolutional network of examples/train/mnist.toml, and decoders with 4 blocks of 256 and 8 of 768
values. PyTorch computes in f32, without TF32, with AdamW's fused kernels where a GPU trains, eagerly or with `torch.compile`. Prints
milliseconds per step, medians over the rounds, and the median of the rounds' ratios: PyTorch's time divided by adead's.
"""

import argparse
import gc
import statistics
import time

import numpy
import torch
from adead_models import Trainer
from torch import nn

ADAMW = {"kind": "adamw", "rate": 0.001}
MLP = ["flatten", {"linear": 256}, "relu", {"linear": 10}]
CNN = [
    {"conv": {"channels": 16, "size": 5, "padding": 2}}, "relu", {"max_pool": 2},
    {"conv": {"channels": 32, "size": 3, "padding": 1}}, "relu", {"max_pool": 2},
    "flatten", {"linear": 128}, "relu", {"linear": 10},
]  # fmt: skip


class Block(nn.Module):
    """A transformer's block with the norms first."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.inner, self.outer = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, positions, width = x.shape
        parts = self.qkv(self.norm1(x)).view(batch, positions, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, positions, width))
        return x + self.outer(nn.functional.gelu(self.inner(self.norm2(x))))


class Gpt(nn.Module):
    def __init__(self, layers, heads, width, context):
        super().__init__()
        self.words, self.positions = nn.Embedding(256, width), nn.Parameter(torch.randn(context, width) * 0.02)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 256, bias=False)

    def forward(self, ids):
        return self.head(self.norm(self.blocks(self.words(ids) + self.positions))).flatten(0, 1)


def images(batch):
    generator = numpy.random.default_rng(7)
    return generator.random((batch, 1, 28, 28), numpy.float32), generator.integers(0, 10, batch)


def texts(batch, context):
    ids = numpy.random.default_rng(7).integers(0, 256, (batch, context + 1))
    return numpy.ascontiguousarray(ids[:, :-1]), numpy.ascontiguousarray(ids[:, 1:])


def mlp():
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))


def cnn():
    conv = lambda inputs, outputs, size: (nn.Conv2d(inputs, outputs, size, padding=size // 2), nn.ReLU(), nn.MaxPool2d(2))  # noqa: E731
    return nn.Sequential(*conv(1, 16, 5), *conv(16, 32, 3), nn.Flatten(), nn.Linear(1568, 128), nn.ReLU(), nn.Linear(128, 10))


def gpt(layers, heads, width, batch=16, context=128):
    model = {"kind": "gpt", "layers": layers, "heads": heads, "width": width, "context": context}
    return model, {"batch": batch}, lambda: Gpt(layers, heads, width, context), texts(batch, context)


def cases():
    shape = {"input": [1, 28, 28]}
    return {
        "mlp, batch 64": (MLP, {"batch": 64, **shape}, mlp, images(64)),
        "mlp, batch 1024": (MLP, {"batch": 1024, **shape}, mlp, images(1024)),
        "cnn, batch 64": (CNN, {"batch": 64, **shape}, cnn, images(64)),
        "gpt 4 x 256, batch 16 x 128": gpt(4, 8, 256),
        "gpt 8 x 768, batch 16 x 128": gpt(8, 12, 768),
        "gpt 4 x 256, batch 2 x 1024": gpt(4, 8, 256, 2, 1024),
    }


def step_of_torch(build, data, device, compiled):
    net = build().to(device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.001, fused=device != "cpu")
    run = torch.compile(net) if compiled else net

    def step():
        x, targets = (torch.from_numpy(part).to(device) for part in data)
        loss = nn.functional.cross_entropy(run(x), targets.flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def seconds(step, least):
    """Seconds of a step, over at least so many seconds."""
    count, begin = 0, time.perf_counter()
    while count == 0 or time.perf_counter() - begin < least:
        step()
        count += 1
    return (time.perf_counter() - begin) / count


def trainer_of(options, model, given):
    how = {"device": options.device, "threads": options.threads, "precision": options.precision}
    return Trainer(model, ADAMW, seed=7, **how, **given)


def memory(options):
    """Both libraries' GPU memory during training, with what they keep for the next step: by the driver's count for adead, and
    PyTorch's own count of what it reserves. Neither includes CUDA's context."""
    print(f"{'network':<30}  adead MiB  PyTorch MiB  ratio")
    torch.zeros(1, device="cuda")
    for case, (model, given, build, data) in cases().items():
        if options.only not in case:
            continue
        gc.collect()
        torch.cuda.empty_cache()
        before = torch.cuda.mem_get_info()[0]
        trainer = trainer_of(options, model, given)
        for _ in range(4):
            trainer.step(*data)
        own = before - torch.cuda.mem_get_info()[0]
        trainer.close()
        torch.cuda.reset_peak_memory_stats()
        step = step_of_torch(build, data, "cuda", options.compile)
        for _ in range(4):
            step()
        torch.cuda.synchronize()
        theirs = torch.cuda.max_memory_reserved()
        print(f"{case:<30}  {own / 2**20:9.0f}  {theirs / 2**20:11.0f}  {theirs / own:5.2f}", flush=True)
        del step


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--only", default="", help="cases whose name has this in it")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--precision", default="f32")
    parser.add_argument("--memory", action="store_true", help="measure the GPU memory of a step instead of its time")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    where = "cpu" if options.device == "cpu" else "cuda"
    how = "compiled" if options.compile else "eager"
    name = torch.cuda.get_device_name() if where == "cuda" else f"CPU, {options.threads} threads"
    print(f"{name}, PyTorch {torch.__version__} {how}, adead {options.precision}")
    if options.memory:
        return memory(options)
    print(f"{'network':<30}  adead ms  PyTorch ms  ratio")
    for case, (model, given, build, data) in cases().items():
        if options.only not in case:
            continue
        trainer = trainer_of(options, model, given)
        steps = (lambda net=trainer, data=data: net.step(*data)), step_of_torch(build, data, where, options.compile)
        for step in steps:
            seconds(step, options.seconds)
        rounds = [[seconds(step, options.seconds) for step in steps] for _ in range(options.rounds)]
        own, theirs = (statistics.median(column) * 1e3 for column in zip(*rounds, strict=True))
        ratio = statistics.median(theirs / own for own, theirs in rounds)
        print(f"{case:<30}  {own:8.3f}  {theirs:10.3f}  {ratio:5.2f}", flush=True)
        trainer.close()


if __name__ == "__main__":
    main()
