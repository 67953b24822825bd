/* layers MODEL: runs a model's encoder. MODEL is tests/sentences/tiny/model.safetensors, from adead's tests. */
#include <adead.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
  static const uint32_t values[] = {2, 73, 74, 3, 2, 74, 3, 0}; /* two sequences; the second one is padded */
  static const size_t dims[] = {2, 4}, lengths[] = {4, 3}, three[] = {3, 32};
  adead_module_options table = ADEAD_MODULE_OPTIONS_INIT, norm = table, config = table;
  adead_forward_options padded = ADEAD_FORWARD_OPTIONS_INIT;
  adead_context *ctx = NULL;
  adead_safetensors *weights = NULL;
  adead_module *parts[2] = {NULL, NULL}, *embedding = NULL, *encoder = NULL;
  adead_tensor *ids = NULL, *x = NULL, *y = NULL, *second = NULL, *alone = NULL;
  const void *rows = NULL, *found = NULL, *expected = NULL;
  size_t bytes = 0;
  int failed;
  table.kind = ADEAD_MODULE_EMBEDDING;
  table.inputs = 92;
  norm.kind = ADEAD_MODULE_LAYER_NORM;
  config.kind = ADEAD_MODULE_TRANSFORMER_ENCODER;
  config.layers = 2;
  table.width = norm.width = config.width = 32;
  config.heads = 4;
  config.hidden = 48;
  padded.lengths = lengths;
  padded.count = 2;
  if (argc < 2 || adead_context_open("cpu", NULL, &ctx)) return 1;
  failed = adead_safetensors_open(argv[1], &weights) ||
           adead_module_load(ctx, weights, "embeddings.word_embeddings", &table, &parts[0]) ||
           adead_module_load(ctx, weights, "embeddings.LayerNorm", &norm, &parts[1]) ||
           adead_module_sequential((const adead_module *const *)parts, 2, &embedding) ||
           adead_module_load(ctx, weights, "encoder.layer", &config, &encoder) ||
           adead_tensor_create(ADEAD_DTYPE_U32, dims, 2, values, sizeof values, &ids) ||
           adead_module_forward(embedding, ids, NULL, &x) || adead_module_forward(encoder, x, &padded, &y);
  if (failed) fprintf(stderr, "%s\n", adead_last_error());

  /* A sequence alone has the same bits. */
  failed = failed || adead_tensor_data(x, &rows) ||
           adead_tensor_create(ADEAD_DTYPE_F32, three, 2, (const float *)rows + 4 * 32, 3 * 32 * sizeof(float), &second) ||
           adead_module_forward(encoder, second, NULL, &alone) || adead_tensor_data(y, &found) ||
           adead_tensor_data(alone, &expected) || adead_tensor_bytes(alone, &bytes) ||
           memcmp((const float *)found + 4 * 32, expected, bytes);
  adead_tensor_destroy(alone);
  adead_tensor_destroy(second);
  adead_tensor_destroy(y);
  adead_tensor_destroy(x);
  adead_tensor_destroy(ids);
  adead_module_destroy(encoder);
  adead_module_destroy(embedding);
  adead_module_destroy(parts[1]);
  adead_module_destroy(parts[0]);
  adead_safetensors_close(weights);
  adead_context_destroy(ctx);
  return failed;
}
