#include <adead.hpp>
#include <adead/nn.hpp>
#include <cstring>

int main(int, char **argv) {
  adead::Context ctx("cpu");
  adead::Weights weights = adead::Weights::open(argv[1]);  // tests/sentences/tiny/model.safetensors, from adead's tests
  adead::Embedding words = adead::Embedding::load(ctx, weights, "embeddings.word_embeddings", 92, 32);
  adead::LayerNorm norm = adead::LayerNorm::load(ctx, weights, "embeddings.LayerNorm", 32, 1e-12f);
  adead::TransformerConfig config{32, 4, 48, adead::Activation::gelu_erf, 1e-12f};  // width, heads, hidden
  adead::TransformerEncoder encoder = adead::TransformerEncoder::load(ctx, weights, "encoder.layer", 2, config);

  adead::Tensor ids = ctx.tensor({2, 4}, {2u, 73u, 74u, 3u, 2u, 74u, 3u, 0u});  // two sequences; the second one is padded
  adead::Tensor y = encoder.forward(norm.forward(words.forward(ids)), {4, 3});
  adead::Tensor alone = encoder.forward(norm.forward(words.forward(ctx.tensor({3}, {2u, 74u, 3u}))));
  // A sequence alone has the same bits.
  return std::memcmp(y.bytes().data() + 4 * 32 * sizeof(float), alone.bytes().data(), alone.bytes().size());
}
