/*
 * Matrices and streams as integer handles, for interpreters: two products on the best device, a batch uploaded through a
 * stream, and the error for a handle that was freed.
 */
#include <adead.h>
#include <stdio.h>

static int failed(const char *what) {
  fprintf(stderr, "%s: %s\n", what, adead_last_error());
  return 1;
}

int main(void) {
  const float a[] = {1, 2, 3, 4}, b[] = {5, 6, 7, 8};
  const float *batch[2];
  const int64_t counts[] = {4, 4};
  adead_flat_handle matrices[2], product, stream;
  const char *backend;
  int32_t gpu;
  float values[4];

  if (adead_flat_gpu_available(&gpu) || adead_flat_backend_name(gpu, 0, &backend)) return failed("devices");
  if (adead_flat_alloc_zeros(2, 2, gpu, 0, &matrices[0]) || adead_flat_alloc_zeros(2, 2, gpu, 0, &matrices[1]))
    return failed("alloc");
  if (adead_flat_stream_create(gpu, 0, &stream)) return failed("stream");
  batch[0] = a;
  batch[1] = b;
  if (adead_flat_async_upload_batch(stream, matrices, batch, counts, 2)) return failed("upload");
  if (adead_flat_matmul(matrices[0], matrices[1], stream, &product)) return failed("matmul");
  if (adead_flat_stream_sync(stream) || adead_flat_download(product, values, 4)) return failed("download");
  printf("on %s: %g %g %g %g\n", backend, values[0], values[1], values[2], values[3]);

  if (adead_flat_free(product)) return failed("free");
  if (adead_flat_free(product) == ADEAD_INVALID_ARGUMENT) printf("freed twice: %s\n", adead_last_error());
  return adead_flat_reset() ? failed("reset") : 0;
}
