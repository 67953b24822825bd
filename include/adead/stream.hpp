// Streams: each runs its work in order, concurrently with other streams.
#ifndef ADEAD_STREAM_HPP
#define ADEAD_STREAM_HPP

#include <adead/gpu.hpp>

namespace adead {
inline namespace ADEAD_HPP_MODE {

/// A buffer as an operand of an operation. Without a buffer, an optional operand is absent.
class Operand {
 public:
  Operand() noexcept = default;
  /// Makes an operand whose elements begin at byte `offset`.
  Operand(const Buffer &buffer, DType dtype, Array<std::size_t> dims, std::size_t offset = 0) noexcept
      : buffer_(buffer.get()), dtype_(dtype), rank_(dims.size()), offset_(offset) {
    // The library refuses a rank above the maximum.
    for (std::size_t i = 0; i < rank_ && i < dims_.size(); i++) dims_[i] = dims.data()[i];
  }

  /// Returns the operand for the C interface, valid while this object stays in place.
  adead_operand raw() const noexcept {
    return {buffer_, offset_, dims_.data(), rank_, static_cast<adead_dtype>(dtype_), 0};
  }

 private:
  adead_buffer *buffer_ = nullptr;
  DType dtype_ = DType::f32;
  std::array<std::size_t, ADEAD_MAX_RANK> dims_ = {};
  std::size_t rank_ = 0, offset_ = 0;
};

/// A queue of work on a context's device. One thread at a time may use it.
class Stream {
 public:
  Stream() noexcept = default;
  explicit Stream(adead_stream *raw) noexcept : handle_(raw) {}

  /// Enqueues a copy of bytes to a buffer. The caller may reuse the bytes when the call returns.
  Returned<void> upload(const Buffer &to, std::size_t offset, const void *data, std::size_t bytes) {
    return detail::done(adead_stream_upload(get(), to.get(), offset, data, bytes));
  }

  /// Enqueues a copy of bytes of a buffer to the host. The download returns them.
  Returned<Download> download(const Buffer &from, std::size_t offset, std::size_t bytes) {
    return detail::asked<Download>(adead_stream_download, get(), from.get(), offset, bytes);
  }

  /// Enqueues a copy from one buffer to another. Two ranges of one buffer must not overlap.
  Returned<void> copy(const Buffer &from, std::size_t from_offset, const Buffer &to, std::size_t to_offset, std::size_t bytes) {
    return detail::done(adead_stream_copy(get(), from.get(), from_offset, to.get(), to_offset, bytes));
  }

  /// Enqueues a fill with zeros: whole 4-byte words, except at the buffer's end.
  Returned<void> clear(const Buffer &buffer, std::size_t offset, std::size_t bytes) {
    return detail::done(adead_stream_clear(get(), buffer.get(), offset, bytes));
  }

  /// Enqueues a kernel, with buffers in the order of set and binding.
  Returned<void> dispatch(const Kernel &kernel, Buffers buffers, Groups groups, Push push = {}) {
    auto all = detail::raws(buffers);
    return detail::done(
        adead_stream_dispatch(get(), kernel.get(), all.data(), all.size(), push.data(), push.size(), groups.data()));
  }

  /// Enqueues an operation on buffers: its operands in order, and a place for the result. The result's dtype and shape
  /// must be those that follow from the operands. Errors that only the device can find come from sync().
  Returned<void> run(Op op, Array<Operand> operands, const Operand &result, const Attrs &attrs = {}) {
    std::vector<adead_operand> all;
    for (const Operand &one : operands) all.push_back(one.raw());
    adead_operand out = result.raw();
    return detail::done(adead_stream_run(get(), static_cast<adead_op>(op), all.data(), all.size(), attrs.get(), &out));
  }

  /// Makes an event at the point after everything that was enqueued on the stream so far.
  Returned<Event> event() { return detail::asked<Event>(adead_stream_event, get()); }

  /// Makes everything from now on wait for an event of the same device.
  Returned<void> wait_event(const Event &event) { return detail::done(adead_stream_wait_event(get(), event.get())); }

  /// Enqueues a timestamp.
  Returned<Timestamp> timestamp() { return detail::asked<Timestamp>(adead_stream_timestamp, get()); }

  /// Starts to record the stream's work instead of running it, until record_end(). Uploads, downloads, events and
  /// timestamps can't be recorded.
  Returned<void> record_begin() { return detail::done(adead_stream_record_begin(get())); }

  /// Ends the recording and returns it, to be run any number of times.
  Returned<Recording> record_end() { return detail::asked<Recording>(adead_stream_record_end, get()); }

  /// Records what `work(*this)` enqueues. If it throws or returns a failed Result, nothing is recorded and the stream
  /// goes on as before. The caller gets the exception or the Result.
  template <class F>
  Returned<Recording> record(F &&work) {
    if (adead_status status = adead_stream_record_begin(get())) return detail::failed<Recording>(status);
    struct Open {
      adead_stream *stream;
      ~Open() {
        adead_recording *unfinished = nullptr;
        if (stream && !adead_stream_record_end(stream, &unfinished)) adead_recording_destroy(unfinished);
      }
    } open{get()};
#ifdef ADEAD_NO_EXCEPTIONS
    if constexpr (!std::is_void_v<std::invoke_result_t<F, Stream &>>) {
      auto outcome = std::forward<F>(work)(*this);
      if (!outcome) return *outcome.error();
    } else {
      std::forward<F>(work)(*this);
    }
#else
    std::forward<F>(work)(*this);
#endif
    open.stream = nullptr;
    return record_end();
  }

  /// Enqueues a recording of the same device.
  Returned<void> replay(const Recording &recording) { return detail::done(adead_stream_replay(get(), recording.get())); }

  /// Submits the stream's work to the device now, without waiting.
  Returned<void> flush() { return detail::done(adead_stream_flush(get())); }

  /// Waits until all work has finished. Returns the first error that the device found in it.
  Returned<void> sync() { return detail::done(adead_stream_sync(get())); }

  /// Returns whether all work has finished.
  Returned<bool> query() { return detail::asked<bool>(adead_stream_query, get()); }

  adead_stream *get() const noexcept { return handle_.get(); }
  /// Releases the handle to the caller, who must destroy it.
  adead_stream *release() noexcept { return handle_.release(); }
  explicit operator bool() const noexcept { return static_cast<bool>(handle_); }

 private:
  detail::Handle<adead_stream, adead_stream_destroy> handle_;
};

}  // namespace ADEAD_HPP_MODE
}  // namespace adead

#endif
