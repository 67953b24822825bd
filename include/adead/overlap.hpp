// Batches through a device, several under way at once: docs/overlap.md.
#ifndef ADEAD_OVERLAP_HPP
#define ADEAD_OVERLAP_HPP

#include <adead/context.hpp>

#include <deque>
#include <exception>

namespace adead {
inline namespace ADEAD_HPP_MODE {

namespace detail {
class Lane;
}

/// What the work of overlap() is given for a batch: a stream, the batch on the device, and buffers.
class Stage {
 public:
  /// Of which batch: the first one is 0.
  std::size_t index() const noexcept { return index_; }
  /// The stream of the batch. Work on it finds the batch there.
  Stream &stream() noexcept { return stream_; }
  /// The batch on the device: a buffer of exactly its bytes.
  const Buffer &input() const noexcept { return input_; }

  /// A buffer of so many bytes for results and intermediate values, there until the work of its batch has returned. The n-th
  /// call for a batch gives what the n-th call gave for an earlier one, with what it had, if that had the same size; else a
  /// new one, zeroed. Never null where it succeeds.
  Returned<const Buffer *> buffer(std::size_t bytes) {
    if (used_ == buffers_.size()) buffers_.emplace_back();
    Sized &slot = buffers_[used_];
    const Buffer *out = &slot.buffer;
    adead_status status = slot.fit(context_, bytes);
    used_ += !status;
    return detail::done(status, out);
  }

  /// What comes to the host when the work is done: bytes of a buffer from an offset on. The last call counts; without one, a
  /// result of no bytes says that the batch is done.
  void result(const Buffer &from, std::size_t offset, std::size_t bytes) noexcept {
    from_ = from.get();
    offset_ = offset;
    bytes_ = bytes;
  }

 private:
  friend class detail::Lane;
  /// A buffer with its size.
  struct Sized {
    Buffer buffer;
    std::size_t bytes = 0;

    /// Makes it one of so many bytes. What does not fit goes first, so that both need not be there at once.
    adead_status fit(const adead_context *context, std::size_t size) {
      if (buffer && bytes == size) return ADEAD_OK;
      buffer = Buffer();
      adead_buffer *raw = nullptr;
      adead_status status = adead_buffer_create(context, nullptr, size, &raw);
      buffer = Buffer(raw);
      bytes = size;
      return status;
    }
  };

  Stage(const adead_context *context, Stream &stream, const Buffer &input, std::deque<Sized> &buffers, std::size_t index)
      : context_(context), stream_(stream), input_(input), buffers_(buffers), index_(index) {}

  const adead_context *context_;
  Stream &stream_;
  const Buffer &input_;
  std::deque<Sized> &buffers_;
  std::size_t used_ = 0, index_, offset_ = 0, bytes_ = 0;
  adead_buffer *from_ = nullptr;
};

namespace detail {

/// Calls a function of the caller's. Without exceptions a Result that failed is what it found wrong.
template <class F, class... Args>
Returned<void> call(F &function, Args &&...args) {
#ifdef ADEAD_NO_EXCEPTIONS
  if constexpr (is_result<std::invoke_result_t<F &, Args...>>) {
    auto outcome = function(std::forward<Args>(args)...);
    if (!outcome) return *outcome.error();
  } else {
    function(std::forward<Args>(args)...);
  }
  return Returned<void>();
#else
  function(std::forward<Args>(args)...);
#endif
}

/// A stream and the buffers of the one batch that is under way on it.
class Lane {
 public:
  /// Makes its stream.
  adead_status open(const adead_context *context) {
    adead_stream *raw = nullptr;
    adead_status status = adead_stream_create(context, &raw);
    stream_ = Stream(raw);
    return status;
  }

  /// Enqueues a batch: upload, what `work` enqueues behind the work of the batch before, download. `before` is the point
  /// after that work and becomes this one's.
  template <class Work>
  Returned<void> start(const adead_context *context, std::size_t index, const void *data, std::size_t bytes, Event &before,
                       Work &work) {
    adead_status status = input_.fit(context, bytes);
    if (!status && bytes) status = adead_stream_upload(stream_.get(), input_.buffer.get(), 0, data, bytes);
    if (!status && before) status = adead_stream_wait_event(stream_.get(), before.get());
    if (status) return done(status);
    Stage stage(context, stream_, input_.buffer, buffers_, index);
#ifdef ADEAD_NO_EXCEPTIONS
    if (auto outcome = call(work, stage); !outcome) return outcome;
#else
    call(work, stage);
#endif
    // A buffer that others have too may be written by the work of the next batch: that waits for the download.
    bool own = stage.from_ == input_.buffer.get();
    for (const auto &slot : buffers_) own = own || stage.from_ == slot.buffer.get();
    if (own || !stage.from_) status = mark(before);
    adead_download *download = nullptr;
    if (!status && stage.from_) status = adead_stream_download(stream_.get(), stage.from_, stage.offset_, stage.bytes_, &download);
    download_ = Download(download);
    bytes_ = stage.bytes_;
    if (!status && stage.from_ && !own) status = mark(before);
    if (!status) status = adead_stream_flush(stream_.get());
    return done(status);
  }

  /// Waits for the batch that is under way and has its result taken, where the download put it.
  template <class Take>
  Returned<void> finish(std::size_t index, Take &take) {
    // What only the device can find is told here.
    adead_status status = adead_stream_sync(stream_.get());
    const void *data = nullptr;
    if (!status && download_) status = adead_download_data(download_.get(), &data);
    if (status) return done(status);
    const Download arrived = std::move(download_);
    const Span<const std::byte> bytes(static_cast<const std::byte *>(data), bytes_);
    if constexpr (std::is_invocable_v<Take &, std::size_t, Span<const std::byte>>) {
      return call(take, index, bytes);
    } else {
      copy_.assign(bytes.begin(), bytes.end());
      return call(take, index, static_cast<const std::vector<std::byte> &>(copy_));
    }
  }

 private:
  adead_status mark(Event &event) {
    adead_event *raw = nullptr;
    adead_status status = adead_stream_event(stream_.get(), &raw);
    event = Event(raw);
    return status;
  }

  Stream stream_;
  Stage::Sized input_;
  std::deque<Stage::Sized> buffers_;
  Download download_;
  std::size_t bytes_ = 0;
  std::vector<std::byte> copy_;
};

}  // namespace detail

/// The most batches under way at once.
inline constexpr std::size_t max_depth = 64;

/// Takes batches through a device, at most `depth` at once, each on a stream of its own: it is uploaded, `work(stage)`
/// enqueues work on it, and what the stage names as its result is brought to the host and given to `take(index, bytes)`. 1 is
/// sequential, 2 double buffering, 3 triple buffering.
///
/// The bytes are a `Span<const std::byte>` of where the download put them, for the call only; a `take` that wants a
/// `const std::vector<std::byte> &` gets a copy.
///
/// The results are those of a loop that does one batch after the other, whatever the depth: work of a batch begins when the
/// work of the batch before is done, so `work` may read and write buffers that all batches share. Uploads and downloads run
/// beside it. Everything is called in the caller's thread, results in the order of the batches, `batches` only when fewer
/// than `depth` are under way. A batch is any range of plain values that lie next to each other: a vector, an array, a span.
///
/// What `batches`, `work` or the device finds wrong with a batch comes when the batches before it were given to `take`; what
/// `take` finds, at once: an exception, or without exceptions a Result that failed. Then nothing more is started, and what is
/// under way is waited for. invalid_argument unless the depth is from 1 to 64.
template <class Batches, class Work, class Take>
Returned<void> overlap(const Context &context, Batches &&batches, std::size_t depth, Work &&work, Take &&take) {
  if (depth < 1 || depth > max_depth) {
    const std::string text = "overlap: the depth is " + std::to_string(depth) + "; it must be from 1 to 64";
    return detail::failed<void>(ADEAD_INVALID_ARGUMENT, text.c_str());
  }
  std::deque<detail::Lane> lanes(depth);
  for (auto &lane : lanes) {
    if (adead_status status = lane.open(context.get())) return detail::failed<void>(status);
  }
  using std::begin;
  using std::end;
  auto next = begin(batches);
  auto last = end(batches);
  Event before;
  std::size_t started = 0, finished = 0;
  bool more = true;
  // Starts a batch, if there is one more.
  auto start = [&]() -> Returned<void> {
    if (started) ++next;
    more = next != last;
    if (!more) return Returned<void>();
    auto &&batch = *next;
    using Element = std::remove_reference_t<decltype(*std::data(batch))>;
    static_assert(std::is_trivially_copyable_v<Element>, "a batch has values that are copied by their bytes");
    detail::Lane &lane = lanes[started % depth];
    return lane.start(context.get(), started++, std::data(batch), std::size(batch) * sizeof(Element), before, work);
  };
  auto finish = [&]() -> Returned<void> {
    const std::size_t index = finished++;
    return lanes[index % depth].finish(index, take);
  };
  // What ends it comes behind the batches before it. The one that it is about was not started.
#ifdef ADEAD_NO_EXCEPTIONS
  Returned<void> ended;
#else
  std::exception_ptr ended;
#endif
  while (more || finished < started) {
    const bool full = started - finished == depth;
#ifdef ADEAD_NO_EXCEPTIONS
    auto outcome = full || !more ? finish() : start();
    if (outcome) continue;
    if (full || !more) return outcome;
    ended = std::move(outcome);
    started--;
    more = false;
#else
    if (full || !more) {
      finish();
      continue;
    }
    const std::size_t index = started;
    try {
      start();
    } catch (...) {
      ended = std::current_exception();
      started = index;
      more = false;
    }
#endif
  }
#ifdef ADEAD_NO_EXCEPTIONS
  return ended;
#else
  if (ended) std::rethrow_exception(ended);
#endif
}

}  // namespace ADEAD_HPP_MODE
}  // namespace adead

#endif
