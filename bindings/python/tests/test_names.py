"""Errors by Python's own names, layers and profiles as text."""

import pytest

import adead


def test_errors_are_pythons_own_too():
    assert issubclass(adead.IoError, OSError) and issubclass(adead.OutOfMemoryError, MemoryError)
    assert issubclass(adead.ShapeMismatchError, ValueError) and issubclass(adead.InvalidArgumentError, ValueError)
    assert issubclass(adead.DtypeMismatchError, TypeError) and not issubclass(adead.InternalError, (ValueError, TypeError))
    with pytest.raises(OSError, match="no-such-file"):
        adead.Program.load("/no-such-file.adead")
    with pytest.raises(MemoryError) as caught:
        adead.Tensor.zeros((1 << 40,))
    assert caught.value.status == 4 and caught.value.code == "out_of_memory" and isinstance(caught.value, adead.Error)


def test_layers_and_profiles_say_what_they_are():
    # The name works without an import of its own.
    weight = adead.Tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    layer = adead.nn.Sequential(adead.nn.Linear(weight), adead.nn.ReLU(), adead.nn.GELU("tanh"))
    assert repr(layer) == 'Sequential(Linear(3 to 2), ReLU(), GELU("tanh"))'
    assert repr(adead.nn.Linear(weight, adead.Tensor([0.0, 1.0]))) == "Linear(3 to 2, bias)"
    assert repr(adead.nn.LayerNorm(weight[0], weight[0])) == "LayerNorm(3, eps=1e-05)"
    assert repr(adead.nn.Embedding(weight)) == "Embedding(2 of 3)" and "nn" in dir(adead)
    with pytest.raises(TypeError, match="Linear: the weight is a tensor .outputs, inputs., not a int"):
        adead.nn.Linear(3, 2)
    with adead.Context("cpu") as ctx:
        profile = ctx.profile()
        assert repr(profile) == "Profile(under way)"
        adead.relu(weight)
        profile.finish()
    assert repr(profile.report).startswith("ProfileReport(1 record in ") and repr(profile.report) in repr(profile)
    assert repr(ctx).endswith("threads)")
