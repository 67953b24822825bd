import numpy as np

import adead

ctx = adead.Context()  # any device does
here = ctx.device.id
x = adead.Tensor(np.linspace(-1, 1, 300 * 200, dtype=np.float32).reshape(300, 200))
w = adead.Tensor(np.full((200, 100), 0.5, np.float32)).to(here, ctx=ctx)  # a weight: there from now on
h = ctx.relu(ctx.matmul(x, w))
y = ctx.softmax(h)  # what is between stays where it is computed
print(y.places, ctx.tensor_cache(here))
y.to_cpu()  # starts to bring it; nothing waits
ctx.set_tensor_cache(256 << 20)  # at most so many bytes on each GPU
total = np.asarray(y).sum()  # reading waits for it
print(y.places, total)
assert "cpu" in y.places and abs(total - 300) < 1e-3
