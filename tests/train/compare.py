#!/usr/bin/env python3
"""Compares gradients with PyTorch's in float64, on random small networks.

    python3 tests/train/compare.py [--device cpu] [--networks 200] [--seed 1]

Needs the wheels of adead and adead-models, numpy and torch, which is why CI does not run it. Networks are layers over vectors and images
with each loss, and decoders. A step of SGD without momentum gives the gradients: (old weights - new weights) / rate. A gradient may be
off by 1e-4 of the greatest one of its parameter, or by four times as much as PyTorch's own in f32 is: norms of two values cancel out.
Fails if one is further off, and prints the worst.
"""

import argparse
import sys

import numpy
import torch
from adead_models import Trainer
from torch.nn import functional

# So great that the weights before the step don't round the gradients away.
RATE = 1024.0
MOST = 1e-4
ACTIVATIONS = {"relu": functional.relu, "gelu": functional.gelu, "silu": functional.silu, "tanh": torch.tanh}


def drawn(random):
    """A description of a network over vectors or images, and its samples."""
    choose = lambda *options: options[random.integers(len(options))]  # noqa: E731
    batch, classes = int(random.integers(1, 9)), int(random.integers(2, 6))
    layers = []
    if random.random() < 0.5:
        shape = [int(random.integers(1, 4)), *(int(n) for n in random.integers(14, 18, 2))]
        for _ in range(random.integers(1, 3)):
            size = int(random.integers(1, 4))
            conv = {"channels": int(random.integers(1, 5)), "size": size, "stride": choose(1, 1, 2), "padding": int(random.integers(0, size))}
            layers += [{"conv": conv}, choose(*ACTIVATIONS)]
        layers += choose([], [{"max_pool": 2}], [{"avg_pool": 2}]) + ["flatten"]
    else:
        shape = [int(random.integers(1, 20))]
    for _ in range(random.integers(0, 3)):
        layers += [{"linear": int(random.integers(1, 24))}, *choose([], ["layer_norm"]), choose(*ACTIVATIONS)]
    loss = choose("cross_entropy", "mse", "binary_cross_entropy")
    layers.append({"linear": classes})
    x = random.standard_normal((batch, *shape)).astype(numpy.float32)
    targets = random.integers(0, classes, batch) if loss == "cross_entropy" else random.random((batch, classes)).astype(numpy.float32)
    return {"kind": "layers", "layers": layers}, {"input": shape, "loss": loss, "batch": batch}, x, targets


def decoder(random):
    heads = int(random.integers(1, 4))
    width, context, batch = heads * int(random.integers(2, 9)), int(random.integers(2, 12)), int(random.integers(1, 5))
    model = {"kind": "gpt", "layers": int(random.integers(1, 3)), "heads": heads, "width": width, "context": context}
    ids = random.integers(0, 256, (batch, context + 1))
    return model, {"batch": batch}, ids[:, :-1], ids[:, 1:]


def linear(weights, name, x):
    return functional.linear(x, weights[f"{name}.weight"], weights.get(f"{name}.bias"))


def norm(weights, name, x):
    return functional.layer_norm(x, x.shape[-1:], weights[f"{name}.weight"], weights[f"{name}.bias"], 1e-5)


def outputs(model, weights, x):
    """What PyTorch computes with these weights."""
    if model["kind"] == "gpt":
        x = weights["words.weight"][x] + weights["positions.weight"]
        for number in range(model["layers"]):
            name = f"blocks.{number}"
            qkv = linear(weights, f"{name}.attention.qkv", norm(weights, f"{name}.norm1", x))
            q, k, v = qkv.unflatten(-1, (3, model["heads"], -1)).permute(2, 0, 3, 1, 4)
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
            x = x + linear(weights, f"{name}.attention.out", y)
            y = functional.gelu(linear(weights, f"{name}.inner", norm(weights, f"{name}.norm2", x)))
            x = x + linear(weights, f"{name}.outer", y)
        return linear(weights, "head", norm(weights, "norm", x)).flatten(0, 1)
    for number, layer in enumerate(model["layers"]):
        name = str(number)
        if layer == "flatten":
            x = x.flatten(1)
        elif layer == "layer_norm":
            x = norm(weights, name, x)
        elif isinstance(layer, str):
            x = ACTIVATIONS[layer](x)
        elif "linear" in layer:
            x = linear(weights, name, x)
        elif "conv" in layer:
            conv = layer["conv"]
            x = functional.conv2d(x, weights[f"{name}.weight"], weights[f"{name}.bias"], conv["stride"], conv["padding"])
        else:
            x = functional.max_pool2d(x, 2) if "max_pool" in layer else functional.avg_pool2d(x, 2)
    return x


def loss_of(kind, found, targets):
    if kind == "mse":
        return functional.mse_loss(found, targets)
    if kind == "binary_cross_entropy":
        return functional.binary_cross_entropy_with_logits(found, targets)
    return functional.cross_entropy(found, targets.flatten())


def gradients(dtype, model, kind, before, x, targets):
    """The loss and the gradients of PyTorch."""
    weights = {name: torch.tensor(values, dtype=dtype, requires_grad=True) for name, values in before.items()}
    given = (torch.tensor(array, dtype=dtype if array.dtype.kind == "f" else torch.long) for array in (x, targets))
    x, targets = given
    loss = loss_of(kind, outputs(model, weights, x), targets)
    loss.backward()
    return loss.item(), {name: own.grad.double().numpy() for name, own in weights.items()}


def compare(device, number, seed):
    """Returns how far the worst gradient is off, beside what it may be off, and the network's description."""
    random = numpy.random.default_rng([seed, number])
    model, given, x, targets = decoder(random) if number % 5 == 4 else drawn(random)
    trainer = Trainer(model, {"kind": "sgd", "rate": RATE}, device=device, seed=number, **given)
    before = trainer.parameters()
    loss = trainer.step(x, targets)
    after = trainer.parameters()
    (exact, expected), (_, single) = (
        gradients(dtype, model, given.get("loss"), before, x, targets) for dtype in (torch.float64, torch.float32)
    )
    worst, allowed = abs(loss - exact) / max(1.0, abs(exact)), MOST
    for name, own in before.items():
        greatest = max(numpy.abs(expected[name]).max(), 1e-3)
        off = lambda found, name=name, greatest=greatest: float(numpy.abs(found - expected[name]).max() / greatest)  # noqa: E731
        worst, allowed = max(worst, off((own.astype(numpy.float64) - after[name]) / RATE)), max(allowed, 4 * off(single[name]))
    return worst, allowed, f"{number}: {model} {given}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--networks", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    found = sorted((compare(options.device, number, options.seed) for number in range(options.networks)), reverse=True)
    for worst, allowed, what in found[:3]:
        print(f"{worst:.1e} of {allowed:.1e}  {what}")
    off = sum(worst > allowed for worst, allowed, _ in found)
    print(f"{options.device}: {options.networks} networks, {off} further off than allowed; the median is {found[len(found) // 2][0]:.1e}")
    sys.exit(off > 0)


if __name__ == "__main__":
    main()
