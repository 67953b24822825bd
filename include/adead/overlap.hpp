// Batches through a device, several under way at once: docs/overlap.md.
#ifndef ADEAD_OVERLAP_HPP
#define ADEAD_OVERLAP_HPP

#include <adead/context.hpp>

#include <exception>

namespace adead {
inline namespace ADEAD_HPP_MODE {

/// What the work of overlap() is given for a batch: a stream, the batch on the device, and buffers.
class Stage {
 public:
  /// Of which batch: the first one is 0.
  std::size_t index() const noexcept { return adead_stage_index(stage_); }
  /// The stream of the batch. Work on it finds the batch there.
  Stream &stream() noexcept { return stream_; }
  /// The batch on the device: a buffer of exactly its bytes.
  const Buffer &input() const noexcept { return *buffers_.front(); }

  /// A buffer of so many bytes for results and intermediate values, there until the work of its batch has returned. The n-th
  /// call for a batch gives what the n-th call gave for an earlier one, with what it had, if that had the same size; else a
  /// new one, zeroed. Never null where it succeeds.
  Returned<const Buffer *> buffer(std::size_t bytes) {
    adead_buffer *raw = nullptr;
    adead_status status = adead_stage_buffer(stage_, bytes, &raw);
    if (!status) buffers_.push_back(std::make_unique<Buffer>(raw));
    return detail::done(status, static_cast<const Buffer *>(buffers_.back().get()));
  }

  /// What comes to the host when the work is done: bytes of a buffer from an offset on. The last call counts; without one, a
  /// result of no bytes says that the batch is done.
  void result(const Buffer &from, std::size_t offset, std::size_t bytes) noexcept {
    // It fails for an empty buffer only, which is as good as no result.
    adead_stage_result(stage_, from.get(), offset, bytes);
  }

  explicit Stage(adead_stage *stage) : stage_(stage), stream_(adead_stage_stream(stage)) {
    buffers_.push_back(std::make_unique<Buffer>(adead_stage_input(stage)));
  }
  Stage(const Stage &) = delete;
  Stage &operator=(const Stage &) = delete;
  /// Its stream and its buffers are the library's.
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

/// What a callback of the C interface returns in place of what is kept for the caller: no status of the library's.
inline constexpr adead_status kept_error = -1;

/// Batches, what is done with them, and what one of them found wrong.
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
  /// A batch that is made when it is asked for, until the next one is.
  std::optional<std::remove_reference_t<Batch>> made{};
  std::vector<std::byte> copy{};
#ifdef ADEAD_NO_EXCEPTIONS
  std::optional<Error> found{};
#else
  std::exception_ptr found{};
#endif

  /// Runs a function for a callback. What it throws, or a Result of it that failed, is kept.
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

/// The most batches under way at once.
inline constexpr std::size_t max_depth = ADEAD_OVERLAP_MAX_DEPTH;

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
