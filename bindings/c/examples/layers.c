/* layers MODEL: a model's encoder, for tests/sentences/tiny/model.safetensors, of adead's own tests. */
#include <adead/nn.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
  static const uint32_t values[] = {2, 73, 74, 3, 2, 74, 3, 0}; /* two sequences, the second padded */
  static const size_t dims[] = {2, 4}, lengths[] = {4, 3}, three[] = {3, 32};
  adead_nn_transformer_config config = ADEAD_NN_TRANSFORMER_CONFIG_INIT;
  adead_context *ctx = NULL;
  adead_nn_weights *weights = NULL;
  adead_nn_layer *parts[2] = {NULL, NULL}, *embedding = NULL, *encoder = NULL;
  adead_tensor *ids = NULL, *x = NULL, *y = NULL, *second = NULL, *alone = NULL;
  const void *rows = NULL, *found = NULL, *expected = NULL;
  size_t bytes = 0;
  int failed;
  config.width = 32;
  config.heads = 4;
  config.hidden = 48;
  if (argc < 2 || adead_context_open("cpu", NULL, &ctx)) return 1;
  failed = adead_nn_weights_open(argv[1], &weights) ||
           adead_nn_embedding_load(ctx, weights, "embeddings.word_embeddings", 92, 32, &parts[0]) ||
           adead_nn_layer_norm_load(ctx, weights, "embeddings.LayerNorm", 32, 1e-12f, &parts[1]) ||
           adead_nn_sequential_create((const adead_nn_layer *const *)parts, 2, &embedding) ||
           adead_nn_transformer_encoder_load(ctx, weights, "encoder.layer", 2, &config, &encoder) ||
           adead_tensor_create(ADEAD_DTYPE_U32, dims, 2, values, sizeof values, &ids) ||
           adead_nn_layer_forward(embedding, ids, &x) || adead_nn_transformer_forward(encoder, x, lengths, 2, &y);
  if (failed) fprintf(stderr, "%s\n", adead_nn_last_error());

  /* The same bits alone. */
  failed = failed || adead_tensor_data(x, &rows) ||
           adead_tensor_create(ADEAD_DTYPE_F32, three, 2, (const float *)rows + 4 * 32, 3 * 32 * sizeof(float), &second) ||
           adead_nn_layer_forward(encoder, second, &alone) || adead_tensor_data(y, &found) ||
           adead_tensor_data(alone, &expected) || adead_tensor_bytes(alone, &bytes) ||
           memcmp((const float *)found + 4 * 32, expected, bytes);
  adead_tensor_destroy(alone);
  adead_tensor_destroy(second);
  adead_tensor_destroy(y);
  adead_tensor_destroy(x);
  adead_tensor_destroy(ids);
  adead_nn_layer_destroy(encoder);
  adead_nn_layer_destroy(embedding);
  adead_nn_layer_destroy(parts[1]);
  adead_nn_layer_destroy(parts[0]);
  adead_nn_weights_destroy(weights);
  adead_context_destroy(ctx);
  return failed;
}
