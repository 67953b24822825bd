#!/usr/bin/env python3
"""Compares losses and optimisers with the node tests of ONNX: SoftmaxCrossEntropyLoss, Adam and Momentum.

    python3 tests/train/onnx_nodes.py FOLDER

FOLDER is onnx/backend/test/data/node of the package onnx on PyPI, whose files are read without the package. Needs the wheels of adead and
adead-models, and numpy; ci/train runs it. Every value may be off by 2e-6 of the greatest one of its test. Fails if one is further off,
or if a test is missing.

A network is one linear layer. With the identity as its matrix, its cross-entropy is that of the test's scores. With one input of 1 and the
test's parameters as its matrix, the mean of squared differences has the test's gradients for targets of X - n·G/2.
"""

import json
import struct
import sys
import tempfile
from pathlib import Path

import numpy
from adead_models import Trainer

MOST = 2e-6
# Steps after which Adam's corrections are 1: the tests have none.
MANY = 1_000_000
LOSSES, OPTIMIZERS = 34, 5
# In onnx 1.19.1 this node lacks the attribute with which its outputs were computed (onnx/backend/test/case/node/adam.py).
LACKS_EPSILON = {"test_adam_multiple": 1e-2}


def fields(data):
    """The fields of a protobuf message: number, wire type, value."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = varint()
        kind = key & 7
        if kind == 0:
            value = varint()
        else:
            length = {1: 8, 5: 4}.get(kind) or varint()
            value, at = data[at : at + length], at + length
        yield key >> 3, kind, value


def of(data, number):
    """The values of one field."""
    return [value for found, _, value in fields(data) if found == number]


def tensor(path):
    """A TensorProto in its file."""
    data = path.read_bytes()
    dims = [value for number, kind, value in fields(data) if number == 1 and kind == 0]
    (code,) = of(data, 2)
    dtype = {1: "<f4", 6: "<i4", 7: "<i8"}[code]
    return numpy.frombuffer(b"".join(of(data, 9)), dtype).reshape(dims)


def test(folder):
    """A node test: the operation, its attributes, its inputs and its outputs."""
    (graph,) = of((folder / "model.onnx").read_bytes(), 7)
    (node,) = of(graph, 1)
    attributes = {}
    for attribute in of(node, 5):
        parts = {number: value for number, _, value in fields(attribute)}
        kind = parts[20]
        if kind == 1:
            (value,) = struct.unpack("<f", parts[2])
        else:
            value = parts[3] - (parts[3] >> 63 << 64) if kind == 2 else parts[4].decode()
        attributes[parts[1].decode()] = value
    data = folder / "test_data_set_0"
    files = [sorted(data.glob(f"{kind}_*.pb"), key=lambda path: int(path.stem.split("_")[1])) for kind in ("input", "output")]
    return of(node, 4)[0].decode(), attributes, *([tensor(path) for path in paths] for paths in files)


def write(path, tensors, step=0, seed=0):
    """A checkpoint: tensors of f32 by name, the step and the seed in words of 16 bits."""
    counters = [number >> 16 * word & 0xFFFF for number in (step, seed) for word in range(4)]
    tensors = {**tensors, "training.counters": numpy.array(counters)}
    header, data = {}, b""
    for name, values in tensors.items():
        own = numpy.asarray(values, "<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": list(numpy.shape(values)), "data_offsets": [len(data), len(data) + len(own)]}
        data += own
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def read(path):
    """The tensors of a safetensors file."""
    data = path.read_bytes()
    (length,) = struct.unpack_from("<Q", data)
    header, rest = json.loads(data[8 : 8 + length]), data[8 + length :]
    parts = {name: info["data_offsets"] for name, info in header.items() if name != "__metadata__"}
    return {name: numpy.frombuffer(rest[begin:end], "<f4").reshape(header[name]["shape"]) for name, (begin, end) in parts.items()}


def off(found, expected):
    """How far values are off, as a part of the greatest one."""
    expected = numpy.asarray(expected, numpy.float64)
    return float(numpy.abs(numpy.asarray(found, numpy.float64) - expected).max() / max(1e-3, numpy.abs(expected).max()))


def cross_entropy(file, x, labels, batch):
    """The losses of batches of rows."""
    classes = x.shape[1]
    # So small a rate that the identity stays one.
    trainer = Trainer([{"linear": classes}], {"kind": "sgd", "rate": 1e-30}, input=[classes], batch=batch)
    write(file, {"0.weight": numpy.eye(classes), "0.bias": numpy.zeros(classes)})
    trainer.load(file)
    with trainer:
        return numpy.array([trainer.step(x[at : at + batch], labels[at : at + batch]) for at in range(0, len(x), batch)])


def loss(file, attributes, inputs, outputs):
    x, labels = inputs[:2]
    rows, targets = numpy.moveaxis(x, 1, -1).reshape(-1, x.shape[1]), labels.reshape(-1)
    kept = targets != attributes.get("ignore_index", targets.min() - 1)
    weights = inputs[2][targets[kept]] if len(inputs) > 2 else numpy.ones(kept.sum())
    losses = numpy.zeros(len(rows))
    losses[kept] = cross_entropy(file, rows[kept], targets[kept], 1)
    worst = 0.0
    if len(outputs) > 1:
        logs = numpy.moveaxis(outputs[1], 1, -1).reshape(rows.shape)
        worst = off(-losses[kept], logs[kept, targets[kept]])
    losses[kept] *= weights
    reduction = attributes.get("reduction", "mean")
    if reduction == "none":
        return max(worst, off(losses, outputs[0].reshape(-1)))
    if reduction == "sum":
        return max(worst, off(losses.sum(), outputs[0]))
    if len(inputs) == 2:
        # All rows are one batch, whose mean the loss is.
        worst = max(worst, off(cross_entropy(file, rows[kept], targets[kept], int(kept.sum()))[0], outputs[0]))
    return max(worst, off(losses.sum() / weights.sum(), outputs[0]))


def step(file, rule, states, x, gradient):
    """A parameter and its states after a step with this gradient."""
    n = x.size
    trainer = Trainer([{"linear": n}], rule, input=[1], batch=1, loss="mse")
    own = {f"training.{name}.0.weight": values.reshape(n, 1) for name, values in states.items()}
    own |= {f"training.{name}.0.bias": numpy.zeros(n) for name in states}
    write(file, {"0.weight": x.reshape(n, 1), "0.bias": numpy.zeros(n), **own}, MANY)
    trainer.load(file)
    with trainer:
        targets = x.astype(numpy.float64) - gradient.astype(numpy.float64) * n / 2
        trainer.step(numpy.ones((1, 1), numpy.float32), targets.astype(numpy.float32).reshape(1, n))
        trainer.save(file)
    found = read(file)
    return [found[name].reshape(x.shape) for name in ["0.weight", *(f"training.{name}.0.weight" for name in states)]]


def optimizer(file, name, kind, attributes, inputs, outputs):
    rate, time, rest = float(inputs[0]), int(inputs[1]), inputs[2:]
    state_names = ["momentum"] if kind == "Momentum" else ["mean", "square"]
    if kind == "Momentum":
        # The first gradient counts whole, and so do later ones with beta 1, as in PyTorch.
        assert time == 0 or attributes["beta"] == 1, attributes
        nesterov = attributes["mode"] == "nesterov"
        own = {"kind": "sgd", "rate": rate, "momentum": attributes["alpha"], "nesterov": nesterov}
    else:
        assert time == 0 and attributes.get("norm_coefficient_post", 0) == 0, (time, attributes)
        betas = [attributes["alpha"], attributes["beta"]]
        own = {"kind": "adam", "rate": rate, "betas": betas, "eps": attributes.get("epsilon") or LACKS_EPSILON[name]}
    own["weight_decay"] = attributes["norm_coefficient"]
    count, worst = len(rest) // (2 + len(state_names)), 0.0
    for number in range(count):
        x, gradient, *states = rest[number::count]
        found = step(file, own, dict(zip(state_names, states, strict=True)), x, gradient)
        worst = max([worst, *map(off, found, outputs[number::count])])
    return worst


def main():
    folder = Path(sys.argv[1])
    counts, wrong = {"loss": 0, "optimizer": 0}, []
    # The expanded tests have the same numbers.
    folders = [path for path in sorted(folder.iterdir()) if not path.name.endswith("_expanded")]
    with tempfile.TemporaryDirectory() as scratch:
        file, greatest = Path(scratch) / "state.safetensors", 0.0
        for path in folders:
            if not path.name.startswith(("test_sce_", "test_adam", "test_momentum", "test_nesterov_momentum")):
                continue
            kind, attributes, inputs, outputs = test(path)
            what = "loss" if kind == "SoftmaxCrossEntropyLoss" else "optimizer"
            if what == "loss":
                worst = loss(file, attributes, inputs, outputs)
            else:
                worst = optimizer(file, path.name, kind, attributes, inputs, outputs)
            counts[what] += 1
            greatest = max(greatest, worst)
            if worst > MOST:
                wrong.append(f"{path.name}: off by {worst:.1e}")
    print(f"ONNX: {counts['loss']} tests of losses, {counts['optimizer']} of optimisers; the greatest difference is {greatest:.1e}")
    if counts != {"loss": LOSSES, "optimizer": OPTIMIZERS}:
        wrong.append(f"there must be {LOSSES} tests of losses and {OPTIMIZERS} of optimisers")
    sys.exit("FAILED: " + "; ".join(wrong) if wrong else 0)


if __name__ == "__main__":
    main()
