/*
 * Runs batches through the best device, three in flight at once: one uploads, one computes, one downloads. A loader makes
 * them in a thread, at most two ahead. The results are those of a plain loop.
 */
#include <adead.h>
#include <stdio.h>

enum { COUNT = 8, ROW = 1000 };

typedef struct {
  adead_loader *loader;
  /* How many batches were made, and what came back. */
  size_t made;
  double sum;
} state;

/* Reads and decodes a batch, in the loader's thread. */
static adead_status make(adead_batch *batch, void *user) {
  state *all = user;
  void *memory;
  adead_status status;
  size_t i;
  if (all->made == COUNT) return ADEAD_OK;
  status = adead_batch_memory(batch, ROW * sizeof(float), &memory);
  if (status) return status;
  for (i = 0; i < ROW; i++) ((float *)memory)[i] = (float)all->made - 4;
  all->made++;
  return ADEAD_OK;
}

static adead_status next(adead_batch *batch, void *user) {
  const void *data;
  size_t bytes;
  adead_status status = adead_loader_next(((state *)user)->loader, &data, &bytes);
  return status || !data ? status : adead_batch_borrow(batch, data, bytes);
}

static adead_status work(adead_stage *stage, void *user) {
  const size_t row[] = {ROW};
  adead_operand x = {NULL, 0, NULL, 1, ADEAD_DTYPE_F32, 0}, y;
  adead_buffer *out;
  adead_status status = adead_stage_buffer(stage, ROW * sizeof(float), &out);
  (void)user;
  if (status) return status;
  x.dims = row;
  y = x;
  x.buffer = adead_stage_input(stage);
  y.buffer = out;
  status = adead_stream_run(adead_stage_stream(stage), ADEAD_OP_RELU, &x, 1, NULL, &y);
  return status ? status : adead_stage_result(stage, out, 0, ROW * sizeof(float));
}

static adead_status take(size_t index, const void *data, size_t bytes, void *user) {
  const float *values = data;
  printf("batch %zu: %zu bytes, the last value is %g\n", index, bytes, values[ROW - 1]);
  ((state *)user)->sum += values[ROW - 1];
  return ADEAD_OK;
}

int main(void) {
  adead_context *context = NULL;
  state all = {NULL, 0, 0};
  adead_status status = adead_context_open("auto", NULL, &context);
  if (status) {
    fprintf(stderr, "%s\n", adead_last_error());
    return 1;
  }
  status = adead_loader_create(make, &all, 2, &all.loader);
  if (!status) status = adead_overlap(context, 3, next, work, take, &all);
  if (status) fprintf(stderr, "%s\n", adead_last_error());
  adead_loader_destroy(all.loader);
  adead_context_destroy(context);
  return status || all.sum != 1 + 2 + 3;
}
