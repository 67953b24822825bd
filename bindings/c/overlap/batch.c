/* A batch on the host: memory that is filled, or bytes of the caller's. */
#include "internal.h"

#include <stdlib.h>

adead_status adead_batch_memory(adead_batch *batch, size_t bytes, void **out) {
  NEED(batch);
  NEED(out);
  /* A batch of no bytes has memory too, or it would be none. */
  if (!batch->memory || batch->room < bytes) {
    void *memory = malloc(bytes ? bytes : 1);
    if (!memory) return overlap_fail(ADEAD_OUT_OF_MEMORY, "no memory for a batch of %zu bytes", bytes);
    /* Nothing in the old one is worth copying. */
    free(batch->memory);
    batch->memory = memory;
    batch->room = bytes;
  }
  batch->data = batch->memory;
  batch->bytes = bytes;
  *out = batch->memory;
  return ADEAD_OK;
}

adead_status adead_batch_borrow(adead_batch *batch, const void *data, size_t bytes) {
  NEED(batch);
  if (bytes) NEED(data);
  batch->data = data ? data : "";
  batch->bytes = bytes;
  return ADEAD_OK;
}

adead_status batch_ask(adead_batch *batch, size_t index, adead_next next, void *user) {
  size_t before = overlap_failures();
  adead_status status;
  batch->data = NULL;
  batch->bytes = 0;
  status = next(batch, user);
  return status ? overlap_failed(status, "next", index, before) : ADEAD_OK;
}

void batch_free(adead_batch *batch) { free(batch->memory); }
