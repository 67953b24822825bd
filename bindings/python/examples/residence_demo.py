import numpy as np

import adead

ctx = adead.Context()  # any device works
here = ctx.device.id
x = adead.Tensor(np.linspace(-1, 1, 300 * 200, dtype=np.float32).reshape(300, 200))
w = adead.Tensor(np.full((200, 100), 0.5, np.float32)).to(here, ctx=ctx)  # upload the weight once; it stays there
h = ctx.relu(ctx.matmul(x, w))
y = ctx.softmax(h)  # intermediate values stay on the device that computed them
print(y.places, ctx.tensor_cache(here))
y.to_cpu()  # starts the copy without waiting for it
ctx.set_tensor_cache(256 << 20)  # at most 256 MiB on each GPU
total = np.asarray(y).sum()  # reading waits for the copy
print(y.places, total)
assert "cpu" in y.places and abs(total - 300) < 1e-3
