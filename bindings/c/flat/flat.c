/* The functions of adead/flat.h. Each checks what it is given, under the lock, before it changes anything. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

/* A public function: the body under the lock. */
#define LOCKED(call)             \
  do {                           \
    adead_status status;         \
    flat_lock();                 \
    status = (call);             \
    flat_unlock();               \
    return status;               \
  } while (0)

enum { MOST_OPERANDS = 16 };

/* The bytes of a matrix. */
static adead_status bytes_of(int64_t rows, int64_t cols, size_t *out) {
  if (rows < 0 || cols < 0)
    return flat_fail(ADEAD_INVALID_ARGUMENT, "[%lld, %lld]: a matrix has no negative size", (long long)rows, (long long)cols);
  if (cols && (uint64_t)rows > INT64_MAX / sizeof(float) / (uint64_t)cols)
    return flat_fail(ADEAD_OUT_OF_MEMORY, "[%lld, %lld] is more than any process can address", (long long)rows, (long long)cols);
  *out = (size_t)rows * (size_t)cols * sizeof(float);
  return ADEAD_OK;
}

static adead_status fits(const flat_entry *matrix, int64_t count) {
  if (count == matrix->rows * matrix->cols) return ADEAD_OK;
  return flat_fail(ADEAD_SHAPE_MISMATCH, "the matrix is [%lld, %lld] and takes %lld values, not %lld", (long long)matrix->rows,
                   (long long)matrix->cols, (long long)(matrix->rows * matrix->cols), (long long)count);
}

/* A new matrix with a copy of values, or of zeros where there are none. */
static adead_status made(const float *values, int64_t rows, int64_t cols, flat_place place, adead_flat_handle *out) {
  flat_entry entry = {0};
  flat_device *device;
  size_t bytes;
  NEED(out);
  TRY(bytes_of(rows, cols, &bytes));
  TRY(flat_open(place, &device));
  TRY(flat_reserve());
  entry.kind = FLAT_MATRIX;
  entry.place = device->place;
  entry.rows = rows;
  entry.cols = cols;
  TRY_ADEAD(adead_buffer_create(device->context, values, bytes, &entry.buffer));
  *out = flat_add(&entry);
  return ADEAD_OK;
}

/* The stream that a number names, 0 the device's own, which must be at a place. */
static adead_status stream_at(adead_flat_handle handle, flat_place place, adead_stream **out) {
  flat_device *device;
  flat_entry *entry;
  if (!handle) {
    TRY(flat_open(place, &device));
    *out = device->stream;
    return ADEAD_OK;
  }
  TRY(flat_find(handle, FLAT_STREAM, &entry));
  if (entry->place.use_gpu != place.use_gpu || entry->place.device != place.device)
    return flat_fail(ADEAD_INVALID_ARGUMENT, "the stream is of another device than the matrix");
  *out = entry->stream;
  return ADEAD_OK;
}

/* Before a matrix is used in a stream: what another stream has of it is done. */
static adead_status handed_over(flat_entry *matrix, adead_flat_handle stream) {
  flat_entry *other;
  adead_stream *before = NULL;
  flat_device *device;
  if (matrix->used_in == stream) return ADEAD_OK;
  if (!matrix->used_in) {
    TRY(flat_open(matrix->place, &device));
    before = device->stream;
  } else if (!flat_find(matrix->used_in, FLAT_STREAM, &other)) {
    before = other->stream;
  }
  if (before) TRY_ADEAD(adead_stream_sync(before));
  matrix->used_in = stream;
  return ADEAD_OK;
}

/* Before the host reads or writes a matrix. */
static adead_status finished(flat_entry *matrix) {
  flat_entry *stream;
  flat_device *device;
  if (matrix->used_in) {
    if (flat_find(matrix->used_in, FLAT_STREAM, &stream)) return ADEAD_OK;
    return flat_check(adead_stream_sync(stream->stream));
  }
  TRY(flat_open(matrix->place, &device));
  return flat_check(adead_stream_sync(device->stream));
}

static adead_operand operand(const flat_entry *matrix, size_t dims[2]) {
  adead_operand it = {0};
  dims[0] = (size_t)matrix->rows;
  dims[1] = (size_t)matrix->cols;
  it.buffer = matrix->buffer;
  it.dims = dims;
  it.rank = 2;
  it.dtype = ADEAD_DTYPE_F32;
  return it;
}

/* Attributes from "name=value;name=value". */
static adead_status attributes_of(adead_op op, const char *text, adead_attrs *attrs) {
  char name[64], value[256];
  while (text && *text) {
    size_t length = strcspn(text, ";"), split = strcspn(text, "=");
    if (split >= length || split >= sizeof name || length - split - 1 >= sizeof value)
      return flat_fail(ADEAD_INVALID_ARGUMENT, "'%.*s' is not name=value", (int)(length < 200 ? length : 200), text);
    memcpy(name, text, split);
    name[split] = 0;
    memcpy(value, text + split + 1, length - split - 1);
    value[length - split - 1] = 0;
    TRY_ADEAD(adead_attrs_set(attrs, op, name, value));
    text += length + (text[length] == ';');
  }
  return ADEAD_OK;
}

static adead_status enqueue(const char *name, const adead_flat_handle *operands, int32_t count, const char *attributes,
                            adead_flat_handle stream, adead_flat_handle result) {
  adead_operand views[MOST_OPERANDS] = {{0}}, target;
  size_t dims[MOST_OPERANDS + 1][2];
  flat_entry *matrices[MOST_OPERANDS] = {0}, *written;
  adead_stream *on;
  adead_attrs *attrs = NULL;
  adead_status status;
  adead_op op;
  int32_t i;
  NEED(name);
  if (count < 0 || count > MOST_OPERANDS)
    return flat_fail(ADEAD_INVALID_ARGUMENT, "%d operands: an operation has 0 to %d", (int)count, MOST_OPERANDS);
  if (count) NEED(operands);
  TRY_ADEAD(adead_op_from_name(name, &op));
  TRY(flat_find(result, FLAT_MATRIX, &written));
  TRY(stream_at(stream, written->place, &on));
  for (i = 0; i < count; i++) {
    if (!operands[i]) continue;
    TRY(flat_find(operands[i], FLAT_MATRIX, &matrices[i]));
    if (matrices[i] == written)
      return flat_fail(ADEAD_INVALID_ARGUMENT, "%s: the result is operand %d too", name, (int)i);
    if (matrices[i]->place.use_gpu != written->place.use_gpu || matrices[i]->place.device != written->place.device)
      return flat_fail(ADEAD_INVALID_ARGUMENT, "%s: operand %d is on another device than the result; adead_flat_to copies",
                       name, (int)i);
    views[i] = operand(matrices[i], dims[i]);
  }
  target = operand(written, dims[MOST_OPERANDS]);
  TRY_ADEAD(adead_attrs_create(&attrs));
  status = attributes_of(op, attributes, attrs);
  for (i = 0; !status && i < count; i++)
    if (matrices[i]) status = handed_over(matrices[i], stream);
  if (!status) status = handed_over(written, stream);
  if (!status) status = flat_check(adead_stream_run(on, op, views, (size_t)count, attrs, &target));
  adead_attrs_destroy(attrs);
  return status;
}

static adead_status multiplied(adead_flat_handle a, adead_flat_handle b, adead_flat_handle stream, adead_flat_handle *out) {
  adead_flat_handle both[2], result;
  flat_entry *left, *right, *made_here;
  adead_stream *on;
  adead_status status;
  NEED(out);
  TRY(flat_find(a, FLAT_MATRIX, &left));
  TRY(flat_find(b, FLAT_MATRIX, &right));
  TRY(stream_at(stream, left->place, &on));
  if (left->cols != right->rows)
    return flat_fail(ADEAD_SHAPE_MISMATCH, "matmul: A is [%lld, %lld] and B is [%lld, %lld]; A's columns must equal B's rows",
                     (long long)left->rows, (long long)left->cols, (long long)right->rows, (long long)right->cols);
  both[0] = a;
  both[1] = b;
  TRY(made(NULL, left->rows, right->cols, left->place, &result));
  status = enqueue("matmul", both, 2, NULL, stream, result);
  if (status) {
    if (!flat_find(result, FLAT_MATRIX, &made_here)) flat_remove(made_here);
    return status;
  }
  *out = result;
  return ADEAD_OK;
}

static adead_status uploaded(adead_flat_handle stream, const adead_flat_handle *matrices, const float *const *values,
                             const int64_t *counts, int32_t batch) {
  flat_entry *own, *matrix;
  int32_t i;
  TRY(flat_find(stream, FLAT_STREAM, &own));
  if (batch < 0) return flat_fail(ADEAD_INVALID_ARGUMENT, "a batch of %d matrices", (int)batch);
  if (!batch) return ADEAD_OK;
  NEED(matrices);
  NEED(values);
  NEED(counts);
  for (i = 0; i < batch; i++) {
    TRY(flat_find(matrices[i], FLAT_MATRIX, &matrix));
    TRY(fits(matrix, counts[i]));
    if (counts[i] && !values[i]) return flat_fail(ADEAD_INVALID_ARGUMENT, "values[%d] is NULL", (int)i);
    if (matrix->place.use_gpu != own->place.use_gpu || matrix->place.device != own->place.device)
      return flat_fail(ADEAD_INVALID_ARGUMENT, "matrix %d of the batch is on another device than the stream", (int)i);
  }
  for (i = 0; i < batch; i++) {
    TRY(flat_find(matrices[i], FLAT_MATRIX, &matrix));
    TRY(handed_over(matrix, stream));
    if (counts[i])
      TRY_ADEAD(adead_stream_upload(own->stream, matrix->buffer, 0, values[i], (size_t)counts[i] * sizeof(float)));
  }
  return ADEAD_OK;
}

static adead_status filled(int64_t rows, int64_t cols, flat_place place, adead_flat_handle *out) {
  adead_status status;
  float *ones;
  size_t bytes, i;
  NEED(out);
  TRY(bytes_of(rows, cols, &bytes));
  ones = malloc(bytes ? bytes : 1);
  if (!ones) return flat_fail(ADEAD_OUT_OF_MEMORY, "no %zu bytes of host memory", bytes);
  for (i = 0; i < bytes / sizeof *ones; i++) ones[i] = 1;
  status = made(bytes ? ones : NULL, rows, cols, place, out);
  free(ones);
  return status;
}

static adead_status written_by_host(adead_flat_handle handle, const float *values, int64_t count) {
  flat_entry *matrix;
  TRY(flat_find(handle, FLAT_MATRIX, &matrix));
  TRY(fits(matrix, count));
  if (!count) return ADEAD_OK;
  NEED(values);
  TRY(finished(matrix));
  return flat_check(adead_buffer_write(matrix->buffer, 0, values, (size_t)count * sizeof *values));
}

static adead_status read_by_host(adead_flat_handle handle, float *values, int64_t count) {
  flat_entry *matrix;
  TRY(flat_find(handle, FLAT_MATRIX, &matrix));
  TRY(fits(matrix, count));
  if (!count) return ADEAD_OK;
  NEED(values);
  TRY(finished(matrix));
  return flat_check(adead_buffer_read(matrix->buffer, 0, values, (size_t)count * sizeof *values));
}

static adead_status copied(adead_flat_handle handle, flat_place place, adead_flat_handle *out) {
  adead_status status;
  flat_entry *matrix;
  float *values;
  int64_t rows, cols, count;
  NEED(out);
  TRY(flat_find(handle, FLAT_MATRIX, &matrix));
  rows = matrix->rows;
  cols = matrix->cols;
  count = rows * cols;
  values = malloc(count ? (size_t)count * sizeof *values : 1);
  if (!values) return flat_fail(ADEAD_OUT_OF_MEMORY, "no host memory for %lld values", (long long)count);
  status = read_by_host(handle, values, count);
  if (!status) status = made(count ? values : NULL, rows, cols, place, out);
  free(values);
  return status;
}

static adead_status stream_made(flat_place place, adead_flat_handle *out) {
  flat_entry entry = {0};
  flat_device *device;
  NEED(out);
  TRY(flat_open(place, &device));
  TRY(flat_reserve());
  entry.kind = FLAT_STREAM;
  entry.place = device->place;
  TRY_ADEAD(adead_stream_create(device->context, &entry.stream));
  *out = flat_add(&entry);
  return ADEAD_OK;
}

static adead_status synchronised(adead_flat_handle handle) {
  flat_entry *stream;
  TRY(flat_find(handle, FLAT_STREAM, &stream));
  return flat_check(adead_stream_sync(stream->stream));
}

static adead_status queried(adead_flat_handle handle, int32_t *out) {
  flat_entry *stream;
  NEED(out);
  TRY(flat_find(handle, FLAT_STREAM, &stream));
  return flat_check(adead_stream_query(stream->stream, out));
}

static adead_status removed(adead_flat_handle handle, flat_kind kind) {
  flat_entry *entry;
  TRY(flat_find(handle, kind, &entry));
  if (kind == FLAT_STREAM) TRY_ADEAD(adead_stream_sync(entry->stream));
  flat_remove(entry);
  return ADEAD_OK;
}

static adead_status described(adead_flat_handle handle, int64_t *rows, int64_t *cols, int32_t *use_gpu, int32_t *device) {
  flat_entry *matrix;
  TRY(flat_find(handle, FLAT_MATRIX, &matrix));
  if (rows) *rows = matrix->rows;
  if (cols) *cols = matrix->cols;
  if (use_gpu) *use_gpu = matrix->place.use_gpu;
  if (device) *device = matrix->place.device;
  return ADEAD_OK;
}

static adead_status named(flat_place place, const char **out) {
  static const char *const backends[] = {"cpu", "cuda", "vulkan"};
  char id[32];
  size_t i;
  NEED(out);
  TRY(flat_id(place, id));
  for (i = 0; i < sizeof backends / sizeof *backends; i++) {
    if (strncmp(id, backends[i], strlen(backends[i]))) continue;
    *out = backends[i];
    return ADEAD_OK;
  }
  return flat_fail(ADEAD_INTERNAL, "the device '%s' is of no backend that this library knows", id);
}

static adead_status counted(int32_t *out, bool only_whether) {
  int32_t gpus;
  NEED(out);
  TRY(flat_gpus(&gpus));
  *out = only_whether ? gpus > 0 : gpus;
  return ADEAD_OK;
}

static flat_place at(int32_t use_gpu, int32_t device) {
  flat_place place;
  place.use_gpu = use_gpu != 0;
  place.device = device;
  return place;
}

adead_status adead_flat_gpu_available(int32_t *out) { LOCKED(counted(out, true)); }

adead_status adead_flat_device_count(int32_t *out) { LOCKED(counted(out, false)); }

adead_status adead_flat_backend_name(int32_t use_gpu, int32_t device, const char **out) {
  LOCKED(named(at(use_gpu, device), out));
}

adead_status adead_flat_alloc_zeros(int64_t rows, int64_t cols, int32_t use_gpu, int32_t device, adead_flat_handle *out) {
  LOCKED(made(NULL, rows, cols, at(use_gpu, device), out));
}

adead_status adead_flat_alloc_ones(int64_t rows, int64_t cols, int32_t use_gpu, int32_t device, adead_flat_handle *out) {
  LOCKED(filled(rows, cols, at(use_gpu, device), out));
}

adead_status adead_flat_alloc_upload(const float *values, int64_t rows, int64_t cols, int32_t use_gpu, int32_t device,
                                     adead_flat_handle *out) {
  if (!values && rows > 0 && cols > 0) return flat_fail(ADEAD_INVALID_ARGUMENT, "values is NULL");
  LOCKED(made(values, rows, cols, at(use_gpu, device), out));
}

adead_status adead_flat_free(adead_flat_handle matrix) { LOCKED(removed(matrix, FLAT_MATRIX)); }

adead_status adead_flat_shape(adead_flat_handle matrix, int64_t *rows, int64_t *cols) {
  LOCKED(described(matrix, rows, cols, NULL, NULL));
}

adead_status adead_flat_device(adead_flat_handle matrix, int32_t *use_gpu, int32_t *device) {
  LOCKED(described(matrix, NULL, NULL, use_gpu, device));
}

adead_status adead_flat_upload(adead_flat_handle matrix, const float *values, int64_t count) {
  LOCKED(written_by_host(matrix, values, count));
}

adead_status adead_flat_download(adead_flat_handle matrix, float *values, int64_t count) {
  LOCKED(read_by_host(matrix, values, count));
}

adead_status adead_flat_to(adead_flat_handle matrix, int32_t use_gpu, int32_t device, adead_flat_handle *out) {
  LOCKED(copied(matrix, at(use_gpu, device), out));
}

adead_status adead_flat_matmul(adead_flat_handle a, adead_flat_handle b, adead_flat_handle stream, adead_flat_handle *out) {
  LOCKED(multiplied(a, b, stream, out));
}

adead_status adead_flat_run(const char *op, const adead_flat_handle *operands, int32_t count, const char *attributes,
                            adead_flat_handle stream, adead_flat_handle result) {
  LOCKED(enqueue(op, operands, count, attributes, stream, result));
}

adead_status adead_flat_stream_create(int32_t use_gpu, int32_t device, adead_flat_handle *out) {
  LOCKED(stream_made(at(use_gpu, device), out));
}

adead_status adead_flat_stream_sync(adead_flat_handle stream) { LOCKED(synchronised(stream)); }

adead_status adead_flat_stream_query(adead_flat_handle stream, int32_t *out) { LOCKED(queried(stream, out)); }

adead_status adead_flat_stream_destroy(adead_flat_handle stream) { LOCKED(removed(stream, FLAT_STREAM)); }

adead_status adead_flat_async_upload_batch(adead_flat_handle stream, const adead_flat_handle *matrices,
                                           const float *const *values, const int64_t *counts, int32_t batch) {
  LOCKED(uploaded(stream, matrices, values, counts, batch));
}

static adead_status live(int64_t *out) {
  NEED(out);
  *out = flat_live();
  return ADEAD_OK;
}

adead_status adead_flat_count(int64_t *out) { LOCKED(live(out)); }

static adead_status emptied(void) {
  flat_remove_all();
  flat_close_devices();
  return ADEAD_OK;
}

adead_status adead_flat_reset(void) { LOCKED(emptied()); }
