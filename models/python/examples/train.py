"""train.py [DEVICE]: a network learns whether two numbers have the same sign. Its hash is the same on every device."""

import sys

from adead_models import Trainer

# Points in a square, from a simple generator.
state = 1
points: list[float] = []
for _ in range(800):
    state = state * 16807 % 2147483647
    points.append(state / 1073741824 - 1)
pairs = [points[i : i + 2] for i in range(0, 800, 2)]
classes = [int((x > 0) == (y > 0)) for x, y in pairs]

with Trainer(
    [{"linear": 32}, "tanh", {"linear": 2}],
    {"kind": "adam", "rate": 0.02},
    input=[2],
    batch=40,
    seed=7,
    device=sys.argv[1] if len(sys.argv) > 1 else None,
) as net:
    for part in range(1, 5):
        loss = net.fit(pairs, classes, epochs=10)
        print(f"epoch {10 * part}: loss {loss:.4f}")
    print(f"{net.evaluate(pairs, classes).accuracy:.1%} right on {net.device}, sha256 {net.sha256()}")
