import numpy as np

import adead

a = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)
b = np.linspace(1, 3, 4, dtype=np.float32)
x, y = adead.Tensor(a), adead.Tensor(b)

assert np.allclose(np.asarray(x @ y), a @ b)
assert np.allclose(np.asarray(x + y), a + b)  # broadcasting as in NumPy
assert np.allclose(np.asarray(x.sum(axis=1, keepdim=True)), a.sum(axis=1, keepdims=True))
assert np.allclose(np.asarray(adead.where(x > 0.0, x, x * 0.0)), np.where(a > 0, a, 0))
assert np.array_equal(np.asarray(adead.concat([x, x], axis=0)), np.concatenate([a, a]))
assert np.array_equal(np.asarray(x.T), a.T)
assert np.array_equal(np.asarray(x.argmax(axis=-1)), a.argmax(axis=-1))
assert np.array_equal(np.asarray(x[1:, ::-2]), a[1:, ::-2]) and np.array_equal(np.asarray(x[x > 0.0]), a[a > 0])
assert np.allclose(np.asarray(np.maximum(x, 0.5) ** 2), np.maximum(a, 0.5) ** 2)  # computed by adead
