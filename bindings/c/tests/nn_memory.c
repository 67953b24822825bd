/* Whatever allocation of libadead_nn fails, the call says so, and nothing is left behind: built with the library's sources, whose
 * malloc, calloc and realloc are these. */
#undef malloc
#undef calloc
#undef realloc
#define LAST_ERROR adead_nn_last_error
#include <adead/nn.h>

#include "check.h"

void *nn_malloc(size_t size);
void *nn_calloc(size_t count, size_t size);
void *nn_realloc(void *memory, size_t size);

static size_t left;

static int fails(void) { return left ? !--left : 0; }
void *nn_malloc(size_t size) { return fails() ? NULL : malloc(size); }
void *nn_calloc(size_t count, size_t size) { return fails() ? NULL : calloc(count, size); }
void *nn_realloc(void *memory, size_t size) { return fails() ? NULL : realloc(memory, size); }

static adead_status all_of_it(adead_context *ctx) {
  static const adead_nn_transformer_config config = {sizeof config, 32, 4, 48, ADEAD_ACTIVATION_GELU_ERF, 1e-12f};
  static const size_t dims[] = {2, 2, 32}, lengths[] = {2, 1};
  adead_nn_weights *weights = NULL;
  adead_nn_layer *encoder = NULL, *parts[2] = {NULL, NULL}, *net = NULL;
  adead_tensor *x = NULL, *y = NULL;
  adead_status status;
  OK(adead_tensor_zeros(ADEAD_DTYPE_F32, dims, 3, &x));
  status = adead_nn_weights_open(SENTENCES "/tiny/model.safetensors", &weights);
  if (!status) status = adead_nn_transformer_encoder_load(ctx, weights, "encoder.layer", 2, &config, &encoder);
  if (!status) status = adead_nn_transformer_forward(encoder, x, lengths, 2, &y);
  if (!status) status = adead_nn_relu_create(ctx, &parts[0]);
  if (!status) status = adead_nn_layer_norm_load(ctx, weights, "embeddings.LayerNorm", 32, 1e-5f, &parts[1]);
  if (!status) status = adead_nn_sequential_create((const adead_nn_layer *const *)parts, 2, &net);
  CHECK(!status == (net != NULL));
  adead_nn_layer_destroy(net);
  adead_nn_layer_destroy(parts[1]);
  adead_nn_layer_destroy(parts[0]);
  adead_tensor_destroy(y);
  adead_nn_layer_destroy(encoder);
  adead_nn_weights_destroy(weights);
  adead_tensor_destroy(x);
  return status;
}

int main(void) {
  adead_context *ctx = NULL;
  size_t failed = 0;
  OK(adead_context_open("cpu", NULL, &ctx));
  for (;;) {
    adead_status status;
    left = failed + 1;
    status = all_of_it(ctx);
    if (!status) break;
    CHECK(status == ADEAD_OUT_OF_MEMORY && !strcmp(adead_nn_last_error(), "out of memory") && !left);
    failed++;
  }
  printf("%zu allocations failed, one after another\n", failed);
  CHECK(failed > 100);
  adead_context_destroy(ctx);
  return 0;
}
