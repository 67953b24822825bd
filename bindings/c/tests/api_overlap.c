/* Batches: the results are those of a plain loop, at every depth, on the CPU and on the device that ADEAD_TEST_DEVICE
 * names; errors come in their places, and an early end frees everything. */
#include "check.h"

enum { ROW = 1000, SMALL = 64, MOST = 32 };

/* What the callbacks of a test know. */
typedef struct {
  size_t count, depth, asked, worked, taken;
  /* Where something fails, and with what. */
  size_t bad_next, bad_work, bad_take;
  adead_status status;
  /* Buffers that lanes gave. */
  adead_buffer *inputs[MOST], *buffers[MOST];
  adead_buffer *state;
  adead_context *context;
  float expected;
} run;

static run fresh(adead_context *context, size_t count, size_t depth) {
  run it;
  memset(&it, 0, sizeof it);
  it.context = context;
  it.count = count;
  it.depth = depth;
  it.bad_next = it.bad_work = it.bad_take = MOST;
  return it;
}

/* Every seventh batch is small, the eleventh has nothing. */
static size_t length(size_t index) { return index == 10 ? 0 : index % 7 == 6 ? SMALL : ROW; }

static adead_operand operand(adead_buffer *buffer, const size_t *dims) {
  adead_operand it;
  memset(&it, 0, sizeof it);
  it.buffer = buffer;
  it.dims = dims;
  it.rank = 1;
  it.dtype = ADEAD_DTYPE_F32;
  return it;
}

static adead_status next(adead_batch *batch, void *user) {
  run *it = user;
  void *memory;
  size_t index = it->asked;
  /* A batch is asked for when a lane is free. */
  CHECK(it->asked - it->taken < it->depth && it->worked == it->asked);
  if (index == it->bad_next) return it->status;
  if (index == it->count) return ADEAD_OK;
  OK(adead_batch_memory(batch, length(index) * sizeof(float), &memory));
  some_values(memory, length(index), (unsigned)index);
  it->asked++;
  return ADEAD_OK;
}

static adead_status relu(adead_stage *stage, void *user) {
  run *it = user;
  size_t index = adead_stage_index(stage), n = length(index), bytes = 0;
  adead_operand x = operand(adead_stage_input(stage), &n), y;
  CHECK(index == it->worked++ && it->asked == it->worked && index < MOST);
  OK(adead_buffer_size(x.buffer, &bytes));
  CHECK(bytes == n * sizeof(float));
  if (index == it->bad_work && it->status > 0) {
    /* What libadead refuses. */
    n++;
    return adead_stream_run(adead_stage_stream(stage), ADEAD_OP_RELU, &x, 1, NULL, &x);
  }
  if (index == it->bad_work) return it->status;
  it->inputs[index] = x.buffer;
  OK(adead_stage_buffer(stage, n * sizeof(float), &it->buffers[index]));
  y = operand(it->buffers[index], &n);
  OK(adead_stream_run(adead_stage_stream(stage), ADEAD_OP_RELU, &x, 1, NULL, &y));
  /* The last call counts. */
  OK(adead_stage_result(stage, x.buffer, 0, 0));
  OK(adead_stage_result(stage, y.buffer, 0, n * sizeof(float)));
  return ADEAD_OK;
}

static adead_status take(size_t index, const void *data, size_t bytes, void *user) {
  run *it = user;
  const float *found = data;
  float values[ROW];
  size_t n = length(index), i;
  CHECK(index == it->taken && data && bytes == n * sizeof(float));
  CHECK((uintptr_t)data % 8 == 0);
  some_values(values, n, (unsigned)index);
  for (i = 0; i < n; i++) CHECK(found[i] == (values[i] > 0 ? values[i] : 0));
  /* What fails here, and is no matter, is not what it fails of. */
  FAILS(adead_batch_borrow(NULL, data, 0), ADEAD_INVALID_ARGUMENT, "batch is NULL");
  if (index == it->bad_take) return it->status;
  it->taken++;
  return ADEAD_OK;
}

static uint64_t allocations(const adead_context *context) {
  adead_memory_use memory;
  memory.struct_size = sizeof memory;
  CHECK(!adead_memory(context, &memory));
  return memory.allocations;
}

static void order(adead_context *context) {
  static const size_t depths[] = {1, 2, 3, 8, 64}, counts[] = {0, 1, 20};
  size_t d, c, i;
  for (d = 0; d < sizeof depths / sizeof *depths; d++) {
    for (c = 0; c < sizeof counts / sizeof *counts; c++) {
      uint64_t before = allocations(context);
      run it = fresh(context, counts[c], depths[d]);
      OK(adead_overlap(context, it.depth, next, relu, take, &it));
      CHECK(it.taken == counts[c] && it.worked == counts[c]);
      CHECK(allocations(context) == before);
      for (i = it.depth; i < counts[c]; i++) {
        /* A lane's buffers serve its next batch of the same size. */
        if (length(i) != length(i - it.depth)) continue;
        CHECK(it.inputs[i] == it.inputs[i - it.depth] && it.buffers[i] == it.buffers[i - it.depth]);
      }
    }
  }
}

/* A state that every batch changes, brought back each time: in order, though downloads run beside work. */
static adead_status ones(adead_batch *batch, void *user) {
  run *it = user;
  static float values[MOST][ROW];
  size_t i;
  if (it->asked == it->count) return ADEAD_OK;
  for (i = 0; i < ROW; i++) values[it->asked][i] = (float)it->asked;
  return adead_batch_borrow(batch, values[it->asked++], sizeof *values);
}

static adead_status add(adead_stage *stage, void *user) {
  run *it = user;
  const size_t n = ROW;
  adead_operand operands[2];
  operands[0] = operand(it->state, &n);
  operands[1] = operand(adead_stage_input(stage), &n);
  it->worked++;
  OK(adead_stream_run(adead_stage_stream(stage), ADEAD_OP_ADD, operands, 2, NULL, &operands[0]));
  return adead_stage_result(stage, it->state, 4, 8);
}

static adead_status take_sum(size_t index, const void *data, size_t bytes, void *user) {
  run *it = user;
  float found[2];
  CHECK(index == it->taken++ && bytes == sizeof found);
  memcpy(found, data, sizeof found);
  it->expected += (float)index;
  CHECK(found[0] == it->expected && found[1] == it->expected);
  return ADEAD_OK;
}

static void states(adead_context *context) {
  size_t depth;
  for (depth = 1; depth < 6; depth++) {
    run it = fresh(context, 20, depth);
    CHECK(!adead_buffer_create(context, NULL, ROW * sizeof(float), &it.state));
    OK(adead_overlap(context, depth, ones, add, take_sum, &it));
    CHECK(it.taken == 20 && it.expected == 190);
    adead_buffer_destroy(it.state);
  }
}

/* Batches of nothing, and results of nothing. */
static adead_status empty(adead_batch *batch, void *user) {
  run *it = user;
  void *memory;
  if (it->asked == it->count) return ADEAD_OK;
  if (it->asked++ % 2) return adead_batch_memory(batch, 0, &memory);
  return adead_batch_borrow(batch, NULL, 0);
}

static adead_status no_work(adead_stage *stage, void *user) {
  run *it = user;
  CHECK(adead_stage_index(stage) == it->worked++);
  return ADEAD_OK;
}

static adead_status take_nothing(size_t index, const void *data, size_t bytes, void *user) {
  run *it = user;
  CHECK(index == it->taken++ && data && !bytes);
  return ADEAD_OK;
}

static void nothing(adead_context *context) {
  run it = fresh(context, 5, 2);
  OK(adead_overlap(context, 2, empty, no_work, take_nothing, &it));
  CHECK(it.taken == 5);
}

/* Each in its batch's place: the results before it come, and no others. */
static void errors(adead_context *context) {
  size_t depth;
  for (depth = 1; depth < 6; depth++) {
    uint64_t before = allocations(context);
    run it = fresh(context, 20, depth);
    it.bad_next = 9;
    it.status = ADEAD_IO;
    FAILS(adead_overlap(context, depth, next, relu, take, &it), ADEAD_IO, "next of batch 9 returned io");
    CHECK(it.taken == 9 && it.worked == 9);

    it = fresh(context, 20, depth);
    it.bad_work = 9;
    it.status = -5;
    FAILS(adead_overlap(context, depth, next, relu, take, &it), -5, "work of batch 9 returned -5");
    CHECK(it.taken == 9 && it.worked == 10);

    it = fresh(context, 20, depth);
    it.bad_work = 4;
    it.status = ADEAD_INVALID_ARGUMENT;
    FAILS(adead_overlap(context, depth, next, relu, take, &it), ADEAD_INVALID_ARGUMENT, "work of batch 4 returned invalid_argument: ");
    CHECK(strstr(adead_last_error(), "4004") && it.taken == 4);

    /* An early end: nothing more is started. */
    it = fresh(context, 20, depth);
    it.bad_take = 9;
    it.status = 1000;
    FAILS(adead_overlap(context, depth, next, relu, take, &it), 1000, "take of batch 9 returned 1000");
    CHECK(it.taken == 9 && it.worked == 9 + depth);

    /* Who takes a batch before the one that failed has the word. */
    it = fresh(context, 20, depth);
    it.bad_work = 9;
    it.bad_take = 8;
    it.status = -6;
    FAILS(adead_overlap(context, depth, next, relu, take, &it), -6, "take of batch 8 returned -6");
    CHECK(it.taken == 8 && it.worked == (depth == 1 ? 9 : 10));
    CHECK(allocations(context) == before);
  }
}

/* What only the device finds: an id outside a table. */
static adead_status ids(adead_batch *batch, void *user) {
  run *it = user;
  void *memory;
  int32_t id = it->asked == 3 ? 5 : (int32_t)(it->asked % 4);
  if (it->asked == it->count) return ADEAD_OK;
  it->asked++;
  OK(adead_batch_memory(batch, sizeof id, &memory));
  memcpy(memory, &id, sizeof id);
  return ADEAD_OK;
}

static adead_status look_up(adead_stage *stage, void *user) {
  run *it = user;
  static const size_t table[] = {4, 2}, row[] = {1, 2}, one[] = {1};
  adead_operand operands[2], out;
  adead_buffer *result = NULL;
  operands[0] = operand(it->state, table);
  operands[0].rank = 2;
  operands[1] = operand(adead_stage_input(stage), one);
  operands[1].dtype = ADEAD_DTYPE_I32;
  OK(adead_stage_buffer(stage, 2 * sizeof(float), &result));
  out = operand(result, row);
  out.rank = 2;
  it->worked++;
  OK(adead_stage_result(stage, result, 0, 2 * sizeof(float)));
  return adead_stream_run(adead_stage_stream(stage), ADEAD_OP_EMBEDDING, operands, 2, NULL, &out);
}

static adead_status take_row(size_t index, const void *data, size_t bytes, void *user) {
  run *it = user;
  float found[2];
  CHECK(index == it->taken++ && bytes == sizeof found);
  memcpy(found, data, sizeof found);
  CHECK(found[0] == (float)(index * 2) && found[1] == (float)(index * 2 + 1));
  return ADEAD_OK;
}

static void devices_error(adead_context *context) {
  static const float table[] = {0, 1, 2, 3, 4, 5, 6, 7};
  size_t depth;
  for (depth = 1; depth < 5; depth++) {
    run it = fresh(context, 10, depth);
    CHECK(!adead_buffer_create(context, table, sizeof table, &it.state));
    FAILS(adead_overlap(context, depth, ids, look_up, take_row, &it), ADEAD_INVALID_ARGUMENT, "5");
    CHECK(it.taken == 3 && it.worked < 4 + depth);
    adead_buffer_destroy(it.state);
  }
}

static void misuse(adead_context *context) {
  run it = fresh(context, 3, 2);
  adead_buffer *buffer = NULL;
  FAILS(adead_overlap(NULL, 2, next, relu, take, &it), ADEAD_INVALID_ARGUMENT, "context is NULL");
  FAILS(adead_overlap(context, 2, NULL, relu, take, &it), ADEAD_INVALID_ARGUMENT, "next is NULL");
  FAILS(adead_overlap(context, 2, next, NULL, take, &it), ADEAD_INVALID_ARGUMENT, "work is NULL");
  FAILS(adead_overlap(context, 2, next, relu, NULL, &it), ADEAD_INVALID_ARGUMENT, "take is NULL");
  FAILS(adead_overlap(context, 0, next, relu, take, &it), ADEAD_INVALID_ARGUMENT, "the depth is 0");
  FAILS(adead_overlap(context, 65, next, relu, take, &it), ADEAD_INVALID_ARGUMENT, "the depth is 65; it must be from 1 to 64");
  FAILS(adead_stage_buffer(NULL, 4, &buffer), ADEAD_INVALID_ARGUMENT, "stage is NULL");
  FAILS(adead_stage_result(NULL, buffer, 0, 4), ADEAD_INVALID_ARGUMENT, "stage is NULL");
  FAILS(adead_batch_borrow(NULL, "", 0), ADEAD_INVALID_ARGUMENT, "batch is NULL");
  FAILS(adead_batch_memory(NULL, 1, NULL), ADEAD_INVALID_ARGUMENT, "batch is NULL");
  CHECK(!adead_stage_stream(NULL) && !adead_stage_input(NULL) && !it.asked);
  /* As good as before. */
  OK(adead_overlap(context, 2, next, relu, take, &it));
  CHECK(it.taken == 3);
}

static adead_status misuses(adead_stage *stage, void *user) {
  adead_buffer *buffer = NULL;
  (void)user;
  FAILS(adead_stage_buffer(stage, 4, NULL), ADEAD_INVALID_ARGUMENT, "out is NULL");
  FAILS(adead_stage_result(stage, NULL, 0, 4), ADEAD_INVALID_ARGUMENT, "buffer is NULL");
  /* More than any device has; the next one is as good as before. */
  CHECK(adead_stage_buffer(stage, (size_t)1 << 60, &buffer) == ADEAD_OUT_OF_MEMORY && !buffer);
  OK(adead_stage_buffer(stage, 4, &buffer));
  /* A result that is not there is found when it is enqueued. */
  return adead_stage_result(stage, buffer, 4, 4);
}

static adead_status too_much(adead_batch *batch, void *user) {
  void *memory;
  (void)user;
  FAILS(adead_batch_memory(batch, SIZE_MAX / 4, &memory), ADEAD_OUT_OF_MEMORY, "no memory for a batch of");
  FAILS(adead_batch_borrow(batch, NULL, 4), ADEAD_INVALID_ARGUMENT, "data is NULL");
  return adead_batch_borrow(batch, NULL, 1);
}

static void misuse_in_callbacks(adead_context *context) {
  run it = fresh(context, 1, 2);
  adead_status status = adead_overlap(context, 2, empty, misuses, take_nothing, &it);
  CHECK(status == ADEAD_INVALID_ARGUMENT && !it.taken);
  FAILS(adead_overlap(context, 2, too_much, no_work, take_nothing, &it), ADEAD_INVALID_ARGUMENT,
        "next of batch 0 returned invalid_argument: data is NULL");
}

/* The same results asked for one by one; given up early, nothing more is started. */
static void one_by_one(adead_context *context) {
  size_t depth, index, bytes;
  const void *data;
  adead_batches *batches = NULL;
  run it = fresh(context, 3, 2);
  FAILS(adead_batches_create(NULL, 2, next, relu, &it, &batches), ADEAD_INVALID_ARGUMENT, "context is NULL");
  FAILS(adead_batches_create(context, 2, NULL, relu, &it, &batches), ADEAD_INVALID_ARGUMENT, "next is NULL");
  FAILS(adead_batches_create(context, 2, next, NULL, &it, &batches), ADEAD_INVALID_ARGUMENT, "work is NULL");
  FAILS(adead_batches_create(context, 65, next, relu, &it, &batches), ADEAD_INVALID_ARGUMENT, "the depth is 65");
  FAILS(adead_batches_create(context, 2, next, relu, &it, NULL), ADEAD_INVALID_ARGUMENT, "out is NULL");
  FAILS(adead_batches_next(NULL, &index, &data, &bytes), ADEAD_INVALID_ARGUMENT, "batches is NULL");
  CHECK(!batches && !it.asked);
  adead_batches_destroy(NULL);
  for (depth = 1; depth < 5; depth++) {
    uint64_t before = allocations(context);
    it = fresh(context, 20, depth);
    it.bad_next = 9;
    it.status = -5;
    OK(adead_batches_create(context, depth, next, relu, &it, &batches));
    while (it.taken < 9) {
      OK(adead_batches_next(batches, &index, &data, &bytes));
      CHECK(data && !take(index, data, bytes, &it));
    }
    FAILS(adead_batches_next(batches, &index, &data, &bytes), -5, "next of batch 9 returned -5");
    for (index = 1; index < 3; index++) {
      size_t none = 7;
      OK(adead_batches_next(batches, &none, &data, &bytes));
      CHECK(!data && !bytes && !none && it.worked == 9);
    }
    adead_batches_destroy(batches);
    it = fresh(context, 20, depth);
    OK(adead_batches_create(context, depth, next, relu, &it, &batches));
    OK(adead_batches_next(batches, &index, &data, &bytes));
    adead_batches_destroy(batches);
    CHECK(it.worked == depth && allocations(context) == before);
  }
}

/* The bytes of a download where they are, as libadead shows them. */
static void downloads(adead_context *context) {
  static const float values[] = {1, 2, 3, 4};
  float copy[2];
  adead_buffer *buffer = NULL;
  adead_stream *stream = NULL;
  adead_download *download = NULL;
  const void *first = NULL, *second = NULL;
  CHECK(!adead_buffer_create(context, values, sizeof values, &buffer) && !adead_stream_create(context, &stream));
  CHECK(!adead_stream_download(stream, buffer, 4, 8, &download));
  CHECK(!adead_download_data(download, &first) && !adead_download_data(download, &second) && first == second);
  CHECK(!memcmp(first, values + 1, 8));
  CHECK(adead_download_data(download, NULL) == ADEAD_INVALID_ARGUMENT && strstr(adead_last_error(), "out is NULL"));
  CHECK(adead_download_data(NULL, &first) == ADEAD_INVALID_ARGUMENT && strstr(adead_last_error(), "download is NULL"));
  CHECK(!adead_download_read(download, copy, sizeof copy) && copy[0] == 2 && copy[1] == 3);
  CHECK(adead_download_data(download, &first) == ADEAD_INVALID_ARGUMENT && strstr(adead_last_error(), "was read before"));
  CHECK(first == second);
  adead_download_destroy(download);
  CHECK(!adead_stream_download(stream, buffer, 16, 0, &download) && !adead_download_data(download, &first) && first);
  adead_download_destroy(download);
  adead_stream_destroy(stream);
  adead_buffer_destroy(buffer);
}

int main(void) {
  const char *device = getenv("ADEAD_TEST_DEVICE");
  adead_context *context = NULL;
  adead_status status = adead_context_open(device ? device : "cpu", NULL, &context);
  if (status == ADEAD_BACKEND_UNAVAILABLE) {
    printf("skipped: %s\n", adead_last_error());
    return 77;
  }
  CHECK(!status);
  downloads(context);
  order(context);
  states(context);
  nothing(context);
  errors(context);
  devices_error(context);
  misuse(context);
  misuse_in_callbacks(context);
  one_by_one(context);
  adead_context_destroy(context);
  puts("ok");
  return 0;
}
