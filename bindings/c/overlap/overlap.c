/* Batches through a device: lanes, each a stream with the buffers of the one batch that is under way on it. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
  adead_buffer *buffer;
  size_t bytes;
} sized;

typedef struct {
  adead_stream *stream;
  sized input, *buffers;
  /* Buffers that there are. */
  size_t count;
  adead_download *download;
  size_t bytes;
} lane;

struct adead_stage {
  const adead_context *context;
  lane *lane;
  /* Buffers that this batch asked for. */
  size_t index, used;
  /* The result. */
  const adead_buffer *from;
  size_t offset, bytes;
};

typedef struct {
  const adead_context *context;
  adead_next next;
  adead_work work;
  adead_take take;
  void *user;
  adead_batch batch;
  lane *lanes;
  size_t depth, started, finished;
  /* The point after the work of the last batch that was started. */
  adead_event *before;
} run;

#define TRY(call)                \
  do {                           \
    adead_status tried = (call); \
    if (tried) return tried;     \
  } while (0)
#define TRY_ADEAD(call) TRY(overlap_check(call))

/* Makes it a buffer of so many bytes. What does not fit goes first, so that both need not be there at once. */
static adead_status fit(const adead_context *context, sized *it, size_t bytes) {
  if (it->buffer && it->bytes == bytes) return ADEAD_OK;
  adead_buffer_destroy(it->buffer);
  it->buffer = NULL;
  TRY_ADEAD(adead_buffer_create(context, NULL, bytes, &it->buffer));
  it->bytes = bytes;
  return ADEAD_OK;
}

size_t adead_stage_index(const adead_stage *stage) { return stage ? stage->index : 0; }
adead_stream *adead_stage_stream(const adead_stage *stage) { return stage ? stage->lane->stream : NULL; }
adead_buffer *adead_stage_input(const adead_stage *stage) { return stage ? stage->lane->input.buffer : NULL; }

adead_status adead_stage_buffer(adead_stage *stage, size_t bytes, adead_buffer **out) {
  lane *on;
  NEED(stage);
  NEED(out);
  on = stage->lane;
  if (stage->used == on->count) {
    sized *more = realloc(on->buffers, (on->count + 1) * sizeof *more);
    if (!more) return overlap_fail(ADEAD_OUT_OF_MEMORY, "no memory for %zu buffers of a batch", on->count + 1);
    memset(&more[on->count], 0, sizeof *more);
    on->buffers = more;
    on->count++;
  }
  TRY(fit(stage->context, &on->buffers[stage->used], bytes));
  *out = on->buffers[stage->used++].buffer;
  return ADEAD_OK;
}

adead_status adead_stage_result(adead_stage *stage, const adead_buffer *buffer, size_t offset, size_t bytes) {
  NEED(stage);
  NEED(buffer);
  stage->from = buffer;
  stage->offset = offset;
  stage->bytes = bytes;
  return ADEAD_OK;
}

/* The point after everything on a lane is where the work of the next batch begins. */
static adead_status mark(run *all, const lane *on) {
  adead_event *event = NULL;
  TRY_ADEAD(adead_stream_event(on->stream, &event));
  adead_event_destroy(all->before);
  all->before = event;
  return ADEAD_OK;
}

/* Whether a buffer is one of this lane's, which no other batch has. */
static bool owns(const lane *on, const adead_buffer *buffer) {
  size_t i;
  if (buffer == on->input.buffer) return true;
  for (i = 0; i < on->count; i++)
    if (buffer == on->buffers[i].buffer) return true;
  return false;
}

/* Enqueues the batch: upload, work behind the work of the batch before, download. */
static adead_status start(run *all) {
  lane *on = &all->lanes[all->started % all->depth];
  const adead_batch *batch = &all->batch;
  adead_stage stage;
  size_t failures;
  adead_status status;
  bool own;
  TRY(fit(all->context, &on->input, batch->bytes));
  if (batch->bytes) TRY_ADEAD(adead_stream_upload(on->stream, on->input.buffer, 0, batch->data, batch->bytes));
  if (all->before) TRY_ADEAD(adead_stream_wait_event(on->stream, all->before));
  memset(&stage, 0, sizeof stage);
  stage.context = all->context;
  stage.lane = on;
  stage.index = all->started;
  failures = overlap_failures();
  status = all->work(&stage, all->user);
  if (status) return overlap_failed(status, "work", all->started, failures);
  /* A buffer that others have too may be written by the work of the next batch: that waits for the download. */
  own = !stage.from || owns(on, stage.from);
  if (own) TRY(mark(all, on));
  on->bytes = stage.bytes;
  if (stage.from) TRY_ADEAD(adead_stream_download(on->stream, stage.from, stage.offset, stage.bytes, &on->download));
  if (!own) TRY(mark(all, on));
  TRY_ADEAD(adead_stream_flush(on->stream));
  all->started++;
  return ADEAD_OK;
}

/* Waits for the first batch that is under way and has its result taken. */
static adead_status finish(run *all) {
  size_t index = all->finished, failures;
  lane *on = &all->lanes[index % all->depth];
  const void *data = "";
  adead_status status;
  /* What only the device can find is told here. */
  TRY_ADEAD(adead_stream_sync(on->stream));
  if (on->download) TRY_ADEAD(adead_download_data(on->download, &data));
  failures = overlap_failures();
  status = all->take(index, data, on->bytes, all->user);
  if (status) return overlap_failed(status, "take", index, failures);
  adead_download_destroy(on->download);
  on->download = NULL;
  all->finished++;
  return ADEAD_OK;
}

/* Asks for a batch and starts it, if there is one. */
static adead_status start_next(run *all, bool *more) {
  TRY(batch_ask(&all->batch, all->started, all->next, all->user));
  *more = all->batch.data;
  return *more ? start(all) : ADEAD_OK;
}

static adead_status run_all(run *all) {
  adead_status ended = ADEAD_OK;
  char text[TEXT];
  bool more = true;
  size_t i;
  for (i = 0; i < all->depth; i++) TRY_ADEAD(adead_stream_create(all->context, &all->lanes[i].stream));
  while (more || all->finished < all->started) {
    if (!more || all->started - all->finished == all->depth) {
      TRY(finish(all));
      continue;
    }
    ended = start_next(all, &more);
    if (!ended) continue;
    /* It comes behind the batches before it. */
    more = false;
    memcpy(text, adead_overlap_last_error(), sizeof text);
  }
  return ended ? overlap_fail(ended, "%s", text) : ADEAD_OK;
}

static void lane_free(lane *on) {
  size_t i;
  /* Waits for what is under way. */
  adead_stream_destroy(on->stream);
  adead_download_destroy(on->download);
  adead_buffer_destroy(on->input.buffer);
  for (i = 0; i < on->count; i++) adead_buffer_destroy(on->buffers[i].buffer);
  free(on->buffers);
}

adead_status adead_overlap(const adead_context *context, size_t depth, adead_next next, adead_work work, adead_take take,
                           void *user) {
  run all;
  adead_status status;
  size_t i;
  NEED(context);
  NEED(next);
  NEED(work);
  NEED(take);
  if (depth < 1 || depth > ADEAD_OVERLAP_MAX_DEPTH)
    return overlap_fail(ADEAD_INVALID_ARGUMENT, "overlap: the depth is %zu; it must be from 1 to %d", depth,
                        ADEAD_OVERLAP_MAX_DEPTH);
  memset(&all, 0, sizeof all);
  all.context = context;
  all.next = next;
  all.work = work;
  all.take = take;
  all.user = user;
  all.depth = depth;
  all.lanes = calloc(depth, sizeof *all.lanes);
  if (!all.lanes) return overlap_fail(ADEAD_OUT_OF_MEMORY, "no memory for %zu lanes", depth);
  status = run_all(&all);
  for (i = 0; i < depth; i++) lane_free(&all.lanes[i]);
  free(all.lanes);
  adead_event_destroy(all.before);
  batch_free(&all.batch);
  return status;
}
