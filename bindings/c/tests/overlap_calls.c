/* What orders the batches of adead_overlap, which a device in software that runs one thing after another does not show: built
 * with the library's sources, whose calls of streams are these. */
#undef adead_stream_upload
#undef adead_stream_wait_event
#undef adead_stream_event
#undef adead_stream_download
#undef adead_stream_flush
#undef adead_stream_sync
#define LAST_ERROR adead_overlap_last_error
#include <adead/overlap.h>

#include "check.h"

adead_status logged_upload(adead_stream *stream, adead_buffer *buffer, size_t offset, const void *data, size_t bytes);
adead_status logged_wait_event(adead_stream *stream, const adead_event *event);
adead_status logged_event(adead_stream *stream, adead_event **out);
adead_status logged_download(adead_stream *stream, const adead_buffer *buffer, size_t offset, size_t bytes,
                             adead_download **out);
adead_status logged_flush(adead_stream *stream);
adead_status logged_sync(adead_stream *stream);

static char calls[256];
/* The one that was made last. */
static const adead_event *newest;

static void log_call(char call) {
  size_t length = strlen(calls);
  CHECK(length + 1 < sizeof calls);
  calls[length] = call;
}

adead_status logged_upload(adead_stream *stream, adead_buffer *buffer, size_t offset, const void *data, size_t bytes) {
  log_call('u');
  return adead_stream_upload(stream, buffer, offset, data, bytes);
}
adead_status logged_wait_event(adead_stream *stream, const adead_event *event) {
  log_call('w');
  CHECK(event == newest);
  return adead_stream_wait_event(stream, event);
}
adead_status logged_event(adead_stream *stream, adead_event **out) {
  adead_status status = adead_stream_event(stream, out);
  log_call('e');
  newest = *out;
  return status;
}
adead_status logged_download(adead_stream *stream, const adead_buffer *buffer, size_t offset, size_t bytes,
                             adead_download **out) {
  log_call('d');
  return adead_stream_download(stream, buffer, offset, bytes, out);
}
adead_status logged_flush(adead_stream *stream) {
  log_call('f');
  return adead_stream_flush(stream);
}
adead_status logged_sync(adead_stream *stream) {
  log_call('s');
  return adead_stream_sync(stream);
}

typedef enum { NOTHING, INPUT, BUFFER, SHARED } kind;

typedef struct {
  kind result;
  size_t asked;
  adead_buffer *shared;
} run;

static adead_status next(adead_batch *batch, void *user) {
  run *it = user;
  return it->asked++ == 3 ? ADEAD_OK : adead_batch_borrow(batch, "four", 4);
}

static adead_status work(adead_stage *stage, void *user) {
  run *it = user;
  adead_buffer *buffer = NULL;
  log_call('x');
  OK(adead_stage_buffer(stage, 4, &buffer));
  if (it->result == NOTHING) return ADEAD_OK;
  if (it->result == INPUT) buffer = adead_stage_input(stage);
  return adead_stage_result(stage, it->result == SHARED ? it->shared : buffer, 0, 4);
}

static adead_status take(size_t index, const void *data, size_t bytes, void *user) {
  CHECK(index < 3 && data && bytes == (((run *)user)->result == NOTHING ? 0 : 4));
  log_call('t');
  return ADEAD_OK;
}

int main(void) {
  /* Work waits for the work before it. What a lane has for itself is brought beside the next batch's work; what others write
   * too, before it. */
  static const char *const expected[] = {
      [NOTHING] = "uxef" "uwxef" "st" "uwxef" "stst",
      [INPUT] = "uxedf" "uwxedf" "st" "uwxedf" "stst",
      [BUFFER] = "uxedf" "uwxedf" "st" "uwxedf" "stst",
      [SHARED] = "uxdef" "uwxdef" "st" "uwxdef" "stst",
  };
  adead_context *context = NULL;
  kind result;
  CHECK(!adead_context_open("cpu", NULL, &context));
  for (result = NOTHING; result <= SHARED; result++) {
    run it = {result, 0, NULL};
    CHECK(!adead_buffer_create(context, NULL, 4, &it.shared));
    memset(calls, 0, sizeof calls);
    OK(adead_overlap(context, 2, next, work, take, &it));
    if (strcmp(calls, expected[result])) fprintf(stderr, "%s instead of %s\n", calls, expected[result]);
    CHECK(!strcmp(calls, expected[result]));
    adead_buffer_destroy(it.shared);
  }
  adead_context_destroy(context);
  puts("ok");
  return 0;
}
