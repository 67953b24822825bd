/* adead_quantize: sizes, bytes, errors. */
#define LAST_ERROR adead_models_last_error
#include <adead/models.h>

#include "check.h"

#include <math.h>

int main(void) {
  enum { COUNT = 512, ROOM = 1024 };
  static const size_t sizes[] = {544, 288, 320, 352, 384, 288, 352, 420};
  float values[COUNT], read[COUNT];
  unsigned char blocks[ROOM];
  size_t size = 0, i;
  int32_t format;
  for (i = 0; i < COUNT; i++) {
    values[i] = (float)((int)(i * 37 % 101) - 50) / 50;
  }
  for (format = ADEAD_BLOCK_FORMAT_Q8_0; format <= ADEAD_BLOCK_FORMAT_Q6_K; format++) {
    adead_context *context = NULL;
    adead_tensor *w = NULL, *back = NULL;
    size_t dims[2];
    const void *data = NULL;
    OK(adead_quantize(NULL, COUNT, format, NULL, 0, &size));
    CHECK(size == sizes[format]);
    size = 0;
    OK(adead_quantize(values, COUNT, format, blocks, size + ROOM, &size));
    CHECK(size == sizes[format]);
    FAILS(adead_quantize(values, COUNT, format, blocks, size - 1, &size), ADEAD_INVALID_ARGUMENT, "512 values take");
    CHECK(size == sizes[format]);
    dims[0] = 2;
    dims[1] = size / 2;
    OK(adead_context_open("cpu", NULL, &context));
    OK(adead_tensor_create(ADEAD_DTYPE_U8, dims, 2, blocks, size, &w));
    OK(adead_tensor_dequantize(context, w, format, &back));
    OK(adead_tensor_data(back, &data));
    memcpy(read, data, sizeof read);
    for (i = 0; i < COUNT; i++) {
      CHECK(fabsf(read[i] - values[i]) < 0.13f);
    }
    adead_tensor_destroy(back);
    adead_tensor_destroy(w);
    adead_context_destroy(context);
  }
  FAILS(adead_quantize(values, COUNT, 8, blocks, ROOM, &size), ADEAD_INVALID_ARGUMENT, "format is 8");
  FAILS(adead_quantize(values, 33, 0, blocks, ROOM, &size), ADEAD_SHAPE_MISMATCH, "33 values; q8_0 takes a multiple of 32");
  FAILS(adead_quantize(NULL, 32, 0, blocks, ROOM, &size), ADEAD_INVALID_ARGUMENT, "values");
  FAILS(adead_quantize(values, 32, 0, blocks, ROOM, NULL), ADEAD_INVALID_ARGUMENT, "size");
  values[40] = INFINITY;
  FAILS(adead_quantize(values, 64, 0, blocks, ROOM, &size), ADEAD_INVALID_ARGUMENT, "value 40 is inf");
  return 0;
}
