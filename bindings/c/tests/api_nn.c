/* Layers: the small model of tests/sentences through them, bit for bit as the Rust crate computes it, and misuse. */
#include "check.h"

#include <math.h>
#include <pthread.h>

enum { WIDTH = 32, SENTENCES_COUNT = 32, MOST = 30 };

static const char *const model = SENTENCES "/tiny/model.safetensors";
static adead_context *ctx;
static char *expected;

/* What is loaded of a file. */
static adead_module_options options_of(adead_module_kind kind, size_t inputs, size_t outputs, size_t width) {
  adead_module_options options = ADEAD_MODULE_OPTIONS_INIT;
  options.kind = kind;
  options.inputs = inputs;
  options.outputs = outputs;
  options.width = width;
  return options;
}

static adead_module_options transformer(adead_module_kind kind, size_t layers) {
  adead_module_options options = options_of(kind, 0, 0, WIDTH);
  options.heads = 4;
  options.hidden = 48;
  options.layers = layers;
  return options;
}

static char *contents(const char *path, size_t *size) {
  FILE *file = fopen(path, "rb");
  char *all = malloc(1 << 20);
  CHECK(file && all);
  *size = fread(all, 1, 1 << 20, file);
  CHECK(*size < 1 << 20);
  fclose(file);
  return all;
}

/* The tokens of the sentences: a list of lists of numbers. */
static uint32_t tokens[SENTENCES_COUNT][MOST];
static size_t lengths[SENTENCES_COUNT];

static void read_fixtures(void) {
  size_t size = 0, i, count = 0;
  char *all = contents(SENTENCES "/tiny_bits.npy", &size);
  CHECK(size == 128 + SENTENCES_COUNT * WIDTH * sizeof(float));
  expected = malloc(size);
  CHECK(expected);
  memcpy(expected, all + 128, size - 128);
  free(all);
  all = contents(SENTENCES "/tiny_tokens.json", &size);
  for (i = 1; i < size; i++) {
    if (all[i] == '[') CHECK(count++ < SENTENCES_COUNT);
    if (all[i] < '0' || all[i] > '9') continue;
    CHECK(lengths[count - 1] < MOST);
    tokens[count - 1][lengths[count - 1]++] = (uint32_t)strtoul(all + i, NULL, 10);
    while (all[i + 1] >= '0' && all[i + 1] <= '9') i++;
  }
  CHECK(count == SENTENCES_COUNT && lengths[0] == 2 && tokens[0][0] == 2 && tokens[0][1] == 3);
  free(all);
}

static adead_tensor *made(adead_dtype dtype, size_t rank, size_t d0, size_t d1, size_t d2, const void *data) {
  const size_t dims[] = {d0, d1, d2};
  size_t bytes = 4, i;
  adead_tensor *out = NULL;
  for (i = 0; i < rank; i++) bytes *= dims[i];
  OK(data ? adead_tensor_create(dtype, dims, rank, data, bytes, &out) : adead_tensor_zeros(dtype, dims, rank, &out));
  return out;
}

/* The result of a call that takes one tensor more, which is given up. */
#define NEXT(x, call)         \
  do {                        \
    adead_tensor *y_ = NULL;  \
    OK(call);                 \
    adead_tensor_destroy(x);  \
    x = y_;                   \
  } while (0)

/* BERT with mean pooling and normalisation, as sentence-transformers has it. */
typedef struct {
  const adead_context *ctx;
  adead_module *words, *places, *norm, *encoder;
} network;

static network network_open(const adead_context *on) {
  static const size_t dims[] = {40, WIDTH}, two[] = {2, WIDTH};
  const adead_module_options table = options_of(ADEAD_MODULE_EMBEDDING, 92, 0, WIDTH);
  const adead_module_options norm = options_of(ADEAD_MODULE_LAYER_NORM, 0, 0, WIDTH);
  const adead_module_options encoder = transformer(ADEAD_MODULE_TRANSFORMER_ENCODER, 2);
  network net = {NULL, NULL, NULL, NULL, NULL};
  adead_safetensors *weights = NULL;
  adead_tensor *positions = NULL, *types = NULL, *type, *sum = NULL;
  const void *data = NULL;
  net.ctx = on;
  OK(adead_safetensors_open(model, &weights));
  OK(adead_module_load(on, weights, "embeddings.word_embeddings", &table, &net.words));
  OK(adead_safetensors_tensor(weights, "embeddings.position_embeddings.weight", dims, 2, &positions));
  OK(adead_safetensors_tensor(weights, "embeddings.token_type_embeddings.weight", two, 2, &types));
  OK(adead_tensor_data(types, &data));
  type = made(ADEAD_DTYPE_F32, 1, WIDTH, 0, 0, data);
  OK(adead_tensor_add(on, positions, type, &sum));
  OK(adead_module_embedding(on, sum, &net.places));
  OK(adead_module_load(on, weights, "embeddings.LayerNorm", &norm, &net.norm));
  OK(adead_module_load(on, weights, "encoder.layer", &encoder, &net.encoder));
  adead_tensor_destroy(sum);
  adead_tensor_destroy(type);
  adead_tensor_destroy(types);
  adead_tensor_destroy(positions);
  adead_safetensors_close(weights);
  return net;
}

static void network_close(network *net) {
  adead_module_destroy(net->words);
  adead_module_destroy(net->places);
  adead_module_destroy(net->norm);
  adead_module_destroy(net->encoder);
}

/* The embeddings of some sentences, padded to a length, unless they have it, are the expected ones. */
static void embedded(const network *net, size_t first, size_t count, size_t length, int padded) {
  static const float tiny = 1e-12f;
  adead_forward_options options = ADEAD_FORWARD_OPTIONS_INIT;
  uint32_t ids[SENTENCES_COUNT * MOST] = {0}, at[SENTENCES_COUNT * MOST];
  float own[SENTENCES_COUNT * MOST], counts[SENTENCES_COUNT], least[SENTENCES_COUNT];
  const adead_tensor *pair[2];
  adead_tensor *x, *places, *factor, *other, *norms = NULL;
  const void *data = NULL;
  size_t i, k, bytes = 0;
  for (i = 0; i < count; i++) {
    for (k = 0; k < length; k++) {
      ids[i * length + k] = k < lengths[first + i] ? tokens[first + i][k] : 0;
      at[i * length + k] = (uint32_t)k;
      own[i * length + k] = k < lengths[first + i] ? 1.0f : 0.0f;
    }
    counts[i] = (float)lengths[first + i];
    least[i] = tiny;
  }
  x = made(ADEAD_DTYPE_U32, 2, count, length, 0, ids);
  NEXT(x, adead_module_forward(net->words, x, NULL, &y_));
  places = made(ADEAD_DTYPE_U32, 2, count, length, 0, at);
  NEXT(places, adead_module_forward(net->places, places, NULL, &y_));
  NEXT(x, adead_tensor_add(net->ctx, x, places, &y_));
  NEXT(x, adead_module_forward(net->norm, x, NULL, &y_));
  options.lengths = lengths + first;
  options.count = count;
  NEXT(x, adead_module_forward(net->encoder, x, padded ? &options : NULL, &y_));
  factor = made(ADEAD_DTYPE_F32, 3, count, length, 1, own);
  NEXT(x, adead_tensor_mul(net->ctx, x, factor, &y_));
  NEXT(x, adead_tensor_sum(net->ctx, x, 1, 0, &y_));
  other = made(ADEAD_DTYPE_F32, 2, count, 1, 0, counts);
  NEXT(x, adead_tensor_div(net->ctx, x, other, &y_));
  OK(adead_tensor_mul(net->ctx, x, x, &norms));
  NEXT(norms, adead_tensor_sum(net->ctx, norms, -1, 1, &y_));
  NEXT(norms, adead_tensor_sqrt(net->ctx, norms, &y_));
  adead_tensor_destroy(other);
  other = made(ADEAD_DTYPE_F32, 2, count, 1, 0, least);
  pair[0] = norms;
  pair[1] = other;
  NEXT(norms, adead_tensor_concat(net->ctx, pair, 2, -1, &y_));
  NEXT(norms, adead_tensor_max(net->ctx, norms, -1, 1, &y_));
  NEXT(x, adead_tensor_div(net->ctx, x, norms, &y_));
  OK(adead_tensor_bytes(x, &bytes));
  OK(adead_tensor_data(x, &data));
  CHECK(bytes == count * WIDTH * sizeof(float) && !memcmp(data, expected + first * WIDTH * sizeof(float), bytes));
  adead_tensor_destroy(norms);
  adead_tensor_destroy(other);
  adead_tensor_destroy(factor);
  adead_tensor_destroy(places);
  adead_tensor_destroy(x);
}

static void *in_thread(void *net) {
  embedded(net, 0, SENTENCES_COUNT, 24, 1);
  return NULL;
}

static void bits(const adead_context *on) {
  network net = network_open(on);
  pthread_t threads[3];
  size_t i;
  for (i = 0; i < SENTENCES_COUNT; i++) embedded(&net, i, 1, lengths[i], 0);
  embedded(&net, 0, SENTENCES_COUNT, 24, 1);
  embedded(&net, 0, 9, 30, 1);
  for (i = 0; i < 3; i++) CHECK(!pthread_create(&threads[i], NULL, in_thread, &net));
  for (i = 0; i < 3; i++) CHECK(!pthread_join(threads[i], NULL));
  network_close(&net);
}

static void layers(void) {
  static const float x_values[] = {1, -2, 3, 0.5f, 0.25f, -1}, w_values[] = {0.5f, -1, 0.25f, 2, -0.5f, 1.5f};
  static const float b_values[] = {0.1f, -0.2f}, one_two[] = {1, 2};
  adead_matmul_options options = ADEAD_MATMUL_OPTIONS_INIT;
  adead_tensor *x = tensor(x_values, 2, 2, 3), *w = tensor(w_values, 2, 2, 3), *b = tensor(b_values, 1, 2, 0);
  adead_tensor *ones = tensor(one_two, 1, 2, 0), *product = NULL, *y = NULL, *more = NULL;
  adead_module *parts[4] = {NULL, NULL, NULL, NULL}, *net = NULL, *plain = NULL, *encoder = NULL;
  adead_safetensors *weights = NULL;
  float values[5 * WIDTH];
  adead_module_info info = {sizeof info, 0, 0, 0, 0};
  adead_forward_options besides = ADEAD_FORWARD_OPTIONS_INIT;
  const adead_module_options loaded = transformer(ADEAD_MODULE_TRANSFORMER_ENCODER, 1);
  size_t i;
  options.trans_b = 1;
  OK(adead_tensor_matmul(ctx, x, w, &options, &product));
  OK(adead_module_linear(ctx, w, NULL, &plain));
  OK(adead_module_forward(plain, x, NULL, &y));
  CHECK(same(y, product));
  options.bias = b;
  NEXT(product, adead_tensor_matmul(ctx, x, w, &options, &y_));
  OK(adead_module_linear(ctx, w, b, &parts[0]));
  OK(adead_module_describe(parts[0], &info));
  CHECK(info.kind == ADEAD_MODULE_LINEAR && info.inputs == 3 && info.outputs == 2);
  NEXT(y, adead_module_forward(parts[0], x, NULL, &y_));
  CHECK(same(y, product));
  options.c = product;
  options.beta = 1;
  options.activation = ADEAD_ACTIVATION_RELU;
  OK(adead_tensor_matmul(ctx, x, w, &options, &more));
  besides.residual = product;
  besides.activation = ADEAD_ACTIVATION_RELU;
  NEXT(y, adead_module_forward(parts[0], x, &besides, &y_));
  CHECK(same(y, more));
  OK(adead_module_gelu(ctx, ADEAD_GELU_TANH, &parts[1]));
  OK(adead_module_relu(ctx, &parts[2]));
  OK(adead_module_layer_norm(ctx, ones, b, 1e-5f, &parts[3]));
  OK(adead_module_sequential((const adead_module *const *)parts, 4, &net));
  /* What it is made of it keeps. */
  for (i = 0; i < 4; i++) adead_module_destroy(parts[i]);
  NEXT(product, adead_tensor_gelu(ctx, product, ADEAD_GELU_TANH, &y_));
  NEXT(product, adead_tensor_relu(ctx, product, &y_));
  NEXT(product, adead_tensor_layernorm(ctx, product, ones, b, 1e-5f, &y_));
  NEXT(y, adead_module_forward(net, x, NULL, &y_));
  CHECK(same(y, product));
  adead_module_destroy(net);
  OK(adead_module_sequential(NULL, 0, &net));
  NEXT(y, adead_module_forward(net, x, NULL, &y_));
  CHECK(same(y, x));
  /* One sequence needs no batch. */
  OK(adead_safetensors_open(model, &weights));
  OK(adead_module_load(ctx, weights, "encoder.layer", &loaded, &encoder));
  some_values(values, 5 * WIDTH, 7);
  NEXT(x, (y_ = made(ADEAD_DTYPE_F32, 2, 5, WIDTH, 0, values), ADEAD_OK));
  NEXT(y, adead_module_forward(encoder, x, NULL, &y_));
  NEXT(x, (y_ = made(ADEAD_DTYPE_F32, 3, 1, 5, WIDTH, values), ADEAD_OK));
  NEXT(x, adead_module_forward(encoder, x, NULL, &y_));
  NEXT(x, adead_tensor_reshape(x, ((size_t[]){5, WIDTH}), 2, &y_));
  CHECK(same(x, y));
  adead_safetensors_close(weights);
  adead_module_destroy(encoder);
  adead_module_destroy(net);
  adead_module_destroy(plain);
  adead_tensor_destroy(more);
  adead_tensor_destroy(y);
  adead_tensor_destroy(product);
  adead_tensor_destroy(ones);
  adead_tensor_destroy(b);
  adead_tensor_destroy(w);
  adead_tensor_destroy(x);
}

/* A call that fails leaves its output as it was. */
static void misuse(void) {
  static const char *const prefixes[4] = {"a", NULL, "c", "d"}, *const names[4] = {"a", "b", "c", "d"};
  static const size_t one_two[] = {1, 2}, wrong[] = {0, 3};
  adead_module_options other = transformer(ADEAD_MODULE_TRANSFORMER_ENCODER, 3);
  adead_forward_options besides = ADEAD_FORWARD_OPTIONS_INIT;
  adead_module_info info = {sizeof info, 0, 0, 0, 0};
  adead_safetensors *weights = NULL;
  adead_module *none = NULL, *linear = NULL, *triple = NULL, *attention = NULL, *table = NULL, *relu = NULL;
  adead_tensor *vector = made(ADEAD_DTYPE_F32, 1, 4, 0, 0, NULL), *square = made(ADEAD_DTYPE_F32, 2, 4, 4, 0, NULL);
  adead_tensor *tall = made(ADEAD_DTYPE_F32, 2, 12, 4, 0, NULL), *x = made(ADEAD_DTYPE_F32, 3, 3, 2, 4, NULL);
  adead_tensor *narrow = made(ADEAD_DTYPE_F32, 2, 2, 3, 0, NULL), *three = made(ADEAD_DTYPE_F32, 1, 3, 0, 0, NULL);
  adead_tensor *one = made(ADEAD_DTYPE_F32, 3, 1, 2, 4, NULL), *id = made(ADEAD_DTYPE_U32, 1, 1, 0, 0, &(uint32_t){4});
  adead_tensor *y = NULL;
  size_t i;
#define REFUSED(call, words) FAILS(call, ADEAD_INVALID_ARGUMENT, words)
#define UNFIT(call, words) FAILS(call, ADEAD_SHAPE_MISMATCH, words)
  OK(adead_safetensors_open(model, &weights));
  REFUSED(adead_module_load(ctx, weights, "encoder.layer", &other, &none),
          "the tensor 'encoder.layer.2.intermediate.dense.weight' is not among");
  other.layers = (size_t)-1;
  REFUSED(adead_module_load(ctx, weights, "encoder.layer", &other, &none), "'encoder.layer.2.");
  other.kind = ADEAD_MODULE_TRANSFORMER_LAYER;
  other.heads = 5;
  REFUSED(adead_module_load(ctx, weights, "encoder.layer.0", &other, &none), "5 heads don't divide a width of 32");
  other.activation = 99;
  REFUSED(adead_module_load(ctx, weights, "encoder.layer.0", &other, &none), "activation is 99");
  other.struct_size = 8;
  REFUSED(adead_module_load(ctx, weights, "encoder.layer.0", &other, &none), "struct_size of adead_module_options is 8");
  REFUSED(adead_module_load(ctx, weights, "encoder.layer.0", NULL, &none), "options is NULL");
  other = options_of(ADEAD_MODULE_RELU, 0, 0, 0);
  REFUSED(adead_module_load(ctx, weights, "a", &other, &none), "kind is 3");
  other = options_of(ADEAD_MODULE_LINEAR, WIDTH, 64, 0);
  UNFIT(adead_module_load(ctx, weights, "encoder.layer.0.intermediate.dense", &other, &none),
        "dense.weight' is [48, 32]; it must be [64, 32]");
  REFUSED(adead_module_load(ctx, weights, NULL, &other, &none), "prefix is NULL");
  REFUSED(adead_module_load(ctx, NULL, "a", &other, &none), "file is NULL");
  other = options_of(ADEAD_MODULE_ATTENTION, 0, 0, 4);
  other.heads = 2;
  REFUSED(adead_module_load(ctx, weights, "", &other, &none), "parts is NULL");
  other.parts = prefixes;
  REFUSED(adead_module_load(ctx, weights, "", &other, &none), "a name of parts is NULL");
  other.parts = names;
  REFUSED(adead_module_load(ctx, weights, "of.", &other, &none), "'of.a.weight' is not among");
  UNFIT(adead_module_linear(ctx, vector, NULL, &none), "linear: the weight is [4]; it must be");
  UNFIT(adead_module_linear(ctx, square, three, &none), "the bias is [3] and the weight [4, 4]");
  UNFIT(adead_module_embedding(ctx, vector, &none), "the table is [4]");
  REFUSED(adead_module_linear(ctx, NULL, NULL, &none), "weight is NULL");
  REFUSED(adead_module_linear(NULL, square, NULL, &none), "context is NULL");
  REFUSED(adead_module_linear(ctx, square, NULL, NULL), "out is NULL");
  REFUSED(adead_module_layer_norm(ctx, vector, NULL, 0, &none), "bias is NULL");
  REFUSED(adead_module_gelu(ctx, 7, &none), "form is 7");
  REFUSED(adead_module_sequential((const adead_module *const[]){NULL}, 1, &none), "module 0 is NULL");
  REFUSED(adead_module_sequential(NULL, 1, &none), "modules is NULL");
  OK(adead_module_linear(ctx, square, NULL, &linear));
  OK(adead_module_linear(ctx, tall, NULL, &triple));
  OK(adead_module_relu(ctx, &relu));
  OK(adead_module_embedding(ctx, square, &table));
  UNFIT(adead_module_feed_forward(triple, linear, ADEAD_ACTIVATION_RELU, &none),
        "returns 12 values and the second takes 4");
  REFUSED(adead_module_feed_forward(linear, relu, ADEAD_ACTIVATION_RELU, &none), "of the kind relu");
  UNFIT(adead_module_attention(linear, linear, 2, &none), "4 values are no queries");
  REFUSED(adead_module_attention(triple, table, 2, &none), "of the kind embedding");
  for (i = 0; i < 2; i++) {
    REFUSED(adead_module_attention(triple, linear, wrong[i], &none), "heads don't divide a width of 4");
  }
  CHECK(!none);
  OK(adead_module_attention(triple, linear, 2, &attention));
  UNFIT(adead_module_forward(linear, narrow, NULL, &y), "");
  REFUSED(adead_module_forward(table, id, NULL, &y), "4");
  UNFIT(adead_module_forward(attention, vector, NULL, &y), "attention: x is [4]; it must be [count, length, 4]");
  UNFIT(adead_module_forward(attention, narrow, NULL, &y), "attention: x is [2, 3]");
  besides.lengths = one_two;
  besides.count = 2;
  UNFIT(adead_module_forward(attention, x, &besides, &y), "2 lengths for 3 sequences");
  besides.count = 1;
  for (i = 0; i < 2; i++) {
    besides.lengths = wrong + i;
    REFUSED(adead_module_forward(attention, one, &besides, &y), "rows can't be padded to 2");
  }
  REFUSED(adead_module_forward(linear, one, &besides, &y), "a layer of the kind linear takes no lengths");
  besides.lengths = NULL;
  REFUSED(adead_module_forward(attention, one, &besides, &y), "lengths is NULL");
  besides.count = 0;
  besides.residual = one;
  REFUSED(adead_module_forward(relu, one, &besides, &y), "a layer of the kind relu takes no residual");
  besides.residual = NULL;
  besides.activation = ADEAD_ACTIVATION_RELU;
  REFUSED(adead_module_forward(attention, one, &besides, &y), "a layer of the kind attention takes no activation");
  besides.activation = 99;
  REFUSED(adead_module_forward(linear, one, &besides, &y), "activation is 99");
  REFUSED(adead_module_transformer_layer(attention, relu, attention, relu, &none), "of the kind attention");
  REFUSED(adead_module_transformer_encoder((const adead_module *const[]){linear}, 1, &none), "of the kind linear");
  OK(adead_module_describe(relu, &info));
  CHECK(info.kind == ADEAD_MODULE_RELU && !info.inputs && !info.outputs);
  info.struct_size = 0;
  REFUSED(adead_module_describe(relu, &info), "struct_size of adead_module_info is 0");
  REFUSED(adead_module_forward(NULL, one, NULL, &y), "module is NULL");
  REFUSED(adead_module_forward(linear, NULL, NULL, &y), "x is NULL");
  REFUSED(adead_module_forward(linear, one, NULL, NULL), "out is NULL");
  CHECK(!y && !none);
  adead_module_destroy(NULL);
  adead_safetensors_close(NULL);
  adead_module_destroy(attention);
  adead_module_destroy(table);
  adead_module_destroy(relu);
  adead_module_destroy(triple);
  adead_module_destroy(linear);
  adead_safetensors_close(weights);
  adead_tensor_destroy(id);
  adead_tensor_destroy(one);
  adead_tensor_destroy(three);
  adead_tensor_destroy(narrow);
  adead_tensor_destroy(x);
  adead_tensor_destroy(tall);
  adead_tensor_destroy(square);
  adead_tensor_destroy(vector);
}

int main(void) {
  const char *device = getenv("ADEAD_TEST_DEVICE");
  OK(adead_context_open("cpu", NULL, &ctx));
  read_fixtures();
  bits(ctx);
  layers();
  misuse();
  if (device) {
    adead_context *gpu = NULL;
    adead_status status = adead_context_open(device, NULL, &gpu);
    if (status == ADEAD_BACKEND_UNAVAILABLE) {
      printf("skipped: %s\n", adead_last_error());
      return 77;
    }
    OK(status);
    bits(gpu);
    adead_context_destroy(gpu);
  }
  free(expected);
  adead_context_destroy(ctx);
  return 0;
}
