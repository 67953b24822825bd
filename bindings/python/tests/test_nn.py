"""adead.nn: the small model of tests/sentences must give the Rust crate's bits. And misuse of
layers."""

import json
import os
import pathlib
import shutil
import struct

import numpy
import pytest

import adead
from adead import nn

SENTENCES = pathlib.Path(__file__).resolve().parents[3] / "tests/sentences"
WIDTH, MODEL = 32, SENTENCES / "tiny/model.safetensors"
CONFIG = nn.TransformerConfig(width=WIDTH, heads=4, hidden=48, activation="gelu_erf", eps=1e-12)


@pytest.fixture(params=["cpu", "gpu"])
def ctx(request):
    if request.param == "cpu":
        return adead.Context("cpu", threads=2)
    if backend := os.environ.get("ADEAD_TEST_BACKEND"):
        return adead.Context(backend)
    return request.getfixturevalue("gpu")


@pytest.fixture
def cpu():
    return adead.Context("cpu", threads=1)


class Model:
    """BERT with mean pooling and normalisation, as in sentence-transformers."""

    def __init__(self, ctx):
        weights = nn.Weights(MODEL)
        self.ctx = ctx
        self.words = nn.Embedding.load(weights, "embeddings.word_embeddings", 92, WIDTH, ctx)
        positions = weights.tensor("embeddings.position_embeddings.weight", [40, WIDTH])
        types = weights.tensor("embeddings.token_type_embeddings.weight", [2, WIDTH])
        self.positions = nn.Embedding(ctx.add(positions, types[0:1]), ctx)
        self.norm = nn.LayerNorm.load(weights, "embeddings.LayerNorm", WIDTH, 1e-12, ctx)
        self.encoder = nn.TransformerEncoder.load(weights, "encoder.layer", 2, CONFIG, ctx)

    def __call__(self, batch, length=None):
        """Returns the embeddings of sentences from their tokens, padded to a length."""
        ctx, lengths = self.ctx, [len(ids) for ids in batch]
        longest = length or max(lengths)
        ids = numpy.zeros((len(batch), longest), numpy.uint32)
        own = numpy.zeros((len(batch), longest, 1), numpy.float32)
        for row, tokens in enumerate(batch):
            ids[row, : len(tokens)] = tokens
            own[row, : len(tokens)] = 1
        places = numpy.broadcast_to(numpy.arange(longest, dtype=numpy.uint32), ids.shape).copy()
        x = self.norm(ctx.add(self.words(ids), self.positions(places)))
        x = self.encoder(x, lengths if length else None)
        sums = ctx.sum(ctx.mul(x, own), axis=1)
        mean = ctx.div(sums, numpy.array(lengths, numpy.float32).reshape(-1, 1))
        norm = ctx.sqrt(ctx.sum(ctx.mul(mean, mean), axis=-1, keepdim=True))
        least = numpy.full(norm.shape, 1e-12, numpy.float32)
        return ctx.div(mean, ctx.max(ctx.concat([norm, least], axis=-1), axis=-1, keepdim=True)).numpy()


def test_the_encoder_has_the_bits_of_the_rust_crate(ctx):
    tokens = json.loads((SENTENCES / "tiny_tokens.json").read_text())
    expected = numpy.load(SENTENCES / "tiny_bits.npy")
    model = Model(ctx)
    for ids, row in zip(tokens, expected, strict=True):
        assert model([ids]).tobytes() == row.tobytes()
    assert model(tokens, 24).tobytes() == expected.tobytes()
    assert model(tokens[:9], 30).tobytes() == expected[:9].tobytes()


def test_a_sequence_needs_no_batch(cpu):
    encoder = nn.TransformerEncoder.load(nn.Weights(MODEL), "encoder.layer", 1, CONFIG, cpu)
    x = adead.Tensor(numpy.linspace(-1, 1, 5 * WIDTH, dtype=numpy.float32).reshape(5, WIDTH))
    assert encoder(x).tobytes() == encoder(x.reshape(1, 5, WIDTH)).tobytes()
    assert encoder(x).shape == (5, WIDTH)


def test_layers_are_their_operations(ctx):
    x = adead.Tensor([[1.0, -2.0, 3.0], [0.5, 0.25, -1.0]])
    w, b = adead.Tensor([[0.5, -1.0, 0.25], [2.0, -0.5, 1.5]]), adead.Tensor([0.1, -0.2])
    linear = nn.Linear(w, b, ctx)
    assert (linear.inputs, linear.outputs) == (3, 2)
    expected = ctx.matmul(x, w, bias=b, trans_b=True)
    assert linear(x).tobytes() == expected.tobytes()
    assert nn.Linear(w, None, ctx)(x).tobytes() == ctx.matmul(x, w, trans_b=True).tobytes()
    more = ctx.matmul(x, w, expected, b, beta=1.0, trans_b=True, activation="relu")
    assert linear(x, expected, "relu").tobytes() == more.tobytes()
    norm = nn.LayerNorm(adead.Tensor([1.0, 2.0]), b, 1e-5, ctx)
    net = nn.Sequential(linear, nn.GELU("tanh", ctx), nn.ReLU(ctx), norm)
    by_hand = ctx.layernorm(ctx.relu(ctx.gelu(expected, form="tanh")), adead.Tensor([1.0, 2.0]), b, eps=1e-5)
    assert net(x).tobytes() == by_hand.tobytes()
    assert nn.Sequential()(x) is x
    assert nn.GELU()(x).tobytes() == adead.gelu(x, form="erf").tobytes()


def test_weights_are_the_files(cpu):
    weights = nn.Weights(str(MODEL))
    assert (weights.path, len(weights.names())) == (str(MODEL), 37) and weights.names() == sorted(weights.names())
    assert "embeddings.LayerNorm.bias" in weights and "nothing" not in weights
    assert weights.shape("encoder.layer.0.intermediate.dense.weight") == (48, 32)
    assert repr(weights) == f"Weights({MODEL}, 37 tensors)"
    from_numpy = numpy.fromfile(MODEL, numpy.uint8)
    header = json.loads(bytes(from_numpy[8:8 + int.from_bytes(from_numpy[:8].tobytes(), "little")]))
    start = 8 + int.from_bytes(from_numpy[:8].tobytes(), "little")
    for name in weights.names():
        begin, end = header[name]["data_offsets"]
        raw = from_numpy[start + begin : start + end].tobytes()
        widen = {
            "F32": lambda: numpy.frombuffer(raw, numpy.float32),
            "F16": lambda: numpy.frombuffer(raw, numpy.float16).astype(numpy.float32),
            "BF16": lambda: (numpy.frombuffer(raw, numpy.uint16).astype(numpy.uint32) << 16).view(numpy.float32),
        }
        tensor = weights.tensor(name, header[name]["shape"])
        assert (tensor.dtype, list(tensor.shape)) == ("f32", header[name]["shape"])
        assert tensor.tobytes() == widen[header[name]["dtype"]]().tobytes()


def test_tensors_outlive_their_weights(tmp_path):
    copy = shutil.copy(MODEL, tmp_path)
    weights = nn.Weights(copy)
    tensor = weights.tensor("embeddings.LayerNorm.bias", [WIDTH])
    expected = nn.Weights(MODEL).tensor("embeddings.LayerNorm.bias", [WIDTH]).tobytes()
    del weights
    os.remove(copy)
    assert tensor.tobytes() == expected


def write(path, header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


def entry(dtype="F32", shape=(2,), offsets=(0, 8)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


def test_odd_files_that_are_right(tmp_path):
    # Unaligned; a scalar; an empty tensor.
    header = {"__metadata__": {"a": "b"}, "a": entry("U8", [1], [0, 1]), "b": entry("F32", [2], [1, 9])}
    path = write(tmp_path / "odd", {**header, "c": entry("F32", [], [9, 13]), "d": entry("F32", [0, 3], [13, 13])}, bytes(13))
    weights = nn.Weights(path)
    assert weights.tensor("b", [2]).tolist() == [0.0, 0.0]
    assert weights.tensor("c", []).item() == 0.0
    assert weights.tensor("d", (0, 3)).shape == (0, 3)
    with pytest.raises(adead.DtypeMismatchError, match="odd: the tensor 'a' has elements of U8; F32, F16, BF16 and F64 are taken"):
        weights.tensor("a", [1])
    assert nn.Weights(write(tmp_path / "none", {})).names() == []


@pytest.mark.parametrize(
    ("header", "data", "reason"),
    [
        # The tests of C cover malformed files, because it is the same reader.
        (b"{", b"", "byte 1 of the header: '\"' is missing"),
        (b"[]", b"", "'{' is missing"),
        (b"\xff", b"", "this is not UTF-8"),
        ({"a": entry("F7")}, bytes(8), "no such dtype"),
        ({"a": {"dtype": "F32"}}, bytes(8), "a tensor has dtype, shape and two data_offsets"),
        ({"a": entry("F32", [2], [0, 12])}, bytes(12), "the tensor 'a' of 8 bytes has offsets .0, 12.; 0 is the next"),
        ({"a": entry()}, bytes(9), "8 bytes and the file 9"),
    ],
)
def test_malformed_files_are_refused(tmp_path, header, data, reason):
    path = write(tmp_path / "wrong.safetensors", header, data)
    with pytest.raises(adead.InvalidArgumentError, match=f"wrong.safetensors: not a safetensors file: .*{reason}"):
        nn.Weights(path)


def test_a_file_that_gets_shorter_is_an_error(tmp_path):
    path = write(tmp_path / "shorter", {"a": entry()}, bytes(8))
    weights = nn.Weights(path)
    path.write_bytes(b"")
    with pytest.raises(adead.IoError, match="shorter: the tensor 'a' ends at byte .* has become shorter"):
        weights.tensor("a", [2])


def test_layers_leave_their_results_where_operations_do(ctx):
    x = adead.Tensor(numpy.linspace(-1, 1, 4096 * 8, dtype=numpy.float32).reshape(4096, 8))
    weight, bias = adead.Tensor(numpy.linspace(0, 1, 8, dtype=numpy.float32)), adead.Tensor.zeros(8)
    net = nn.Sequential(nn.GELU("erf", ctx), nn.LayerNorm(weight, bias, context=ctx))
    y, expected = net(x), ctx.layernorm(ctx.gelu(x, form="erf"), weight, bias, eps=1e-5)
    assert y.places == expected.places
    assert y.tobytes() == expected.tobytes()


class Doubled:
    """A layer of the caller's, made from built-in ones."""

    def __init__(self, layer, ctx):
        self.layer, self.ctx = layer, ctx

    def __call__(self, x):
        y = self.layer(x)
        return self.ctx.add(y, y)


def test_layers_of_ones_own(cpu):
    x = adead.Tensor([[1.0, -2.0], [0.5, 3.0]])
    linear = nn.Linear(adead.Tensor([[1.0, 2.0], [0.5, -1.0]]), None, cpu)
    y = nn.Sequential(Doubled(linear, cpu), nn.ReLU(cpu))(x)
    z = linear(x)
    assert y.tobytes() == cpu.relu(cpu.add(z, z)).tobytes()


def test_cut_files_are_refused(tmp_path):
    contents, path = MODEL.read_bytes(), tmp_path / "cut"
    for length in (0, 7, 8, 100, 1000, len(contents) - 1):
        path.write_bytes(contents[:length])
        with pytest.raises(adead.InvalidArgumentError, match="cut: not a safetensors file"):
            nn.Weights(path)
    for missing in (tmp_path / "missing", tmp_path):
        with pytest.raises(adead.IoError, match=str(missing)):
            nn.Weights(missing)


def test_misuse_is_refused(cpu):
    weights = nn.Weights(MODEL)
    name = "encoder.layer.0.intermediate.dense"
    with pytest.raises(adead.ShapeMismatchError, match=rf"tiny/model.safetensors: the tensor '{name}.weight' is \[48, 32\]; "
                       r"it must be \[64, 32\]"):  # fmt: skip
        nn.Linear.load(weights, name, 32, 64, cpu)
    with pytest.raises(adead.InvalidArgumentError, match="the tensor .encoder.layer.2.intermediate.dense.weight. is not"):
        nn.TransformerEncoder.load(weights, "encoder.layer", 3, CONFIG, cpu)
    square, wide = adead.Tensor.zeros((4, 4)), adead.Tensor.zeros((12, 4))
    with pytest.raises(adead.ShapeMismatchError, match=r"the weight is \[4\]"):
        nn.Linear(adead.Tensor.zeros(4), None, cpu)
    with pytest.raises(adead.ShapeMismatchError, match=r"the bias is \[3\] and the weight \[4, 4\]"):
        nn.Linear(square, adead.Tensor.zeros(3), cpu)
    with pytest.raises(adead.ShapeMismatchError, match=r"the table is \[4\]"):
        nn.Embedding(adead.Tensor.zeros(4), cpu)
    with pytest.raises(adead.InvalidArgumentError):
        nn.Embedding(square, cpu)(numpy.array([4], numpy.uint32))
    linear, triple = nn.Linear(square, None, cpu), nn.Linear(wide, None, cpu)
    with pytest.raises(adead.ShapeMismatchError, match="returns 12 values and the second takes 4"):
        nn.FeedForward(triple, linear)
    with pytest.raises(adead.ShapeMismatchError, match="4 values are no queries"):
        nn.MultiHeadAttention(linear, linear, 2)
    for heads in (0, 3):
        with pytest.raises(adead.InvalidArgumentError, match=f"{heads} heads don't divide a width of 4"):
            nn.MultiHeadAttention(triple, linear, heads)
    attention = nn.MultiHeadAttention(triple, linear, 2)
    for shape in ((4,), (2, 3), (1, 2, 2, 4)):
        with pytest.raises(adead.ShapeMismatchError, match="attention: x is"):
            attention(adead.Tensor.zeros(shape))
    with pytest.raises(adead.ShapeMismatchError, match="2 lengths for 3 sequences"):
        attention(adead.Tensor.zeros((3, 2, 4)), [1, 2])
    for wrong in (0, 3):
        with pytest.raises(adead.InvalidArgumentError, match=f"a sequence of {wrong} rows can't be padded to 2"):
            attention(adead.Tensor.zeros((1, 2, 4)), [wrong])
    with pytest.raises(adead.ShapeMismatchError):
        linear(adead.Tensor.zeros((2, 3)))
