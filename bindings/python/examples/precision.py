"""The excerpts of docs/precision.md, run one after another. ``ci/guide`` copies what stands between [guide: NAME] and [end] there."""

import adead
from adead import nn

ctx = adead.Context("cpu")
x = adead.Tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
w = adead.Tensor([[0.5, -1.0], [0.25, 2.0], [-0.5, 1.5]])
weight, bias = adead.Tensor([[1.0, 2.0, 3.0]]), adead.Tensor([1.0])

# [guide: call]
y = ctx.matmul(x, w, precision="fixed24")
# [end]
assert y.tolist() == [[-0.5, 7.5], [0.25, 15.0]]

# [guide: context]
ctx.precision = "fixed24"
y = ctx.matmul(x, w)                   # fixed24
z = ctx.matmul(x, w, precision="f32")  # f32
# [end]
assert y.tolist() == z.tolist()

# [guide: layer]
head = nn.Linear(weight, bias, ctx.with_precision("f32"))
# [end]
assert head(x).tolist() == [[15.0], [33.0]]
