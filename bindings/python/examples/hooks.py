import adead

p = adead.Context("cpu").pipeline().input((2,))
x = p.value
p.mul(x).hook(lambda gradient: p.scale(0.5).value).sum(axis="all")
(slope,) = p.gradients([x])
found = p.switch(slope).compile().run(adead.Tensor([3.0, -0.25]))
assert found.tolist() == [3.0, -0.25]  # half of 2·x
