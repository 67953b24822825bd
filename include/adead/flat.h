/*
 * adead in plain integers, for interpreters and foreign function interfaces: matrices of f32 and streams are numbers, every
 * function returns a status, and whatever is wrong with a call (a number that was freed, one of another kind, a NULL, a
 * count that does not fit) is a status too, never undefined behaviour. A call that fails changes nothing.
 *
 * It is a library of its own, libadead_flat, over libadead's functions alone. Calls may come from several threads; they
 * wait for each other. Results have the same bits on every device. docs/c-api.md has an example.
 */
#ifndef ADEAD_FLAT_H
#define ADEAD_FLAT_H

#include <adead.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A matrix or a stream. Never 0 and never negative; a number that was freed is not given out again for 2^24 allocations. */
typedef int64_t adead_flat_handle;

/* What was wrong with the last call that failed on this thread, "" before any did. Valid until the next failure on it.
 * (`adead_last_error` is about the calls of libadead.) */
ADEAD_API const char *adead_flat_last_error(void);

/* Whether there is a GPU: 0 or 1. It is not opened. */
ADEAD_API adead_status adead_flat_gpu_available(int32_t *out);

/* How many GPUs there are. They are numbered from 0, the preferred one first. */
ADEAD_API adead_status adead_flat_device_count(int32_t *out);

/* What a device is reached through: "cpu" where `use_gpu` is 0, else "cuda" or "vulkan". The text stays. */
ADEAD_API adead_status adead_flat_backend_name(int32_t use_gpu, int32_t device, const char **out);

/* A matrix of zeros, in the memory of GPU `device`, or of the CPU where `use_gpu` is 0 (`device` is then 0).
 * `out_of_memory` with the bytes asked and free, `backend_unavailable` where there is no such GPU. */
ADEAD_API adead_status adead_flat_alloc_zeros(int64_t rows, int64_t cols, int32_t use_gpu, int32_t device,
                                              adead_flat_handle *out);

/* The same of ones. */
ADEAD_API adead_status adead_flat_alloc_ones(int64_t rows, int64_t cols, int32_t use_gpu, int32_t device,
                                             adead_flat_handle *out);

/* The same with a copy of rows * cols values. */
ADEAD_API adead_status adead_flat_alloc_upload(const float *values, int64_t rows, int64_t cols, int32_t use_gpu,
                                               int32_t device, adead_flat_handle *out);

/* Frees a matrix. Work that was given to a stream before still has it. */
ADEAD_API adead_status adead_flat_free(adead_flat_handle matrix);

/* The rows and columns of a matrix. Either pointer may be NULL. */
ADEAD_API adead_status adead_flat_shape(adead_flat_handle matrix, int64_t *rows, int64_t *cols);

/* Where a matrix is. Either pointer may be NULL. */
ADEAD_API adead_status adead_flat_device(adead_flat_handle matrix, int32_t *use_gpu, int32_t *device);

/* Copies `count` values to a matrix, behind everything that it is used in. `shape_mismatch` unless `count` is rows * cols. */
ADEAD_API adead_status adead_flat_upload(adead_flat_handle matrix, const float *values, int64_t count);

/* Waits for what computes a matrix and copies its `count` values to `values`. `shape_mismatch` as for uploads. */
ADEAD_API adead_status adead_flat_download(adead_flat_handle matrix, float *values, int64_t count);

/* A copy of a matrix on another device, or on the same one. */
ADEAD_API adead_status adead_flat_to(adead_flat_handle matrix, int32_t use_gpu, int32_t device, adead_flat_handle *out);

/* a times b: [m, k] and [k, n] give [m, n]. On the device where both are, on `stream`, or on the device's own where it is 0.
 * It returns when the work is enqueued. */
ADEAD_API adead_status adead_flat_matmul(adead_flat_handle a, adead_flat_handle b, adead_flat_handle stream,
                                         adead_flat_handle *out);

/* Any operation of docs/operations.md by its name, into a matrix that is there: `count` operands in its order, 0 for an
 * optional one that is absent, and attributes as "name=value;name=value" or NULL. All are matrices of one device; `result` has
 * the shape that follows and is none of the operands. `stream` as for a product. */
ADEAD_API adead_status adead_flat_run(const char *op, const adead_flat_handle *operands, int32_t count,
                                      const char *attributes, adead_flat_handle stream, adead_flat_handle result);

/* A stream: work given to it is done in order, beside that of other streams. A matrix that is used in another stream than
 * before waits for what the former has. */
ADEAD_API adead_status adead_flat_stream_create(int32_t use_gpu, int32_t device, adead_flat_handle *out);

/* Waits for all that a stream was given. The first error that the device found in it. */
ADEAD_API adead_status adead_flat_stream_sync(adead_flat_handle stream);

/* Whether a stream has done all that it was given: 0 or 1. */
ADEAD_API adead_status adead_flat_stream_query(adead_flat_handle stream, int32_t *out);

/* Waits for a stream and frees it. */
ADEAD_API adead_status adead_flat_stream_destroy(adead_flat_handle stream);

/* Enqueues copies of `counts[i]` values at `values[i]` to `matrices[i]`, `batch` of them; the values are the caller's again
 * when it returns. Everything is checked before anything is enqueued. */
ADEAD_API adead_status adead_flat_async_upload_batch(adead_flat_handle stream, const adead_flat_handle *matrices,
                                                     const float *const *values, const int64_t *counts, int32_t batch);

/* How many matrices and streams there are. */
ADEAD_API adead_status adead_flat_count(int64_t *out);

/* Waits for all work, frees every matrix and stream and closes every device. Numbers from before are invalid. */
ADEAD_API adead_status adead_flat_reset(void);

#ifdef __cplusplus
}
#endif

#endif
