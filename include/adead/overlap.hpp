// Batches through a device, several in flight at once. docs/overlap.md is the guide.
#ifndef ADEAD_OVERLAP_HPP
#define ADEAD_OVERLAP_HPP

#include <adead/context.hpp>

#include <exception>

namespace adead {
inline namespace ADEAD_HPP_MODE {

/// The context of a batch's work in overlap(): a stream, the batch on the device, and buffers.
class Stage {
 public:
  /// Returns the index of the batch; the first one is 0.
  std::size_t index() const noexcept { return adead_stage_index(stage_); }
  /// Returns the stream of the batch. Its upload comes before all work on this stream.
  Stream &stream() noexcept { return stream_; }
  /// Returns the batch on the device: a buffer of exactly its bytes.
  const Buffer &input() const noexcept { return *buffers_.front(); }

  /// Returns a buffer of `bytes` bytes for results and intermediate values, valid until the batch's work has returned.
  /// The n-th call for a batch reuses the buffer of an earlier batch's n-th call, with its old bytes, if the size
  /// is the same. Otherwise it returns a new buffer of zeros. Never null on success.
  Returned<const Buffer *> buffer(std::size_t bytes) {
    adead_buffer *raw = nullptr;
    adead_status status = adead_stage_buffer(stage_, bytes, &raw);
    if (!status) buffers_.push_back(std::make_unique<Buffer>(raw));
    return detail::done(status, static_cast<const Buffer *>(buffers_.back().get()));
  }

  /// Sets the result of the batch: bytes of a buffer from an offset on, to be downloaded when the work is done. The
  /// last call counts. Without a call, the result has no bytes, and its arrival says that the batch is done.
  void result(const Buffer &from, std::size_t offset, std::size_t bytes) noexcept {
    // This fails only for an empty buffer, which counts as no result.
    adead_stage_result(stage_, from.get(), offset, bytes);
  }

  explicit Stage(adead_stage *stage) : stage_(stage), stream_(adead_stage_stream(stage)) {
    buffers_.push_back(std::make_unique<Buffer>(adead_stage_input(stage)));
  }
  Stage(const Stage &) = delete;
  Stage &operator=(const Stage &) = delete;
  /// The library owns its stream and its buffers.
  ~Stage() {
    stream_.release();
    for (auto &buffer : buffers_) buffer->release();
  }

 private:
  adead_stage *stage_;
  Stream stream_;
  std::vector<std::unique_ptr<Buffer>> buffers_;
};

namespace detail {

/// The status that a callback returns when an error was kept for the caller. The library has no such status.
inline constexpr adead_status kept_error = -1;

/// The batches, the functions that process them, and the error that one of them reported.
template <class Batches, class Work, class Take>
struct Overlapped {
  using Iterator = decltype(std::begin(std::declval<Batches &>()));
  using Batch = decltype(*std::declval<Iterator &>());
  using Last = decltype(std::end(std::declval<Batches &>()));

  Iterator at;
  Last last;
  Work &work;
  Take &take;
  bool first = true;
  /// A batch that was made on demand, valid until the next one is made.
  std::optional<std::remove_reference_t<Batch>> made{};
  std::vector<std::byte> copy{};
#ifdef ADEAD_NO_EXCEPTIONS
  std::optional<Error> found{};
#else
  std::exception_ptr found{};
#endif

  /// Runs a function for a callback, and keeps the exception that it throws or the failed Result that it returns.
  template <class F, class... Args>
  adead_status call(F &&function, Args &&...args) noexcept {
#ifdef ADEAD_NO_EXCEPTIONS
    if constexpr (is_result<std::invoke_result_t<F &, Args...>>) {
      auto outcome = function(std::forward<Args>(args)...);
      if (outcome) return ADEAD_OK;
      found = outcome.error();
      return kept_error;
    } else {
      function(std::forward<Args>(args)...);
      return ADEAD_OK;
    }
#else
    try {
      function(std::forward<Args>(args)...);
      return ADEAD_OK;
    } catch (...) {
      found = std::current_exception();
      return kept_error;
    }
#endif
  }

  Batch &&hold(Batch &&batch) {
    if constexpr (std::is_reference_v<Batch>) {
      return static_cast<Batch &&>(batch);
    } else {
      return std::move(made.emplace(std::move(batch)));
    }
  }

  static adead_status next_of(adead_batch *to, void *user) {
    auto &self = *static_cast<Overlapped *>(user);
    adead_status status = ADEAD_OK;
    adead_status failed = self.call([&] {
      if (!std::exchange(self.first, false)) ++self.at;
      if (!(self.at != self.last)) return;
      Batch &&batch = self.hold(*self.at);
      using Element = std::remove_reference_t<decltype(*std::data(batch))>;
      static_assert(std::is_trivially_copyable_v<Element>, "a batch has values that are copied by their bytes");
      status = adead_batch_borrow(to, std::data(batch), std::size(batch) * sizeof(Element));
    });
    return failed ? failed : status;
  }

  static adead_status work_of(adead_stage *raw, void *user) {
    auto &self = *static_cast<Overlapped *>(user);
    return self.call([&] {
      Stage stage(raw);
      return self.work(stage);
    });
  }

  static adead_status take_of(std::size_t index, const void *data, std::size_t size, void *user) {
    auto &self = *static_cast<Overlapped *>(user);
    const Span<const std::byte> bytes(static_cast<const std::byte *>(data), size);
    if constexpr (std::is_invocable_v<Take &, std::size_t, Span<const std::byte>>) {
      return self.call(self.take, index, bytes);
    } else {
      return self.call([&] {
        self.copy.assign(bytes.begin(), bytes.end());
        return self.take(index, static_cast<const std::vector<std::byte> &>(self.copy));
      });
    }
  }
};

}  // namespace detail

/// The most batches in flight at once.
inline constexpr std::size_t max_depth = ADEAD_OVERLAP_MAX_DEPTH;

/// Processes batches on a device, at most `depth` at once, each on its own stream. A batch is uploaded, and
/// `work(stage)` enqueues work on it and names a result. The result is downloaded and passed to `take(index, bytes)`.
/// Depth 1 is sequential, 2 double buffering, 3 triple buffering.
///
/// `bytes` is a `Span<const std::byte>` of the download's memory, valid only during the call. A `take` with a parameter
/// `const std::vector<std::byte> &` gets a copy.
///
/// At every depth the results equal those of a loop that processes one batch after the other. A batch's work begins
/// when the work of the batch before is done, so `work` may read and write buffers that all batches share. Uploads and
/// downloads overlap with the work. The caller's thread makes all calls. `take` gets results in the order of the
/// batches. `batches` is called only while fewer than `depth` batches are in flight. A batch is any contiguous range of
/// plain values: a vector, an array, a span.
///
/// An error that `batches`, `work` or the device finds in a batch is reported after `take` got the batches before it;
/// an error of `take`, at once. It is an exception, or a failed Result without exceptions. Then no other batch starts,
/// and the batches in flight finish. invalid_argument unless the depth is from 1 to 64.
template <class Batches, class Work, class Take>
Returned<void> overlap(const Context &context, Batches &&batches, std::size_t depth, Work &&work, Take &&take) {
  using All = detail::Overlapped<std::remove_reference_t<Batches>, std::remove_reference_t<Work>, std::remove_reference_t<Take>>;
  All all{std::begin(batches), std::end(batches), work, take};
  adead_status status = adead_overlap(context.get(), depth, All::next_of, All::work_of, All::take_of, &all);
#ifdef ADEAD_NO_EXCEPTIONS
  if (status == detail::kept_error) return *all.found;
#else
  if (status == detail::kept_error) std::rethrow_exception(all.found);
#endif
  return detail::done(status);
}

}  // namespace ADEAD_HPP_MODE
}  // namespace adead

#endif
