"""Fused pipelines: the bits of the same operations called one after another."""

import inspect
import sys
import threading

import numpy
import pytest

import adead


def floats(random, *shape):
    return adead.Tensor(random.standard_normal(shape, dtype=numpy.float32))


@pytest.fixture
def ctx():
    return adead.Context("cpu", threads=2)


def test_a_chain_in_both_forms(ctx):
    random = numpy.random.default_rng(1)
    x, w1, b1, w2 = (floats(random, *shape) for shape in [(3, 40), (40, 50), (50,), (50, 7)])
    expected = ctx.matmul(ctx.relu(ctx.add(ctx.matmul(x, w1), b1)), w2)
    assert ctx.pipeline().matmul(x, w1).bias(b1).relu().matmul(w2).execute().tobytes() == expected.tobytes()
    mlp = ctx.pipeline().input((3, 40)).matmul(w1).bias(b1).relu().matmul(w2).compile()
    for given in (x, numpy.asarray(x)):
        assert mlp.run(given).tobytes() == mlp(given).tobytes() == expected.tobytes()
    assert (mlp.inputs, mlp.outputs) == ([((3, 40), "f32")], [((3, 7), "f32")])
    assert (mlp.operations, mlp.steps, mlp.device.id) == (4, 2, "cpu") and mlp.memory >= 3 * 50 * 4
    assert repr(mlp) == "Compiled(4 operations in 2 steps on cpu)"
    lines = str(mlp).splitlines()
    assert len(lines) == 3 and "matmul+add+relu(input 0: f32[3, 40]" in lines[1] and "computed output 0" in lines[2]
    assert mlp.to_dot().startswith("digraph pipeline {") and '"step 0" -> "step 1";' in mlp.to_dot()


def test_every_operation_is_a_method(ctx):
    for name in [*adead.OPERATIONS, "bias"]:
        method = getattr(adead.Pipeline, name)
        assert method.__name__ == name and "adead/operations.html" in method.__doc__
        own = list(inspect.signature(method).parameters)
        everywhere = list(inspect.signature(getattr(adead.Context, "add" if name == "bias" else name)).parameters)
        assert own == (everywhere if name == "concat" else [everywhere[0], *everywhere[2:]])
    x = matrix = adead.Tensor([[1.0, -2.0], [3.0, 4.0]])
    row = adead.Tensor([1.0, 2.0])
    blocks = adead.Tensor.frombytes(bytes(i * 37 % 101 for i in range(3 * 34)), "u8", (3, 34))
    cases = {
        "matmul": ((x,), {"trans_b": True, "alpha": 0.5, "bias": row, "activation": "relu"}),
        "dot": ((row,), {}),
        **{name: ((x,), {}) for name in ("add", "sub", "mul", "div", "maximum", "minimum", "pow")},
        **{name: ((x,), {}) for name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")},
        "where": ((x, x), {}),
        "scale": ((3.0,), {}),
        "clamp": ((-1.0,), {"max": 2.5}),
        "gelu": ((), {"form": "erf"}),
        "softmax": ((0,), {}),
        **{name: ((), {"axis": 1, "keepdim": True}) for name in ("sum", "mean", "max", "argmax", "argmin")},
        **{name: ((), {"axes": [0, 1]}) for name in ("min", "prod")},
        "layernorm": ((row,), {"beta": row, "eps": 0.5}),
        "rmsnorm": ((row,), {"residual": x}),
        "rope": ((row.reshape(2, 1), row.reshape(2, 1)), {"interleaved": True}),
        "cumsum": ((0,), {}),
        "topk": ((2,), {}),
        "argtopk": ((1,), {"axis": 0, "dtype": "i32"}),
        "attention": ((x, x), {"causal": True}),
        "ffn": ((x, None, x), {"activation": "silu"}),
        "embedding": ((adead.Tensor([1, 0, 1]),), {}),
        "transpose": ((), {"perm": [1, 0]}),
        "slice": ((), {"start": [1], "step": [1, 2]}),
        "pad": ((adead.Tensor([7.0]),), {"before": [1], "after": [0, 2]}),
        "gather": ((adead.Tensor([[1, 0], [0, 0]]),), {"axis": 0}),
        "cast": (("bf16",), {}),
        "quantized_matmul": ((blocks, "q8_0"), {}),
        "dequantize": (("q8_0",), {}),
    }
    # What takes another first operand than the matrix.
    first = {"dot": row, "where": matrix < 2, "quantized_matmul": adead.Tensor.zeros((2, 32)) + 1.5, "dequantize": blocks}
    for name in adead.OPERATIONS:
        operands, attributes = cases.get(name, ((), {}))
        x = first.get(name, matrix)
        if name == "concat":
            expected = ctx.concat([x, x, x], axis=1)
            both = [ctx.pipeline().concat([x, x, x], axis=1), ctx.pipeline().constant(x).concat([x, x], axis=1)]
        else:
            expected = getattr(ctx, name)(x, *operands, **attributes)
            both = [
                getattr(ctx.pipeline(), name)(x, *operands, **attributes),
                getattr(ctx.pipeline().constant(x), name)(*operands, **attributes),
            ]
        for pipeline in both:
            result = pipeline.execute()
            assert (result.dtype, result.shape) == (expected.dtype, expected.shape), name
            assert result.tobytes() == expected.tobytes(), name


def test_random_chains_give_the_bits_of_single_calls(ctx):
    random = numpy.random.default_rng(7)
    unary = ["neg", "abs", "exp", "sqrt", "relu", "sigmoid", "tanh", "gelu", "silu", "softmax", "floor", "erf"]
    fused = 0
    for round in range(60):
        rows, n = (int(random.integers(1, 60)) for _ in range(2))
        x = floats(random, rows, n)
        pipeline = ctx.pipeline().input((rows, n))
        y, names = x, []
        for _ in range(random.integers(1, 12)):
            name = ["matmul", "bias", "add", "sub", "mul", "div", "scale", *unary][random.integers(0, 19)]
            names.append(name)
            match name:
                case "matmul":
                    operands = [floats(random, y.shape[1], int(random.integers(1, 80)))]
                case "bias" | "add" | "sub" | "mul" | "div":
                    operands = [floats(random, *[y.shape, y.shape[1:], (1,)][random.integers(0, 3)])]
                case "scale":
                    operands = [0.5]
                case _:
                    operands = []
            y = getattr(ctx, "add" if name == "bias" else name)(y, *operands)
            assert getattr(pipeline, name)(*operands) is pipeline
        compiled = pipeline.compile()
        fused += compiled.operations - compiled.steps
        for _ in range(2):
            result = compiled.run(x)
            assert result.shape == y.shape and result.tobytes() == y.tobytes(), (round, names, str(compiled))
    assert fused > 100


def test_a_transformer_block(ctx):
    random = numpy.random.default_rng(17)
    s, heads, d = 10, 3, 8
    n = heads * d
    x, gamma, beta, bias = (floats(random, *shape) for shape in [(s, n), (n,), (n,), (n,)])
    wq, wk, wv, wo = (floats(random, n, n) for _ in range(4))
    up, wide, down = (floats(random, *shape) for shape in [(n, 4 * n), (4 * n,), (4 * n, n)])
    perm = [1, 0, 2]

    h = ctx.layernorm(x, gamma, beta)
    q, k, v = (
        ctx.transpose(ctx.add(ctx.matmul(h, w), bias).reshape(s, heads, d), perm=perm) for w in (wq, wk, wv)
    )
    a = ctx.matmul(ctx.transpose(ctx.attention(q, k, v, causal=True), perm=perm).reshape(s, n), wo)
    a = ctx.add(ctx.add(a, x), bias)
    f = ctx.gelu(ctx.add(ctx.matmul(ctx.layernorm(a, gamma, beta), up), wide), form="tanh")
    y = ctx.add(ctx.add(ctx.matmul(f, down), bias), a)

    block = ctx.pipeline().input((s, n))
    begin = block.value
    h = block.layernorm(gamma, beta).value
    q, k, v = (
        block.switch(h).matmul(w).bias(bias).reshape((s, heads, d)).transpose(perm=perm).value for w in (wq, wk, wv)
    )
    block.switch(q).attention(k, v, causal=True).transpose(perm=perm).reshape(s, n).matmul(wo).add(begin).bias(bias)
    residual = block.value
    assert (residual.shape, residual.dtype, repr(residual)) == ((s, n), "f32", f"Value(f32[{s}, {n}])")
    assert repr(block) == f"Pipeline(f32[{s}, {n}])"
    block.output().layernorm(gamma, beta).matmul(up).bias(wide).gelu(form="tanh").matmul(down).bias(bias).add(residual)
    compiled = block.output().compile()
    assert compiled.operations == 22 and compiled.steps < 16
    results = compiled.run(x)
    assert isinstance(results, tuple) and [result.tobytes() for result in results] == [a.tobytes(), y.tobytes()]


def test_a_pipeline_may_go_on(ctx):
    x = adead.Tensor([[-1.0, 2.0]])
    pipeline = ctx.pipeline().relu(x)
    first = pipeline.compile()
    assert pipeline.execute().tolist() == [[0.0, 2.0]]
    assert pipeline.scale(3.0).execute().tolist() == [[0.0, 6.0]] and first().tolist() == [[0.0, 2.0]]
    # What is named comes out, whatever the value is.
    doubled = pipeline.output().add(pipeline.value).value
    assert pipeline.execute().tolist() == [[0.0, 6.0]] and doubled.shape == (1, 2)
    assert [y.tolist() for y in pipeline.output().execute()] == [[[0.0, 6.0]], [[0.0, 12.0]]]
    # An integer input, which is the second operand.
    ids = ctx.pipeline().input(3, "u32")
    rows = ids.value
    compiled = ids.constant(x.T).embedding(rows).compile()
    assert compiled.inputs == [((3,), "u32")]
    assert compiled(adead.Tensor([1, 0, 1], "u32")).tolist() == [[2.0], [-1.0], [2.0]]
    with pytest.raises(adead.InvalidArgumentError, match="2"):
        compiled(adead.Tensor([1, 0, 2], "u32"))


def test_what_is_executed_is_compiled_once(ctx):
    assert ctx.pipeline_cache() == {"entries": 0, "most": 32, "hits": 0, "misses": 0}
    for i in range(3):
        ctx.pipeline().add(adead.Tensor([1.0 * i]), adead.Tensor([2.0])).relu().execute()
    assert ctx.pipeline_cache() == {"entries": 1, "most": 32, "hits": 2, "misses": 1}
    ctx.trim()
    assert ctx.pipeline_cache()["entries"] == 0


@pytest.mark.parametrize(
    "wrong, error, text",
    [
        (lambda p: p.matmul(adead.Tensor.zeros((4, 4))), adead.ShapeMismatchError, "matmul"),
        (lambda p: p.add(adead.Tensor([1, 2, 3])), adead.DtypeMismatchError, "add"),
        (lambda p: p.softmax(7), adead.InvalidArgumentError, "axis"),
        (lambda p: p.add(), adead.InvalidArgumentError, "add"),
        (lambda p: p.reshape(5), adead.ShapeMismatchError, "6"),
        (lambda p: p.reshape(-6), adead.InvalidArgumentError, "-6"),
        (lambda p: p.input((2, -1)), adead.InvalidArgumentError, "-1"),
        (lambda p: p.input((2,), "f65"), adead.InvalidArgumentError, "f65"),
        (lambda p: p.output(), adead.InvalidArgumentError, "input"),
        (lambda p: p.execute(), adead.InvalidArgumentError, "input"),
        (lambda p: p.add(adead.Context("cpu").pipeline().input(3).value), adead.InvalidArgumentError, "another"),
        (lambda p: p.switch(adead.Context("cpu").pipeline().input(3).value), adead.InvalidArgumentError, "another"),
        (lambda p: p.matmul(adead.default_context().pack(adead.Tensor.zeros((3, 3)))), TypeError, "packed"),
        (lambda p: p.add(p), TypeError, "Pipeline"),
        (lambda p: p.add(2.0), TypeError, "float"),
        (lambda p: p.add(None, b=None), TypeError, "'b' twice"),
        (lambda p: p.relu(adead.Tensor([1.0])), TypeError, "at most 0"),
        (lambda p: p.relu(axis=1), TypeError, "axis"),
        (lambda p: p.switch(None), TypeError, "Value"),
        (lambda p: p.constant(None), TypeError, "None"),
    ],
)
def test_what_is_refused_changes_nothing(ctx, wrong, error, text):
    pipeline = ctx.pipeline().input((2, 3))
    before = pipeline.value
    with pytest.raises(error, match=text):
        wrong(pipeline)
    assert repr(pipeline) == "Pipeline(f32[2, 3])"
    compiled = pipeline.add(before).compile()
    assert str(compiled).splitlines()[0].startswith("1 operations in 1 steps on cpu: 1 inputs, 0 constants, 1 outputs")
    assert compiled(adead.Tensor([[1.0] * 3] * 2)).tolist() == [[2.0] * 3] * 2


def test_an_empty_pipeline(ctx):
    pipeline = ctx.pipeline()
    assert repr(pipeline) == "Pipeline()"
    for call in ("output", "compile", "execute", "reshape"):
        with pytest.raises(adead.InvalidArgumentError):
            getattr(pipeline, call)()
    with pytest.raises(adead.InvalidArgumentError, match="no value yet"):
        pipeline.value
    with pytest.raises(TypeError):
        adead.Pipeline()
    assert pipeline.relu(adead.Tensor([-1.0])).execute().tolist() == [0.0]


def test_what_a_run_is_given_must_fit(ctx):
    compiled = ctx.pipeline().input((2, 3)).relu().compile()
    for inputs, error in [
        ([], adead.InvalidArgumentError),
        ([adead.Tensor.zeros((3, 2))], adead.ShapeMismatchError),
        ([adead.Tensor.zeros((2, 3), "f16")], adead.DtypeMismatchError),
        ([None], TypeError),
        ([1.0], TypeError),
    ]:
        with pytest.raises(error):
            compiled(*inputs)
    assert compiled.run(adead.Tensor.zeros((2, 3))).shape == (2, 3)


def test_gradients(ctx):
    p = ctx.pipeline().input((3,))
    x = p.value
    still = p.detach().value
    loss = p.switch(x).mul(still).add(x).sum(axis="all").value
    (slope,) = p.gradients([x])
    assert (slope.shape, slope.dtype, p.value.shape) == ((3,), "f32", loss.shape)
    found = p.switch(slope).compile().run(adead.Tensor([1.0, -2.0, 0.5]))
    assert found.tolist() == [2.0, -1.0, 1.5]
    with pytest.raises(adead.ShapeMismatchError, match="it must have one element"):
        p.switch(x).gradients([x])
    with pytest.raises(adead.InvalidArgumentError, match="does not depend on value 0"):
        p.switch(x).round().sum(axis="all").gradients([x])
    with pytest.raises(adead.InvalidArgumentError, match="another pipeline"):
        ctx.pipeline().input(()).gradients([x])


def test_no_grad(ctx):
    p = ctx.pipeline().input((2,))
    x = p.value
    with p.no_grad():
        with p.no_grad():
            p.mul(x)
        weights = p.scale(2.0).value
        assert p.set_grad_enabled(False) is False
    (slope,) = p.switch(weights).mul(x).sum(axis="all").gradients([x])
    assert p.switch(slope).scale(1.0).compile().run(adead.Tensor([1.0, 3.0])).tolist() == [2.0, 18.0]
    assert p.set_grad_enabled(True) is True


def test_hooks(ctx):
    p = ctx.pipeline().input((2,))
    x = p.value
    seen = []

    def halved(gradient):
        seen.append(gradient.shape)
        return p.scale(0.5).value

    loss = p.scale(4.0).hook(halved).hook(lambda gradient: None).sum(axis="all").value
    (slope,) = p.gradients([x])
    assert seen == [(2,)] and p.value.shape == loss.shape
    assert p.switch(slope).scale(1.0).compile().run(adead.Tensor([1.0, 3.0])).tolist() == [2.0, 2.0]

    def wrong(gradient):
        raise KeyError("mine")

    def summed(gradient):
        return q.sum(axis="all").value

    for hook, error, text in [
        (wrong, KeyError, "mine"),
        (lambda gradient: 7, TypeError, "Value"),
        (summed, adead.ShapeMismatchError, "hook 0 returned"),
        (lambda gradient: q.gradients([gradient])[0], adead.InvalidArgumentError, "a hook can't record gradients"),
    ]:
        q = ctx.pipeline().input((2,))
        x = q.value
        q.scale(4.0).hook(hook).sum(axis="all")
        with pytest.raises(error, match=text):
            q.gradients([x])
        # The failed call left the pipeline as it was.
        assert q.compile().run(adead.Tensor([1.0, 3.0])).item() == 16.0


def test_a_layer_learns(ctx):
    """Least squares in a compiled loop, as a user writes it."""
    rng = numpy.random.default_rng(1)
    x, true = rng.standard_normal((32, 3), dtype=numpy.float32), numpy.float32([[1.0], [-2.0], [0.5]])
    p = ctx.pipeline().input((32, 3))
    inputs = p.value
    targets = p.input((32, 1)).value
    w = p.input((3, 1)).value
    error = p.switch(inputs).matmul(w).sub(targets).value
    p.switch(error).mul(error).mean(axis="all").output()
    (slope,) = p.gradients([w])
    p.switch(slope).scale(0.2)
    step = p.value
    p.switch(w).sub(step).output()
    compiled, weights = p.compile(), adead.Tensor.zeros((3, 1))
    for _ in range(100):
        loss, weights = compiled(x, x @ true, weights)
    assert loss.item() < 1e-6 and numpy.allclose(weights.numpy(), true, atol=1e-3)


def test_threads_share_a_compiled_pipeline(ctx):
    random = numpy.random.default_rng(11)
    w = floats(random, 70, 70)
    compiled = ctx.pipeline().input((3, 70)).matmul(w).relu().matmul(w).compile()
    wrong = []

    def work(x):
        expected = ctx.matmul(ctx.relu(ctx.matmul(x, w)), w).tobytes()
        for _ in range(50):
            if compiled(x).tobytes() != expected or ctx.pipeline().relu(x).execute().tobytes() != ctx.relu(x).tobytes():
                wrong.append(threading.current_thread())

    threads = [threading.Thread(target=work, args=(floats(random, 3, 70),)) for _ in range(5)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not wrong


def test_threads_may_record_one_pipeline(ctx):
    pipeline = ctx.pipeline().input(4)

    def work():
        for _ in range(200):
            pipeline.scale(1.0)

    threads = [threading.Thread(target=work) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    x = adead.Tensor([1.0, -2.0, 3.0, -4.0])
    assert pipeline.compile()(x).tolist() == x.tolist()


@pytest.mark.parametrize("how", ["run", "execute", "compile"])
def test_the_gil_is_given_up(ctx, how):
    # With an interval that never ends, the other thread runs only when this one gives the GIL up.
    x = adead.Tensor(numpy.ones((64, 64), dtype=numpy.float32))
    pipeline = ctx.pipeline().matmul(x, x)
    call = pipeline.compile().run if how == "run" else getattr(pipeline, how)
    before, seen = sys.getswitchinterval(), []
    thread = threading.Thread(target=lambda: seen.append(True))
    sys.setswitchinterval(1000.0)
    try:
        thread.start()
        for _ in range(100_000):
            if seen:
                break
            call()
        assert seen
    finally:
        sys.setswitchinterval(before)
        thread.join()


def test_python_runs_while_a_pipeline_is_recorded(ctx):
    # What the call is given may come back to the pipeline: nothing is locked then.
    pipeline = ctx.pipeline().input((1, 2))

    class Axis:
        def __index__(self):
            pipeline.relu()
            return -1

    def tensors():
        yield pipeline.relu().value
        raise RuntimeError("tensors")

    assert pipeline.softmax(Axis()).compile().operations == 1
    with pytest.raises(RuntimeError, match="tensors"):
        pipeline.concat(tensors())
    assert pipeline.value.shape == (1, 2)


def test_on_a_gpu(gpu):
    random = numpy.random.default_rng(3)
    x, w, b = (floats(random, *shape) for shape in [(9, 40), (40, 60), (60,)])
    cpu = adead.Context("cpu")
    expected = cpu.relu(cpu.add(cpu.matmul(x, w), b)).tobytes()
    compiled = gpu.pipeline().input((9, 40)).matmul(w).bias(b).relu().compile()
    assert compiled.device.id == gpu.device.id and compiled.steps == 1
    assert compiled(x).tobytes() == expected and gpu.pipeline().matmul(x, w).bias(b).relu().execute().tobytes() == expected
