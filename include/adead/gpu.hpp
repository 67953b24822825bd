// Memory on a device, kernels of one's own, and streams of work.
#ifndef ADEAD_GPU_HPP
#define ADEAD_GPU_HPP

#include <adead/tensor.hpp>

namespace adead {
inline namespace ADEAD_HPP_MODE {

/// A specialization constant of a kernel: id, value.
using Constant = adead_constant;
/// Workgroups in x, y and z.
using Groups = std::array<std::uint32_t, 3>;

/// Memory on a device, with a size in bytes and no type. Threads may share one.
class Buffer {
 public:
  Buffer() noexcept = default;
  explicit Buffer(adead_buffer *raw) noexcept : handle_(raw) {}

  /// Bytes.
  Returned<std::size_t> size() const { return detail::asked<std::size_t>(adead_buffer_size, get()); }

  /// Copies bytes to it from `offset` on, behind everything that its context enqueued.
  Returned<void> write(std::size_t offset, const void *data, std::size_t bytes) {
    return detail::done(adead_buffer_write(get(), offset, data, bytes));
  }
  template <class T>
  Returned<void> write(std::size_t offset, const std::vector<T> &values) {
    static_assert(std::is_trivially_copyable_v<T>, "memory has values that are copied by their bytes");
    return write(offset, values.data(), values.size() * sizeof(T));
  }

  /// Waits for everything that its context enqueued and copies bytes from `offset` on.
  Returned<void> read(std::size_t offset, void *to, std::size_t bytes) const {
    return detail::done(adead_buffer_read(get(), offset, to, bytes));
  }

  /// All of it, as so many whole T as there are.
  template <class T>
  Returned<std::vector<T>> to_vector() const {
    static_assert(std::is_trivially_copyable_v<T>, "memory has values that are copied by their bytes");
    std::size_t bytes = 0;
    adead_status status = adead_buffer_size(get(), &bytes);
    std::vector<T> values(bytes / sizeof(T));
    if (!status) status = adead_buffer_read(get(), 0, values.data(), values.size() * sizeof(T));
    return detail::done(status, std::move(values));
  }

  /// Gives the memory back, once work that uses it is done. Any use after it is invalid_argument.
  Returned<void> free() { return detail::done(adead_buffer_free(get())); }

  adead_buffer *get() const noexcept { return handle_.get(); }
  /// Gives the handle to the caller, who destroys it.
  adead_buffer *release() noexcept { return handle_.release(); }
  explicit operator bool() const noexcept { return static_cast<bool>(handle_); }

 private:
  detail::Handle<adead_buffer, adead_buffer_destroy> handle_;
};

/// Buffers of a call: `{a, b, c}`.
using Buffers = Array<std::reference_wrapper<const Buffer>>;

/// The push constants of a call: any plain value.
class Push {
 public:
  constexpr Push() noexcept = default;
  constexpr Push(const void *data, std::size_t bytes) noexcept : data_(data), bytes_(bytes) {}
  template <class T, class = std::enable_if_t<std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>>>
  constexpr Push(const T &value) noexcept : data_(&value), bytes_(sizeof value) {}
  constexpr const void *data() const noexcept { return data_; }
  constexpr std::size_t size() const noexcept { return bytes_; }

 private:
  const void *data_ = nullptr;
  std::size_t bytes_ = 0;
};

/// A buffer of a kernel.
struct Parameter {
  /// The least bytes that a buffer for it has; what it has beyond must be a multiple of `stride`, 0 without an array of any
  /// length.
  std::uint64_t least, stride;
  /// Its descriptor set and binding.
  std::uint32_t set, binding;
  /// The kernel declares that it never writes it.
  bool readonly;
};

/// What a dispatch of a kernel must give.
struct KernelDetails {
  /// The entry point.
  std::string name;
  std::vector<Parameter> parameters;
  /// Bytes of push constants, 0 without any.
  std::size_t push_bytes;
  /// Threads of a workgroup in x, y, z.
  Groups workgroup;
};

/// A kernel, compiled for a context's GPU. It never changes, so threads may share one.
class Kernel {
 public:
  Kernel() noexcept = default;
  explicit Kernel(adead_kernel *raw) noexcept : handle_(raw) {}

  Returned<KernelDetails> info() const {
    auto from = detail::sized<adead_kernel_details>();
    adead_status status = adead_kernel_info(get(), &from);
    KernelDetails details{status ? "" : from.name, {}, from.push_bytes,
                          {from.workgroup[0], from.workgroup[1], from.workgroup[2]}};
    for (std::size_t i = 0; !status && i < from.parameter_count; i++) {
      auto one = detail::sized<adead_parameter>();
      status = adead_kernel_parameter_at(get(), i, &one);
      details.parameters.push_back({one.least, one.stride, one.set, one.binding, one.readonly != 0});
    }
    return detail::done(status, std::move(details));
  }

  adead_kernel *get() const noexcept { return handle_.get(); }
  explicit operator bool() const noexcept { return static_cast<bool>(handle_); }

 private:
  detail::Handle<adead_kernel, adead_kernel_destroy> handle_;
};

/// A point in a stream. Threads may share one.
class Event {
 public:
  Event() noexcept = default;
  explicit Event(adead_event *raw) noexcept : handle_(raw) {}

  /// Whether its stream has come there.
  Returned<bool> query() const { return detail::asked<bool>(adead_event_query, get()); }

  /// Waits until its stream has come there.
  Returned<void> wait() const { return detail::done(adead_event_wait(get(), ADEAD_FOREVER)); }

  /// Waits so long at most; not_ready if that did not suffice.
  Returned<void> wait(std::chrono::nanoseconds most) const {
    return detail::done(adead_event_wait(get(), static_cast<std::uint64_t>(most.count())));
  }

  adead_event *get() const noexcept { return handle_.get(); }
  explicit operator bool() const noexcept { return static_cast<bool>(handle_); }

 private:
  detail::Handle<adead_event, adead_event_destroy> handle_;
};

/// Bytes on their way to the host. One thread at a time.
class Download {
 public:
  Download() noexcept = default;
  explicit Download(adead_download *raw) noexcept : handle_(raw) {}

  /// Whether the bytes have arrived; also once they were read.
  Returned<bool> query() const { return detail::asked<bool>(adead_download_query, get()); }

  /// Waits for the bytes and says where they are, without a copy, until they are read or the download is gone: memory that
  /// the device reaches, not to be kept for long.
  Returned<const void *> data() const { return detail::asked<const void *>(adead_download_data, get()); }

  /// Waits for the bytes and copies them, once: `bytes` is what the download has.
  Returned<void> read(void *to, std::size_t bytes) { return detail::done(adead_download_read(get(), to, bytes)); }

  adead_download *get() const noexcept { return handle_.get(); }
  explicit operator bool() const noexcept { return static_cast<bool>(handle_); }

 private:
  detail::Handle<adead_download, adead_download_destroy> handle_;
};

/// A time that a device took. Threads may share one.
class Timestamp {
 public:
  Timestamp() noexcept = default;
  explicit Timestamp(adead_timestamp *raw) noexcept : handle_(raw) {}

  /// From `earlier` to this, both of one device. not_ready before both were taken.
  Returned<std::chrono::nanoseconds> since(const Timestamp &earlier) const {
    return detail::asked<std::chrono::nanoseconds>(adead_timestamp_since, get(), earlier.get());
  }

  adead_timestamp *get() const noexcept { return handle_.get(); }
  explicit operator bool() const noexcept { return static_cast<bool>(handle_); }

 private:
  detail::Handle<adead_timestamp, adead_timestamp_destroy> handle_;
};

/// Work that was recorded. Threads may share one.
class Recording {
 public:
  Recording() noexcept = default;
  explicit Recording(adead_recording *raw) noexcept : handle_(raw) {}
  adead_recording *get() const noexcept { return handle_.get(); }
  explicit operator bool() const noexcept { return static_cast<bool>(handle_); }

 private:
  detail::Handle<adead_recording, adead_recording_destroy> handle_;
};

}  // namespace ADEAD_HPP_MODE
}  // namespace adead

#endif
