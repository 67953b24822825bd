/*
 * adead_overlap: batches through a device with copies beside the work, and batches made ahead in a thread, over the functions
 * of adead.h. MIT license.
 *
 * A library of its own beside libadead: -ladead_overlap -ladead. The rules for every function are those of adead.h;
 * adead_overlap_last_error has the texts. docs/overlap.md is the guide.
 */

#ifndef ADEAD_OVERLAP_H
#define ADEAD_OVERLAP_H

#include <adead.h>

#ifdef __cplusplus
extern "C" {
#endif

/// The version of this interface that the header describes.
#define ADEAD_OVERLAP_ABI_VERSION 1

/// The most batches under way at once.
#define ADEAD_OVERLAP_MAX_DEPTH 64

/// What an `adead_next` fills in. It is there for the call only.
typedef struct adead_batch adead_batch;

/// What the work of `adead_overlap` is given for a batch: a stream, the batch on the device, and buffers. It is there for the
/// call only, and what is asked of it belongs to it.
typedef struct adead_stage adead_stage;

/// Batches made ahead in a thread. One thread at a time takes them.
typedef struct adead_loader adead_loader;

/// Gives the next batch, by `adead_batch_memory` or `adead_batch_borrow`; without either there is none any more. Everything
/// but `ADEAD_OK` ends whatever asked and is returned there, also a number of the caller's own.
typedef adead_status (*adead_next)(adead_batch *batch, void *user);

/// Enqueues the work of a batch on its stream and names its result. Everything but `ADEAD_OK` ends it.
typedef adead_status (*adead_work)(adead_stage *stage, void *user);

/// Takes the result of batch `index`; the first one is 0. The bytes are where the download put them, aligned for every
/// element type, for the call only, and never NULL. Everything but `ADEAD_OK` ends it.
typedef adead_status (*adead_take)(size_t index, const void *data, size_t bytes, void *user);

/// The text of the last call of this library on this thread that failed. "" if none did. Valid until the next call on this
/// thread fails. Of a callback that failed it says which one, for which batch, and what was the last failure that it can know
/// of.
ADEAD_API const char *adead_overlap_last_error(void);

/// The version of this interface. A program that was built with `ADEAD_OVERLAP_ABI_VERSION` n runs with every library that
/// answers n.
ADEAD_API uint32_t adead_overlap_abi_version(void);

/// Memory for a batch of so many bytes, to be filled before `next` returns. It is used again for later batches and has what
/// they left. `out_of_memory` with the bytes.
ADEAD_API adead_status adead_batch_memory(adead_batch *batch, size_t bytes, void **out);

/// A batch of bytes that the caller has. They must stay until `next` is asked again or `adead_overlap` returns; those given
/// to a loader until it is given up.
ADEAD_API adead_status adead_batch_borrow(adead_batch *batch, const void *data, size_t bytes);

/// Takes batches through a device, at most `depth` at once, each on a stream of its own: it is uploaded, `work` enqueues work
/// on it, and what it names as its result is brought to the host and given to `take`. 1 is sequential, 2 double buffering, 3
/// triple buffering. `user` is passed to all three.
///
/// The results are those of a loop that does one batch after the other, whatever the depth: work of a batch begins when the
/// work of the batch before is done, so `work` may read and write buffers that all batches share. Uploads and downloads run
/// beside it. Everything is called in the caller's thread, results in the order of the batches, `next` only when fewer than
/// `depth` are under way.
///
/// What `next`, `work` or the device finds wrong with a batch is returned when the batches before it were given to `take`;
/// what `take` returns, at once. Then nothing more is started, what is under way is waited for, and everything is freed.
/// `invalid_argument` unless the depth is from 1 to `ADEAD_OVERLAP_MAX_DEPTH`.
ADEAD_API
adead_status adead_overlap(const adead_context *context, size_t depth, adead_next next, adead_work work, adead_take take,
                           void *user);

/// Of which batch: the first one is 0.
ADEAD_API size_t adead_stage_index(const adead_stage *stage);

/// The stream of the batch. Work on it finds the batch there.
ADEAD_API adead_stream *adead_stage_stream(const adead_stage *stage);

/// The batch on the device: a buffer of exactly its bytes.
ADEAD_API adead_buffer *adead_stage_input(const adead_stage *stage);

/// A buffer of so many bytes for results and intermediate values. The n-th call for a batch gives what the n-th call gave for
/// an earlier one, with what it had, if that had the same size; else a new one, zeroed. `out_of_memory` with the bytes asked
/// and free.
ADEAD_API adead_status adead_stage_buffer(adead_stage *stage, size_t bytes, adead_buffer **out);

/// What comes to the host when the work is done: bytes of a buffer from an offset on. The last call counts; without one, a
/// result of no bytes says that the batch is done.
ADEAD_API adead_status adead_stage_result(adead_stage *stage, const adead_buffer *buffer, size_t offset, size_t bytes);

/// Starts a thread that asks `next` for batches, at most `ahead` before who takes them, counting the one that is being made.
/// `invalid_argument` unless `ahead` is at least 1, `io` where the system has no thread to give.
ADEAD_API adead_status adead_loader_create(adead_next next, void *user, size_t ahead, adead_loader **out);

/// Waits for the next batch: its bytes, until the next call for this loader, and NULL when there is none any more. What
/// `next` returned in place of a batch is returned once, behind the batches before it; then there is none any more.
ADEAD_API adead_status adead_loader_next(adead_loader *loader, const void **data, size_t *bytes);

/// Stops the thread, waits for a batch that is just being made, and gives the loader up; NULL is fine. Not from its own
/// `next`.
ADEAD_API void adead_loader_destroy(adead_loader *loader);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif
