"""train.py [DEVICE]: a network learns which of two spirals a point is on. The hash of its weights is the same on every device."""

import sys

import numpy

from adead_models import Trainer

# 200 points of each spiral, with their turn as the class.
angle = numpy.sqrt(numpy.arange(200) / 200) * 3 * numpy.pi
arm = numpy.stack([angle * numpy.cos(angle), angle * numpy.sin(angle)], axis=1) / 9
points = numpy.concatenate([arm, -arm]).astype(numpy.float32)
classes = numpy.repeat([0, 1], 200)

with Trainer(
    [{"linear": 64}, "tanh", {"linear": 64}, "tanh", {"linear": 2}],
    {"kind": "adam", "rate": 0.01},
    input=[2],
    batch=50,
    seed=7,
    device=sys.argv[1] if len(sys.argv) > 1 else None,
) as net:
    for _ in range(10):
        loss = net.fit(points, classes, epochs=10)
        print(f"{net.steps} steps, loss {loss:.4f}")
    print(f"{net.evaluate(points, classes).accuracy:.1%} right on {net.device}, sha256 {net.sha256()[:16]}")
