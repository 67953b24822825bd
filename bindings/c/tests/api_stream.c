/* Streams: transfers, kernels and operations in order, events between them, times, recordings; and every way to misuse
 * them. */
#include "gpu.h"

#include <pthread.h>
#include <stdint.h>

enum { N = 3000, BYTES = N * 4, THREADS = 4, ROUNDS = 20 };
static const uint32_t groups[3] = {(N + 255) / 256, 1, 1}, n = N;

static float x[N], y[N], sums[N];

static adead_stream *stream(const adead_context *context) {
  adead_stream *made = NULL;
  OK(adead_stream_create_with(context, ADEAD_PRIORITY_HIGH, &made));
  return made;
}

/* Upload, kernel, copy, download, on two streams with an event between them. */
static void works(const adead_context *context, const adead_kernel *vecadd) {
  adead_stream *first = stream(context), *second = stream(context);
  adead_buffer *lists[3], *copied = buffer(context, NULL, BYTES + 8);
  adead_event *event = NULL;
  adead_download *download = NULL;
  static float found[N + 2];
  int32_t done = 9;
  int i;
  for (i = 0; i < 3; i++) lists[i] = buffer(context, NULL, BYTES);
  OK(adead_stream_upload(first, lists[0], 0, x, BYTES));
  OK(adead_stream_upload(first, lists[1], 0, y, BYTES / 2));
  OK(adead_stream_upload(first, lists[1], BYTES / 2, y + N / 2, BYTES / 2));
  OK(adead_stream_dispatch(first, vecadd, lists, 3, &n, 4, groups));
  OK(adead_stream_event(first, &event));
  OK(adead_stream_wait_event(second, event));
  OK(adead_stream_copy(second, lists[2], 0, copied, 4, BYTES));
  OK(adead_stream_download(second, copied, 0, BYTES + 8, &download));
  OK(adead_stream_flush(second));
  OK(adead_download_query(download, &done));
  CHECK(done == 0 || done == 1);
  FAILS(adead_download_read(download, found, BYTES), ADEAD_INVALID_ARGUMENT, "the download has 12008");
  FAILS(adead_download_read(download, NULL, BYTES + 8), ADEAD_INVALID_ARGUMENT, "dst is NULL");
  FAILS(adead_download_read(NULL, found, BYTES), ADEAD_INVALID_ARGUMENT, "download is NULL");
  FAILS(adead_download_query(NULL, &done), ADEAD_INVALID_ARGUMENT, "download is NULL");
  FAILS(adead_download_query(download, NULL), ADEAD_INVALID_ARGUMENT, "out is NULL");
  found[1] = 0;
  OK(adead_download_read(download, found, BYTES + 8));
  CHECK(found[0] == 0 && found[N + 1] == 0 && !memcmp(found + 1, sums, BYTES));
  FAILS(adead_download_read(download, found, BYTES + 8), ADEAD_INVALID_ARGUMENT, "read before");
  OK(adead_download_query(download, &done));
  CHECK(done == 1);
  adead_download_destroy(download);
  OK(adead_event_wait(event, ADEAD_FOREVER));
  OK(adead_event_query(event, &done));
  CHECK(done == 1);
  OK(adead_event_wait(event, 0));
  OK(adead_stream_clear(second, copied, 4, BYTES));
  OK(adead_stream_sync(second));
  OK(adead_stream_query(second, &done));
  CHECK(done == 1);
  memset(found, 0, sizeof found);
  CHECK(has(copied, found, BYTES + 8));
  /* A download that nobody wants, and one whose stream and buffer go first. */
  OK(adead_stream_download(first, lists[2], 0, 8, &download));
  adead_download_destroy(download);
  OK(adead_stream_download(first, lists[2], 8, 12, &download));
  adead_stream_destroy(first);
  adead_stream_destroy(second);
  for (i = 0; i < 3; i++) adead_buffer_destroy(lists[i]);
  OK(adead_download_read(download, found, 12));
  CHECK(!memcmp(found, sums + 2, 12));
  adead_download_destroy(download);
  OK(adead_event_wait(event, 1));
  adead_event_destroy(event);
  OK(adead_event_create(context, &event)); /* Of the context's own stream. */
  OK(adead_event_wait(event, ADEAD_FOREVER));
  adead_event_destroy(event);
  adead_buffer_destroy(copied);
}

static void times(const adead_context *context) {
  adead_stream *it = stream(context);
  adead_buffer *a = buffer(context, NULL, 1 << 20), *b = buffer(context, NULL, 1 << 20);
  adead_timestamp *begin = NULL, *end = NULL;
  uint64_t ns = 1;
  OK(adead_stream_timestamp(it, &begin));
  OK(adead_stream_copy(it, a, 0, b, 0, 1 << 20));
  OK(adead_stream_timestamp(it, &end));
  OK(adead_stream_sync(it));
  OK(adead_timestamp_since(begin, begin, &ns));
  CHECK(ns == 0);
  OK(adead_timestamp_since(end, begin, &ns));
  CHECK(ns < 60000000000u);
  FAILS(adead_timestamp_since(NULL, begin, &ns), ADEAD_INVALID_ARGUMENT, "timestamp is NULL");
  FAILS(adead_timestamp_since(end, NULL, &ns), ADEAD_INVALID_ARGUMENT, "earlier is NULL");
  FAILS(adead_timestamp_since(end, begin, NULL), ADEAD_INVALID_ARGUMENT, "out is NULL");
  adead_timestamp_destroy(begin);
  adead_timestamp_destroy(end);
  adead_timestamp_destroy(NULL);
  adead_buffer_destroy(a);
  adead_buffer_destroy(b);
  adead_stream_destroy(it);
}

/* b = a + b, recorded once and run ten times. */
static void recordings(const adead_context *context, const adead_kernel *vecadd) {
  adead_stream *it = stream(context);
  adead_context *another = open_gpu();
  adead_stream *foreign = stream(another);
  adead_buffer *lists[3];
  adead_recording *recording = NULL, *none = NULL;
  static float ten[N];
  int i;
  lists[0] = buffer(context, x, BYTES);
  lists[1] = lists[2] = buffer(context, NULL, BYTES);
  OK(adead_stream_record_begin(it));
  OK(adead_stream_dispatch(it, vecadd, lists, 3, &n, 4, groups));
  /* What can't be recorded is refused, and the recording goes on. */
  FAILS(adead_stream_record_begin(it), ADEAD_INVALID_ARGUMENT, "record");
  FAILS(adead_stream_upload(it, lists[0], 0, x, BYTES), ADEAD_INVALID_ARGUMENT, "record");
  FAILS(adead_stream_sync(it), ADEAD_INVALID_ARGUMENT, "record");
  FAILS(adead_stream_record_end(it, NULL), ADEAD_INVALID_ARGUMENT, "out is NULL");
  OK(adead_stream_record_end(it, &recording));
  FAILS(adead_stream_record_end(it, &none), ADEAD_INVALID_ARGUMENT, "not recording");
  FAILS(adead_stream_record_end(NULL, &none), ADEAD_INVALID_ARGUMENT, "stream is NULL");
  FAILS(adead_stream_record_begin(NULL), ADEAD_INVALID_ARGUMENT, "stream is NULL");
  FAILS(adead_stream_replay(it, NULL), ADEAD_INVALID_ARGUMENT, "recording is NULL");
  FAILS(adead_stream_replay(NULL, recording), ADEAD_INVALID_ARGUMENT, "stream is NULL");
  FAILS(adead_stream_replay(foreign, recording), ADEAD_INVALID_ARGUMENT, "recording");
  CHECK(!none && recording);
  memset(ten, 0, sizeof ten);
  CHECK(has(lists[1], ten, BYTES)); /* Recording ran nothing. */
  for (i = 0; i < 10; i++) OK(adead_stream_replay(it, recording));
  adead_recording_destroy(recording);
  adead_recording_destroy(NULL);
  OK(adead_stream_sync(it));
  for (i = 0; i < N; i++) {
    int round;
    for (round = 0; round < 10; round++) ten[i] = x[i] + ten[i];
  }
  CHECK(has(lists[1], ten, BYTES));
  OK(adead_stream_record_begin(it)); /* And is given up while it records. */
  adead_stream_destroy(it);
  adead_stream_destroy(foreign);
  adead_context_destroy(another);
  adead_buffer_destroy(lists[0]);
  adead_buffer_destroy(lists[1]);
}

/* Operations of the op table on buffers; the bits are the CPU's. */
static void operations(const adead_context *context, int on_gpu) {
  const size_t rows[2] = {10, 300}, other[2] = {300, 10}, many[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
  adead_stream *it = stream(context);
  adead_buffer *a = buffer(context, x, BYTES), *out = buffer(context, NULL, BYTES);
  adead_operand in, to, absent;
  adead_status status;
  memset(&in, 0, sizeof in);
  in.buffer = a;
  in.dims = rows;
  in.rank = 2;
  in.dtype = ADEAD_DTYPE_F32;
  to = in;
  to.buffer = out;
  memset(&absent, 0, sizeof absent);
  status = adead_stream_run(it, ADEAD_OP_SOFTMAX, &in, 1, NULL, &to);
  CHECK(status == ADEAD_OK || (on_gpu && status == ADEAD_UNSUPPORTED));
  if (status == ADEAD_OK) {
    static float expected[N];
    OK(adead_softmax(x, expected, 10, 300));
    OK(adead_stream_sync(it));
    CHECK(has(out, expected, BYTES));
  }
  FAILS(adead_stream_run(NULL, ADEAD_OP_SOFTMAX, &in, 1, NULL, &to), ADEAD_INVALID_ARGUMENT, "stream is NULL");
  FAILS(adead_stream_run(it, -1, &in, 1, NULL, &to), ADEAD_INVALID_ARGUMENT, "op is -1");
  FAILS(adead_stream_run(it, ADEAD_OP_SOFTMAX, NULL, 1, NULL, &to), ADEAD_INVALID_ARGUMENT, "operands is NULL");
  FAILS(adead_stream_run(it, ADEAD_OP_SOFTMAX, &in, 1, NULL, NULL), ADEAD_INVALID_ARGUMENT, "result is NULL");
  FAILS(adead_stream_run(it, ADEAD_OP_SOFTMAX, &in, 1, NULL, &absent), ADEAD_INVALID_ARGUMENT, "result->buffer is NULL");
  FAILS(adead_stream_run(it, ADEAD_OP_SOFTMAX, &absent, 1, NULL, &to), ADEAD_INVALID_ARGUMENT, "softmax");
  FAILS(adead_stream_run(it, ADEAD_OP_SOFTMAX, &in, 0, NULL, &to), ADEAD_INVALID_ARGUMENT, "softmax");
  to.dims = other;
  FAILS(adead_stream_run(it, ADEAD_OP_SOFTMAX, &in, 1, NULL, &to), ADEAD_SHAPE_MISMATCH, "[300, 10]");
  to.dims = rows;
  to.dtype = ADEAD_DTYPE_I32;
  FAILS(adead_stream_run(it, ADEAD_OP_SOFTMAX, &in, 1, NULL, &to), ADEAD_DTYPE_MISMATCH, "i32");
  to.dtype = 99;
  FAILS(adead_stream_run(it, ADEAD_OP_SOFTMAX, &in, 1, NULL, &to), ADEAD_INVALID_ARGUMENT, "dtype is 99");
  to.dtype = ADEAD_DTYPE_F32;
  to.offset = 4;
  FAILS(adead_stream_run(it, ADEAD_OP_SOFTMAX, &in, 1, NULL, &to), ADEAD_INVALID_ARGUMENT, "12000 bytes");
  to.offset = 0;
  in.dims = many;
  in.rank = 9;
  FAILS(adead_stream_run(it, ADEAD_OP_SOFTMAX, &in, 1, NULL, &to), ADEAD_INVALID_ARGUMENT, "rank is 9");
  in.rank = 2;
  in.dims = NULL;
  FAILS(adead_stream_run(it, ADEAD_OP_SOFTMAX, &in, 1, NULL, &to), ADEAD_INVALID_ARGUMENT, "dims is NULL");
  in.dims = rows;
  in.reserved = 1;
  FAILS(adead_stream_run(it, ADEAD_OP_SOFTMAX, &in, 1, NULL, &to), ADEAD_UNSUPPORTED, "reserved");
  in.reserved = 0;
  OK(adead_buffer_free(a));
  FAILS(adead_stream_run(it, ADEAD_OP_SOFTMAX, &in, 1, NULL, &to), ADEAD_INVALID_ARGUMENT, "was freed");
  adead_buffer_destroy(a);
  adead_buffer_destroy(out);
  adead_stream_destroy(it);
}

static void misuse(const adead_context *context, const adead_context *another) {
  adead_stream *it = stream(context), *none = NULL;
  adead_buffer *a = buffer(context, x, 16), *b = buffer(context, x, 16), *foreign = buffer(another, x, 16);
  adead_event *event = NULL, *theirs = NULL;
  adead_download *download = NULL;
  adead_timestamp *timestamp = NULL;
  int32_t done = 9;
  FAILS(adead_stream_create(NULL, &none), ADEAD_INVALID_ARGUMENT, "context is NULL");
  FAILS(adead_stream_create(context, NULL), ADEAD_INVALID_ARGUMENT, "out is NULL");
  FAILS(adead_stream_create_with(context, 2, &none), ADEAD_INVALID_ARGUMENT, "priority is 2; it must be one of ADEAD_PRIORITY_");
  FAILS(adead_stream_upload(NULL, a, 0, x, 16), ADEAD_INVALID_ARGUMENT, "stream is NULL");
  FAILS(adead_stream_upload(it, NULL, 0, x, 16), ADEAD_INVALID_ARGUMENT, "buffer is NULL");
  FAILS(adead_stream_upload(it, a, 0, NULL, 16), ADEAD_INVALID_ARGUMENT, "data is NULL");
  FAILS(adead_stream_upload(it, a, 1, x, 16), ADEAD_INVALID_ARGUMENT, "16 bytes at offset 1");
  FAILS(adead_stream_upload(it, foreign, 0, x, 16), ADEAD_INVALID_ARGUMENT, "another");
  FAILS(adead_stream_download(NULL, a, 0, 16, &download), ADEAD_INVALID_ARGUMENT, "stream is NULL");
  FAILS(adead_stream_download(it, NULL, 0, 16, &download), ADEAD_INVALID_ARGUMENT, "buffer is NULL");
  FAILS(adead_stream_download(it, a, 0, 16, NULL), ADEAD_INVALID_ARGUMENT, "out is NULL");
  FAILS(adead_stream_download(it, a, 4, 13, &download), ADEAD_INVALID_ARGUMENT, "13 bytes at offset 4");
  FAILS(adead_stream_copy(NULL, a, 0, b, 0, 16), ADEAD_INVALID_ARGUMENT, "stream is NULL");
  FAILS(adead_stream_copy(it, NULL, 0, b, 0, 16), ADEAD_INVALID_ARGUMENT, "from is NULL");
  FAILS(adead_stream_copy(it, a, 0, NULL, 0, 16), ADEAD_INVALID_ARGUMENT, "to is NULL");
  FAILS(adead_stream_copy(it, a, 8, b, 0, 16), ADEAD_INVALID_ARGUMENT, "16 bytes at offset 8");
  FAILS(adead_stream_copy(it, a, 0, a, 4, 8), ADEAD_INVALID_ARGUMENT, "overlap");
  FAILS(adead_stream_clear(NULL, a, 0, 16), ADEAD_INVALID_ARGUMENT, "stream is NULL");
  FAILS(adead_stream_clear(it, NULL, 0, 16), ADEAD_INVALID_ARGUMENT, "buffer is NULL");
  FAILS(adead_stream_clear(it, a, 0, 17), ADEAD_INVALID_ARGUMENT, "17 bytes");
  FAILS(adead_stream_dispatch(NULL, NULL, NULL, 0, NULL, 0, groups), ADEAD_INVALID_ARGUMENT, "stream is NULL");
  FAILS(adead_stream_dispatch(it, NULL, NULL, 0, NULL, 0, groups), ADEAD_INVALID_ARGUMENT, "kernel is NULL");
  FAILS(adead_stream_event(NULL, &event), ADEAD_INVALID_ARGUMENT, "stream is NULL");
  FAILS(adead_stream_event(it, NULL), ADEAD_INVALID_ARGUMENT, "out is NULL");
  OK(adead_stream_event(it, &event));
  OK(adead_event_create(another, &theirs));
  FAILS(adead_stream_wait_event(NULL, event), ADEAD_INVALID_ARGUMENT, "stream is NULL");
  FAILS(adead_stream_wait_event(it, NULL), ADEAD_INVALID_ARGUMENT, "event is NULL");
  FAILS(adead_event_create(NULL, &event), ADEAD_INVALID_ARGUMENT, "context is NULL");
  FAILS(adead_event_create(context, NULL), ADEAD_INVALID_ARGUMENT, "out is NULL");
  FAILS(adead_event_query(NULL, &done), ADEAD_INVALID_ARGUMENT, "event is NULL");
  FAILS(adead_event_query(event, NULL), ADEAD_INVALID_ARGUMENT, "out is NULL");
  FAILS(adead_event_wait(NULL, 0), ADEAD_INVALID_ARGUMENT, "event is NULL");
  FAILS(adead_stream_timestamp(NULL, &timestamp), ADEAD_INVALID_ARGUMENT, "stream is NULL");
  FAILS(adead_stream_timestamp(it, NULL), ADEAD_INVALID_ARGUMENT, "out is NULL");
  FAILS(adead_stream_flush(NULL), ADEAD_INVALID_ARGUMENT, "stream is NULL");
  FAILS(adead_stream_sync(NULL), ADEAD_INVALID_ARGUMENT, "stream is NULL");
  FAILS(adead_stream_query(NULL, &done), ADEAD_INVALID_ARGUMENT, "stream is NULL");
  FAILS(adead_stream_query(it, NULL), ADEAD_INVALID_ARGUMENT, "out is NULL");
  OK(adead_buffer_free(b));
  FAILS(adead_stream_upload(it, b, 0, x, 16), ADEAD_INVALID_ARGUMENT, "was freed");
  FAILS(adead_stream_download(it, b, 0, 16, &download), ADEAD_INVALID_ARGUMENT, "was freed");
  FAILS(adead_stream_copy(it, b, 0, a, 0, 16), ADEAD_INVALID_ARGUMENT, "was freed");
  FAILS(adead_stream_copy(it, a, 0, b, 0, 16), ADEAD_INVALID_ARGUMENT, "was freed");
  FAILS(adead_stream_clear(it, b, 0, 16), ADEAD_INVALID_ARGUMENT, "was freed");
  CHECK(!none && !download && !timestamp && done == 9 && has(a, x, 16));
  OK(adead_stream_sync(it));
  adead_stream_destroy(NULL);
  adead_event_destroy(NULL);
  adead_download_destroy(NULL);
  adead_event_destroy(theirs);
  adead_event_destroy(event);
  adead_buffer_destroy(foreign);
  adead_buffer_destroy(b);
  adead_buffer_destroy(a);
  adead_stream_destroy(it);
}

typedef struct {
  const adead_context *context;
  const adead_kernel *vecadd;
  adead_buffer *a, *b;
} shared;

/* Each with a stream and a result of its own; operands, kernel and context are shared. */
static void *worker(void *argument) {
  const shared *all = argument;
  adead_stream *it = stream(all->context);
  adead_buffer *lists[3];
  int round;
  lists[0] = all->a;
  lists[1] = all->b;
  for (round = 0; round < ROUNDS; round++) {
    lists[2] = buffer(all->context, NULL, BYTES);
    OK(adead_stream_dispatch(it, all->vecadd, lists, 3, &n, 4, groups));
    OK(adead_stream_sync(it));
    CHECK(has(lists[2], sums, BYTES)); /* Through the context's stream, which all share. */
    adead_buffer_destroy(lists[2]);
  }
  adead_stream_destroy(it);
  return NULL;
}

static void threads(const adead_context *context, const adead_kernel *vecadd) {
  pthread_t ids[THREADS];
  shared all;
  int i;
  all.context = context;
  all.vecadd = vecadd;
  all.a = buffer(context, x, BYTES);
  all.b = buffer(context, y, BYTES);
  for (i = 0; i < THREADS; i++) CHECK(!pthread_create(&ids[i], NULL, worker, &all));
  for (i = 0; i < THREADS; i++) CHECK(!pthread_join(ids[i], NULL));
  adead_buffer_destroy(all.a);
  adead_buffer_destroy(all.b);
}

/* The CPU has streams too: their work is done when a call returns. */
static void without_gpu(const adead_context *cpu) {
  adead_stream *it = stream(cpu);
  adead_buffer *a = buffer(cpu, NULL, BYTES);
  adead_download *download = NULL;
  static float found[N];
  OK(adead_stream_upload(it, a, 0, x, BYTES));
  OK(adead_stream_download(it, a, 0, BYTES, &download));
  OK(adead_download_read(download, found, BYTES));
  CHECK(!memcmp(found, x, BYTES));
  adead_download_destroy(download);
  FAILS(adead_stream_record_begin(it), ADEAD_UNSUPPORTED, "CPU");
  adead_buffer_destroy(a);
  adead_stream_destroy(it);
  operations(cpu, 0);
  times(cpu);
}

int main(void) {
  adead_context *cpu = NULL, *gpu;
  adead_kernel *vecadd;
  int i;
  some_values(x, N, 1);
  some_values(y, N, 2);
  for (i = 0; i < N; i++) sums[i] = x[i] + y[i];
  OK(adead_init(ADEAD_BACKEND_CPU));
  OK(adead_context_open("cpu", NULL, &cpu));
  without_gpu(cpu);
  gpu = open_gpu();
  vecadd = kernel(gpu, "vecadd");
  works(gpu, vecadd);
  times(gpu);
  recordings(gpu, vecadd);
  operations(gpu, 1);
  misuse(gpu, cpu);
  threads(gpu, vecadd);
  adead_kernel_destroy(vecadd);
  adead_context_destroy(gpu);
  adead_context_destroy(cpu);
  return 0;
}
