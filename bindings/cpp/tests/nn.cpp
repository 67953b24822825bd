// nn.hpp: the small model of tests/sentences through its layers, bit for bit as the Rust crate computes it, and misuse.
#include "check.hpp"

#include <adead/nn.hpp>

#include <cmath>
#include <fstream>
#include <sstream>
#include <thread>

using namespace adead;

namespace {

const std::string shared = SENTENCES, model = shared + "/tiny/model.safetensors";
constexpr std::size_t width = 32;
const TransformerConfig config{width, 4, 48, Activation::gelu_erf, 1e-12f};

std::string contents(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  CHECK(file.good());
  std::ostringstream all;
  all << file.rdbuf();
  return all.str();
}

/// The rows of tiny_bits.npy, behind its header of 128 bytes, as bytes.
std::string expected_rows() {
  std::string all = contents(shared + "/tiny_bits.npy");
  CHECK(all.size() == 128 + 32 * width * sizeof(float));
  return all.substr(128);
}

/// The tokens of the sentences: a list of lists of numbers.
std::vector<std::vector<std::uint32_t>> sentences() {
  std::vector<std::vector<std::uint32_t>> all;
  std::istringstream text(contents(shared + "/tiny_tokens.json"));
  for (char c; text >> c;) {
    if (c == '[') all.emplace_back();
    if (c < '0' || c > '9') continue;
    text.unget();
    std::uint32_t id = 0;
    text >> id;
    all.back().push_back(id);
  }
  all.erase(all.begin());  // the outer list's
  CHECK(all.size() == 32 && all[0] == std::vector<std::uint32_t>{2, 3});
  return all;
}

std::string bytes_of(const Tensor &x) {
  Span<const std::byte> bytes = OK(x.bytes());
  return std::string(reinterpret_cast<const char *>(bytes.data()), bytes.size());
}

/// BERT with mean pooling and normalisation, as sentence-transformers has it.
struct Model {
  explicit Model(const Context &context) : ctx(context) {
    Weights weights = OK(Weights::open(model));
    words = OK(Embedding::load(ctx, weights, "embeddings.word_embeddings", 92, width));
    Tensor positions = OK(weights.tensor(ctx, "embeddings.position_embeddings.weight", {40, width}));
    Tensor types = OK(weights.tensor(ctx, "embeddings.token_type_embeddings.weight", {2, width}));
    Tensor type = OK(ctx.tensor(DType::f32, {width}, OK(types.bytes()).data(), width * sizeof(float)));
    places = OK(Embedding::make(OK(ctx.add(positions, type))));
    norm = OK(LayerNorm::load(ctx, weights, "embeddings.LayerNorm", width, 1e-12f));
    encoder = OK(TransformerEncoder::load(ctx, weights, "encoder.layer", 2, config));
  }

  /// The embeddings of sentences by their tokens, padded to a length, unless they all have it.
  std::string operator()(const std::vector<std::vector<std::uint32_t>> &batch, std::size_t length, bool padded) const {
    std::vector<std::uint32_t> ids, at;
    std::vector<float> own, counts;
    std::vector<std::size_t> lengths;
    for (const auto &tokens : batch) {
      for (std::size_t i = 0; i < length; i++) {
        ids.push_back(i < tokens.size() ? tokens[i] : 0);
        at.push_back(static_cast<std::uint32_t>(i));
        own.push_back(i < tokens.size() ? 1.f : 0.f);
      }
      counts.push_back(static_cast<float>(tokens.size()));
      lengths.push_back(tokens.size());
    }
    std::size_t count = batch.size();
    Tensor tokens = OK(words.forward(OK(ctx.tensor({count, length}, ids))));
    Tensor sum = OK(ctx.add(tokens, OK(places.forward(OK(ctx.tensor({count, length}, at))))));
    Tensor x = OK(norm.forward(sum));
    Tensor y = padded ? OK(encoder.forward(x, lengths)) : OK(encoder.forward(x));
    Tensor kept = OK(ctx.mul(y, OK(ctx.tensor({count, length, 1}, own))));
    Tensor mean = OK(ctx.div(OK(ctx.sum(kept, {1})), OK(ctx.tensor({count, 1}, counts))));
    Tensor norms = OK(ctx.sqrt(OK(ctx.sum(OK(ctx.mul(mean, mean)), {-1, true}))));
    Tensor least = OK(ctx.tensor({count, 1}, std::vector<float>(count, 1e-12f)));
    return bytes_of(OK(ctx.div(mean, OK(ctx.max(OK(ctx.concat({norms, least}, {-1})), {-1, true})))));
  }

  const Context &ctx;
  Embedding words, places;
  LayerNorm norm;
  TransformerEncoder encoder;
};

void bits(const Context &ctx) {
  const auto all = sentences();
  const std::string expected = expected_rows();
  Model embed(ctx);
  CHECK(embed.encoder.layers() == 2);
  for (std::size_t i = 0; i < all.size(); i++) {
    CHECK(embed({all[i]}, all[i].size(), false) == expected.substr(i * width * sizeof(float), width * sizeof(float)));
  }
  CHECK(embed(all, 24, true) == expected);
  CHECK(embed({all.begin(), all.begin() + 9}, 30, true) == expected.substr(0, 9 * width * sizeof(float)));
  // Threads share layers.
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; i++) threads.emplace_back([&] { CHECK(embed(all, 24, true) == expected); });
  for (std::thread &thread : threads) thread.join();
}

void layers(const Context &ctx) {
  Tensor x = OK(ctx.tensor({2, 3}, {1.f, -2.f, 3.f, 0.5f, 0.25f, -1.f}));
  Tensor w = OK(ctx.tensor({2, 3}, {0.5f, -1.f, 0.25f, 2.f, -0.5f, 1.5f})), b = OK(ctx.tensor({2}, {0.1f, -0.2f}));
  Tensor ones = OK(ctx.tensor({2}, {1.f, 2.f}));
  Linear linear = OK(Linear::make(w, OK(b.clone())));
  CHECK(linear.inputs() == 3 && linear.outputs() == 2);
  MatmulOptions options;
  options.trans_b = true;
  CHECK(bytes_of(OK(OK(Linear::make(w)).forward(x))) == bytes_of(OK(ctx.matmul(x, w, options))));
  options.bias = &b;
  Tensor product = OK(ctx.matmul(x, w, options));
  CHECK(bytes_of(OK(linear.forward(x))) == bytes_of(product));
  options.c = &product;
  options.beta = 1.f;
  options.activation = Activation::relu;
  CHECK(bytes_of(OK(linear.forward(x, &product, Activation::relu))) == bytes_of(OK(ctx.matmul(x, w, options))));
  Sequential net = Sequential()
                       .then(std::move(linear))
                       .then(GELU(GeluForm::tanh))
                       .then(ReLU())
                       .then(LayerNorm(OK(ones.clone()), OK(b.clone()), 1e-5f));
  Tensor by_hand = OK(ctx.layernorm(OK(ctx.relu(OK(ctx.gelu(product, {GeluForm::tanh})))), {1e-5f, &ones, &b}));
  CHECK(net.size() == 4 && bytes_of(OK(net.forward(x))) == bytes_of(by_hand));
  CHECK(bytes_of(OK(Sequential().forward(x))) == bytes_of(x));
  // One sequence needs no batch.
  TransformerEncoder encoder = OK(TransformerEncoder::load(ctx, OK(Weights::open(model)), "encoder.layer", 1, config));
  std::vector<float> values;
  for (std::size_t i = 0; i < 5 * width; i++) values.push_back(std::sin(static_cast<float>(i)));
  Tensor rows = OK(encoder.forward(OK(ctx.tensor({5, width}, values))));
  CHECK(OK(rows.rank()) == 2);
  CHECK(bytes_of(rows) == bytes_of(OK(encoder.forward(OK(ctx.tensor({1, 5, width}, values))))));
}

void weights(const Context &ctx) {
  Weights found = OK(Weights::open(model));
  std::vector<std::string> names = found.names();
  CHECK(found.path() == model && names.size() == 37 && std::is_sorted(names.begin(), names.end()));
  CHECK(found.contains("embeddings.LayerNorm.bias") && !found.contains("nothing"));
  CHECK(OK(found.dims("encoder.layer.0.intermediate.dense.weight")) == std::vector<std::size_t>{48, 32});
  for (const std::string &name : names) {
    Tensor tensor = OK(found.tensor(ctx, name, OK(found.dims(name))));
    CHECK(OK(tensor.dtype()) == DType::f32);
  }
  // bf16 is the upper half of f32.
  Tensor words = OK(found.tensor(ctx, "embeddings.word_embeddings.weight", {92, width}));
  for (float value : OK(words.data<float>())) {
    std::uint32_t raw = 0;
    std::memcpy(&raw, &value, sizeof raw);
    CHECK((raw & 0xffff) == 0);
  }
  FAILS(ShapeMismatch, shape_mismatch,
        "tiny/model.safetensors: the tensor 'embeddings.LayerNorm.bias' is [32]; it must be [4, 8]",
        found.tensor(ctx, "embeddings.LayerNorm.bias", {4, 8}));
  FAILS(InvalidArgument, invalid_argument, "the tensor 'nothing' is not among the file's 37 tensors", found.dims("nothing"));
  FAILS(InvalidArgument, invalid_argument, "file is NULL", Weights().tensor(ctx, "a", {1}));
  FAILS(InvalidArgument, invalid_argument, "name is NULL", found.dims(nullptr));
  FAILS(Io, io, "nowhere: ", Weights::open(shared + "/nowhere"));
  FAILS(Io, io, "irectory", Weights::open(shared));
}

/// Writes a file of a header and so many bytes behind it.
std::string file(const std::string &header, std::size_t bytes) {
  static const std::string path = "nn-odd.safetensors";
  std::string length(8, '\0');
  for (std::size_t i = 0; i < 8; i++) length[i] = static_cast<char>(static_cast<unsigned char>(header.size() >> 8 * i));
  std::ofstream(path, std::ios::binary) << length << header << std::string(bytes, '\0');
  return path;
}

std::string entry(const char *dtype, const char *shape, const char *offsets) {
  return std::string("{\"dtype\":\"") + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}";
}

void files(const Context &ctx) {
  // What is right: spaces, escapes, bytes that are not aligned, a scalar, no element, nothing at all.
  std::string odd = "{ \"__metadata__\" : {\"a\":\"\\\"\\\\\"}, "
                    "\"\\u00e9\\ud83c\\udf0a\\u6e2f\\n\":" + entry("U8", "[1]", "[0,1]") +
                    ",\n\"b\":" + entry("F32", "[ 2 ]", "[1, 9]") + ",\"c\":" + entry("F32", "[]", "[9,13]") + ",\"d\":" +
                    entry("F32", "[0,3]", "[13,13]") + "}  ";
  Weights found = OK(Weights::open(file(odd, 13)));
  CHECK(OK(OK(found.tensor(ctx, "b", {2})).to_vector<float>()) == std::vector<float>{0, 0});
  CHECK(OK(OK(found.tensor(ctx, "c", {})).rank()) == 0 && OK(OK(found.tensor(ctx, "d", {0, 3})).bytes()).empty());
  const char *name = "\xc3\xa9\xf0\x9f\x8c\x8a\xe6\xb8\xaf\n";
  FAILS(DtypeMismatch, dtype_mismatch, "has elements of U8; F32, F16, BF16 and F64 are taken", found.tensor(ctx, name, {1}));
  CHECK(OK(Weights::open(file("{}", 0))).names().empty());

  const std::string one = entry("F32", "[2]", "[0,8]");
  // What is malformed is tried in the tests of C: it is one reader.
  FAILS(InvalidArgument, invalid_argument, "nn-odd.safetensors: not a safetensors file: byte 5 of the header: '{' is missing",
        Weights::open(file("{\"a\":3}", 0)));
  FAILS(InvalidArgument, invalid_argument, "the tensors have 8 bytes and the file 9 for them",
        Weights::open(file("{\"a\":" + entry("F32", "[2]", "[0,8]") + "}", 9)));
  std::remove("nn-odd.safetensors");
}

void misuse(const Context &ctx) {
  Weights found = OK(Weights::open(model));
  const std::string name = "encoder.layer.0.intermediate.dense";
  FAILS(ShapeMismatch, shape_mismatch, "dense.weight' is [48, 32]; it must be [64, 32]",
        Linear::load(ctx, found, name, 32, 64));
  FAILS(InvalidArgument, invalid_argument, "the tensor 'encoder.layer.2.intermediate.dense.weight' is not among",
        TransformerEncoder::load(ctx, found, "encoder.layer", 3, config));
  TransformerConfig five = config;
  five.heads = 5;
  FAILS(InvalidArgument, invalid_argument, "5 heads don't divide a width of 32",
        TransformerLayer::load(ctx, found, "encoder.layer.0", five));
  auto zeros = [&](Array<std::size_t> dims) { return OK(ctx.zeros(DType::f32, dims)); };
  auto linear = [&](std::size_t outputs) { return OK(Linear::make(zeros({outputs, 4}))); };
  FAILS(ShapeMismatch, shape_mismatch, "the weight is [4]", Linear::make(zeros({4})));
  FAILS(ShapeMismatch, shape_mismatch, "the bias is [3] and the weight [4, 4]", Linear::make(zeros({4, 4}), zeros({3})));
  FAILS(ShapeMismatch, shape_mismatch, "the table is [4]", Embedding::make(zeros({4})));
  FAILS(InvalidArgument, invalid_argument, "", Linear::make(Tensor()));
  Embedding table = OK(Embedding::make(zeros({4, 4})));
  FAILS(InvalidArgument, invalid_argument, "", table.forward(OK(ctx.tensor({1}, {std::uint32_t(4)}))));
  FAILS(ShapeMismatch, shape_mismatch, "returns 12 values and the second takes 4", FeedForward::make(linear(12), linear(4)));
  FAILS(ShapeMismatch, shape_mismatch, "4 values are no queries", MultiHeadAttention::make(linear(4), linear(4), 2));
  for (std::size_t heads : {std::size_t(0), std::size_t(3)}) {
    FAILS(InvalidArgument, invalid_argument, "heads don't divide a width of 4",
          MultiHeadAttention::make(linear(12), linear(4), heads));
  }
  MultiHeadAttention attention = OK(MultiHeadAttention::make(linear(12), linear(4), 2));
  for (const auto &dims : {std::vector<std::size_t>{4}, {2, 3}, {1, 2, 2, 4}}) {
    FAILS(ShapeMismatch, shape_mismatch, "attention: x is", attention.forward(zeros(dims)));
  }
  FAILS(ShapeMismatch, shape_mismatch, "2 lengths for 3 sequences", attention.forward(zeros({3, 2, 4}), {1, 2}));
  for (std::size_t own : {std::size_t(0), std::size_t(3)}) {
    FAILS(InvalidArgument, invalid_argument, "can't be padded to 2", attention.forward(zeros({1, 2, 4}), {own}));
  }
  FAILS(ShapeMismatch, shape_mismatch, "", linear(4).forward(zeros({2, 3})));
  // What is empty.
  Tensor x = zeros({2, 4});
  FAILS(InvalidArgument, invalid_argument, "", Linear().forward(x));
  FAILS(InvalidArgument, invalid_argument, "", Embedding().forward(x));
  FAILS(InvalidArgument, invalid_argument, "", LayerNorm().forward(x));
  FAILS(InvalidArgument, invalid_argument, "", FeedForward().forward(x));
  FAILS(InvalidArgument, invalid_argument, "", GELU().forward(Tensor()));
  FAILS(InvalidArgument, invalid_argument, "", attention.forward(Tensor()));
  FAILS(InvalidArgument, invalid_argument, "module is NULL", MultiHeadAttention().forward(zeros({1, 0})));
}

}  // namespace

int main() {
  Context ctx = OK(Context::open("cpu"));
  bits(ctx);
  layers(ctx);
  weights(ctx);
  files(ctx);
  misuse(ctx);
  if (const char *device = std::getenv("ADEAD_TEST_DEVICE")) {
    Context gpu = OK(Context::open(device));
    bits(gpu);
    layers(gpu);
  }
}
