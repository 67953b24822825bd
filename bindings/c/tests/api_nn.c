/* Layers: the small model of tests/sentences through them, bit for bit as the Rust crate computes it, and misuse. */
#define LAST_ERROR adead_nn_last_error
#include <adead/nn.h>

#include "check.h"

#include <math.h>
#include <pthread.h>

enum { WIDTH = 32, SENTENCES_COUNT = 32, MOST = 30 };

static const char *const model = SENTENCES "/tiny/model.safetensors";
static adead_context *ctx;
static char *expected;

static const adead_nn_transformer_config config = {sizeof config, WIDTH, 4, 48, ADEAD_ACTIVATION_GELU_ERF, 1e-12f};

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
  adead_nn_layer *words, *places, *norm, *encoder;
} network;

static network network_open(const adead_context *on) {
  static const size_t dims[] = {40, WIDTH}, two[] = {2, WIDTH};
  network net = {NULL, NULL, NULL, NULL, NULL};
  adead_nn_weights *weights = NULL;
  adead_tensor *positions = NULL, *types = NULL, *type, *sum = NULL;
  const void *data = NULL;
  net.ctx = on;
  OK(adead_nn_weights_open(model, &weights));
  OK(adead_nn_embedding_load(on, weights, "embeddings.word_embeddings", 92, WIDTH, &net.words));
  OK(adead_nn_weights_tensor(weights, on, "embeddings.position_embeddings.weight", dims, 2, &positions));
  OK(adead_nn_weights_tensor(weights, on, "embeddings.token_type_embeddings.weight", two, 2, &types));
  OK(adead_tensor_data(types, &data));
  type = made(ADEAD_DTYPE_F32, 1, WIDTH, 0, 0, data);
  OK(adead_tensor_add(on, positions, type, &sum));
  OK(adead_nn_embedding_create(on, sum, &net.places));
  OK(adead_nn_layer_norm_load(on, weights, "embeddings.LayerNorm", WIDTH, 1e-12f, &net.norm));
  OK(adead_nn_transformer_encoder_load(on, weights, "encoder.layer", 2, &config, &net.encoder));
  adead_tensor_destroy(sum);
  adead_tensor_destroy(type);
  adead_tensor_destroy(types);
  adead_tensor_destroy(positions);
  adead_nn_weights_destroy(weights);
  return net;
}

static void network_close(network *net) {
  adead_nn_layer_destroy(net->words);
  adead_nn_layer_destroy(net->places);
  adead_nn_layer_destroy(net->norm);
  adead_nn_layer_destroy(net->encoder);
}

/* The embeddings of some sentences, padded to a length, unless they have it, are the expected ones. */
static void embedded(const network *net, size_t first, size_t count, size_t length, int padded) {
  static const float tiny = 1e-12f;
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
  NEXT(x, adead_nn_layer_forward(net->words, x, &y_));
  places = made(ADEAD_DTYPE_U32, 2, count, length, 0, at);
  NEXT(places, adead_nn_layer_forward(net->places, places, &y_));
  NEXT(x, adead_tensor_add(net->ctx, x, places, &y_));
  NEXT(x, adead_nn_layer_forward(net->norm, x, &y_));
  if (padded) NEXT(x, adead_nn_transformer_forward(net->encoder, x, lengths + first, count, &y_));
  else NEXT(x, adead_nn_layer_forward(net->encoder, x, &y_));
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
  adead_nn_layer *parts[4] = {NULL, NULL, NULL, NULL}, *net = NULL, *plain = NULL, *encoder = NULL;
  adead_nn_weights *weights = NULL;
  float values[5 * WIDTH];
  size_t inputs = 0, outputs = 0, i;
  options.trans_b = 1;
  OK(adead_tensor_matmul(ctx, x, w, &options, &product));
  OK(adead_nn_linear_create(ctx, w, NULL, &plain));
  OK(adead_nn_layer_forward(plain, x, &y));
  CHECK(same(y, product));
  options.bias = b;
  NEXT(product, adead_tensor_matmul(ctx, x, w, &options, &y_));
  OK(adead_nn_linear_create(ctx, w, b, &parts[0]));
  OK(adead_nn_linear_size(parts[0], &inputs, &outputs));
  CHECK(inputs == 3 && outputs == 2);
  NEXT(y, adead_nn_layer_forward(parts[0], x, &y_));
  CHECK(same(y, product));
  options.c = product;
  options.beta = 1;
  options.activation = ADEAD_ACTIVATION_RELU;
  OK(adead_tensor_matmul(ctx, x, w, &options, &more));
  NEXT(y, adead_nn_linear_forward(parts[0], x, product, ADEAD_ACTIVATION_RELU, &y_));
  CHECK(same(y, more));
  OK(adead_nn_gelu_create(ctx, ADEAD_GELU_TANH, &parts[1]));
  OK(adead_nn_relu_create(ctx, &parts[2]));
  OK(adead_nn_layer_norm_create(ctx, ones, b, 1e-5f, &parts[3]));
  OK(adead_nn_sequential_create((const adead_nn_layer *const *)parts, 4, &net));
  /* What it is made of it keeps. */
  for (i = 0; i < 4; i++) adead_nn_layer_destroy(parts[i]);
  NEXT(product, adead_tensor_gelu(ctx, product, ADEAD_GELU_TANH, &y_));
  NEXT(product, adead_tensor_relu(ctx, product, &y_));
  NEXT(product, adead_tensor_layernorm(ctx, product, ones, b, 1e-5f, &y_));
  NEXT(y, adead_nn_layer_forward(net, x, &y_));
  CHECK(same(y, product));
  adead_nn_layer_destroy(net);
  OK(adead_nn_sequential_create(NULL, 0, &net));
  NEXT(y, adead_nn_layer_forward(net, x, &y_));
  CHECK(same(y, x));
  /* One sequence needs no batch. */
  OK(adead_nn_weights_open(model, &weights));
  OK(adead_nn_transformer_encoder_load(ctx, weights, "encoder.layer", 1, &config, &encoder));
  some_values(values, 5 * WIDTH, 7);
  NEXT(x, (y_ = made(ADEAD_DTYPE_F32, 2, 5, WIDTH, 0, values), ADEAD_OK));
  NEXT(y, adead_nn_layer_forward(encoder, x, &y_));
  NEXT(x, (y_ = made(ADEAD_DTYPE_F32, 3, 1, 5, WIDTH, values), ADEAD_OK));
  NEXT(x, adead_nn_layer_forward(encoder, x, &y_));
  NEXT(x, adead_tensor_reshape(x, ((size_t[]){5, WIDTH}), 2, &y_));
  CHECK(same(x, y));
  adead_nn_weights_destroy(weights);
  adead_nn_layer_destroy(encoder);
  adead_nn_layer_destroy(net);
  adead_nn_layer_destroy(plain);
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
  static const char *const prefixes[4] = {"a", NULL, "c", "d"};
  static const size_t one_two[] = {1, 2}, wrong[] = {0, 3};
  adead_nn_transformer_config other = config;
  adead_nn_weights *weights = NULL;
  adead_nn_layer *none = NULL, *linear = NULL, *triple = NULL, *attention = NULL, *table = NULL, *relu = NULL;
  adead_tensor *vector = made(ADEAD_DTYPE_F32, 1, 4, 0, 0, NULL), *square = made(ADEAD_DTYPE_F32, 2, 4, 4, 0, NULL);
  adead_tensor *tall = made(ADEAD_DTYPE_F32, 2, 12, 4, 0, NULL), *x = made(ADEAD_DTYPE_F32, 3, 3, 2, 4, NULL);
  adead_tensor *narrow = made(ADEAD_DTYPE_F32, 2, 2, 3, 0, NULL), *three = made(ADEAD_DTYPE_F32, 1, 3, 0, 0, NULL);
  adead_tensor *one = made(ADEAD_DTYPE_F32, 3, 1, 2, 4, NULL), *id = made(ADEAD_DTYPE_U32, 1, 1, 0, 0, &(uint32_t){4});
  adead_tensor *y = NULL;
  size_t i, size = 7;
#define REFUSED(call, words) FAILS(call, ADEAD_INVALID_ARGUMENT, words)
#define UNFIT(call, words) FAILS(call, ADEAD_SHAPE_MISMATCH, words)
  OK(adead_nn_weights_open(model, &weights));
  UNFIT(adead_nn_linear_load(ctx, weights, "encoder.layer.0.intermediate.dense", WIDTH, 64, &none),
        "dense.weight' is [48, 32]; it must be [64, 32]");
  REFUSED(adead_nn_transformer_encoder_load(ctx, weights, "encoder.layer", 3, &config, &none),
          "the tensor 'encoder.layer.2.intermediate.dense.weight' is not among");
  FAILS(adead_nn_transformer_encoder_load(ctx, weights, "encoder.layer", (size_t)-1, &config, &none), ADEAD_OUT_OF_MEMORY, "");
  other.heads = 5;
  REFUSED(adead_nn_transformer_layer_load(ctx, weights, "encoder.layer.0", &other, &none), "5 heads don't divide a width of 32");
  other.struct_size = 8;
  REFUSED(adead_nn_transformer_layer_load(ctx, weights, "encoder.layer.0", &other, &none), "struct_size");
  REFUSED(adead_nn_transformer_layer_load(ctx, weights, "encoder.layer.0", NULL, &none), "config is NULL");
  UNFIT(adead_nn_linear_create(ctx, vector, NULL, &none), "linear: the weight is [4]; it must be");
  UNFIT(adead_nn_linear_create(ctx, square, three, &none), "the bias is [3] and the weight [4, 4]");
  UNFIT(adead_nn_embedding_create(ctx, vector, &none), "the table is [4]");
  REFUSED(adead_nn_linear_create(ctx, NULL, NULL, &none), "weight is NULL");
  REFUSED(adead_nn_linear_create(NULL, square, NULL, &none), "context is NULL");
  REFUSED(adead_nn_linear_create(ctx, square, NULL, NULL), "out is NULL");
  REFUSED(adead_nn_layer_norm_create(ctx, vector, NULL, 0, &none), "bias is NULL");
  REFUSED(adead_nn_gelu_create(ctx, 7, &none), "form is 7");
  REFUSED(adead_nn_sequential_create((const adead_nn_layer *const[]){NULL}, 1, &none), "layer 0 is NULL");
  REFUSED(adead_nn_sequential_create(NULL, 1, &none), "layers is NULL");
  REFUSED(adead_nn_multi_head_attention_load(ctx, weights, NULL, 4, 2, &none), "prefixes is NULL");
  REFUSED(adead_nn_multi_head_attention_load(ctx, weights, prefixes, 4, 2, &none), "'a.weight' is not among");
  REFUSED(adead_nn_linear_load(ctx, weights, NULL, 4, 4, &none), "prefix is NULL");
  REFUSED(adead_nn_linear_load(ctx, NULL, "a", 4, 4, &none), "weights is NULL");
  OK(adead_nn_linear_create(ctx, square, NULL, &linear));
  OK(adead_nn_linear_create(ctx, tall, NULL, &triple));
  OK(adead_nn_relu_create(ctx, &relu));
  OK(adead_nn_embedding_create(ctx, square, &table));
  UNFIT(adead_nn_feed_forward_create(triple, linear, ADEAD_ACTIVATION_RELU, &none),
        "returns 12 values and the second takes 4");
  REFUSED(adead_nn_feed_forward_create(linear, relu, ADEAD_ACTIVATION_RELU, &none), "of the kind relu");
  UNFIT(adead_nn_multi_head_attention_create(linear, linear, 2, &none), "4 values are no queries");
  REFUSED(adead_nn_multi_head_attention_create(triple, table, 2, &none), "of the kind embedding");
  for (i = 0; i < 2; i++) {
    REFUSED(adead_nn_multi_head_attention_create(triple, linear, wrong[i], &none), "heads don't divide a width of 4");
  }
  CHECK(!none);
  OK(adead_nn_multi_head_attention_create(triple, linear, 2, &attention));
  UNFIT(adead_nn_layer_forward(linear, narrow, &y), "");
  REFUSED(adead_nn_layer_forward(table, id, &y), "4");
  UNFIT(adead_nn_layer_forward(attention, vector, &y), "attention: x is [4]; it must be [count, length, 4]");
  UNFIT(adead_nn_layer_forward(attention, narrow, &y), "attention: x is [2, 3]");
  UNFIT(adead_nn_multi_head_attention_forward(attention, x, one_two, 2, NULL, &y), "2 lengths for 3 sequences");
  for (i = 0; i < 2; i++) {
    REFUSED(adead_nn_multi_head_attention_forward(attention, one, wrong + i, 1, NULL, &y), "rows can't be padded to 2");
  }
  REFUSED(adead_nn_multi_head_attention_forward(attention, one, NULL, 1, NULL, &y), "lengths is NULL");
  REFUSED(adead_nn_multi_head_attention_forward(linear, one, NULL, 0, NULL, &y), "of the kind linear");
  REFUSED(adead_nn_feed_forward_forward(linear, one, NULL, &y), "of the kind linear");
  REFUSED(adead_nn_linear_forward(attention, one, NULL, 0, &y), "of the kind multi_head_attention");
  REFUSED(adead_nn_linear_forward(linear, one, NULL, 99, &y), "99");
  REFUSED(adead_nn_transformer_forward(linear, one, NULL, 0, &y), "of the kind linear");
  REFUSED(adead_nn_linear_size(relu, &size, &size), "of the kind relu");
  REFUSED(adead_nn_layer_forward(NULL, one, &y), "layer is NULL");
  REFUSED(adead_nn_layer_forward(linear, NULL, &y), "x is NULL");
  REFUSED(adead_nn_layer_forward(linear, one, NULL), "out is NULL");
  CHECK(!y && size == 7);
  adead_nn_layer_destroy(NULL);
  adead_nn_weights_destroy(NULL);
  CHECK(adead_nn_abi_version() == ADEAD_NN_ABI_VERSION);
  adead_nn_layer_destroy(attention);
  adead_nn_layer_destroy(table);
  adead_nn_layer_destroy(relu);
  adead_nn_layer_destroy(triple);
  adead_nn_layer_destroy(linear);
  adead_nn_weights_destroy(weights);
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
  CHECK(!strcmp(adead_nn_last_error(), ""));
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
