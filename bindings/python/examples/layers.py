import adead
from adead import nn

ctx = adead.Context("cpu")
weights = nn.Weights("tests/sentences/tiny/model.safetensors")  # the small model from adead's own tests
words = nn.Embedding.load(weights, "embeddings.word_embeddings", 92, 32, ctx)
norm = nn.LayerNorm.load(weights, "embeddings.LayerNorm", 32, 1e-12, ctx)
config = nn.TransformerConfig(width=32, heads=4, hidden=48, activation="gelu_erf", eps=1e-12)
encoder = nn.TransformerEncoder.load(weights, "encoder.layer", 2, config, ctx)

ids = adead.Tensor([[2, 73, 74, 3], [2, 74, 3, 0]], dtype="u32")  # two sequences; the second one is padded
x = norm(words(ids))
y = encoder(x, lengths=[4, 3])
assert y[1][0:3].tobytes() == encoder(x[1][0:3]).tobytes()  # a sequence alone has the same bits
