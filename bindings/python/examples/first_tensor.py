import adead

x = adead.Tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
w = adead.Tensor([[0.5, -1.0], [0.25, 2.0], [-0.5, 1.5]])
y = (x @ w).softmax(-1)
assert y.shape == (2, 2) and y.dtype == "f32"
print(y.tolist())
print("computed by", adead.default_context())
