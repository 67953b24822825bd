// Memory on a device, the caller's own kernels, and events of streams.
#ifndef ADEAD_GPU_HPP
#define ADEAD_GPU_HPP

#include <adead/tensor.hpp>

namespace adead {
inline namespace ADEAD_HPP_MODE {

/// A specialization constant of a kernel: id, value.
using Constant = adead_constant;
/// Workgroups in x, y and z.
using Groups = std::array<std::uint32_t, 3>;

/// A range of memory on a device, with a size in bytes and no type. Threads may share one.
class Buffer {
 public:
  Buffer() noexcept = default;
  explicit Buffer(adead_buffer *raw) noexcept : handle_(raw) {}

  /// Returns the size in bytes.
  Returned<std::size_t> size() const { return detail::asked<std::size_t>(adead_buffer_size, get()); }

  /// Copies bytes to the buffer at `offset`, after everything that its context has enqueued.
  Returned<void> write(std::size_t offset, const void *data, std::size_t bytes) {
    return detail::done(adead_buffer_write(get(), offset, data, bytes));
  }
  template <class T>
  Returned<void> write(std::size_t offset, const std::vector<T> &values) {
    static_assert(std::is_trivially_copyable_v<T>, "memory has values that are copied by their bytes");
    return write(offset, values.data(), values.size() * sizeof(T));
  }

  /// Waits for everything that its context has enqueued, and copies bytes at `offset` to `to`.
  Returned<void> read(std::size_t offset, void *to, std::size_t bytes) const {
    return detail::done(adead_buffer_read(get(), offset, to, bytes));
  }

  /// Reads the whole buffer, as values of T, as many as fit.
  template <class T>
  Returned<std::vector<T>> to_vector() const {
    static_assert(std::is_trivially_copyable_v<T>, "memory has values that are copied by their bytes");
    std::size_t bytes = 0;
    adead_status status = adead_buffer_size(get(), &bytes);
    std::vector<T> values(bytes / sizeof(T));
    if (!status) status = adead_buffer_read(get(), 0, values.data(), values.size() * sizeof(T));
    return detail::done(status, std::move(values));
  }

  /// Frees the memory once the work that uses it has finished. Any use after it is invalid_argument.
  Returned<void> free() { return detail::done(adead_buffer_free(get())); }

  adead_buffer *get() const noexcept { return handle_.get(); }
  /// Releases the handle to the caller, who must destroy it.
  adead_buffer *release() noexcept { return handle_.release(); }
  explicit operator bool() const noexcept { return static_cast<bool>(handle_); }

 private:
  detail::Handle<adead_buffer, adead_buffer_destroy> handle_;
};

/// The buffers of a call: `{a, b, c}`.
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
  /// The minimum size of a buffer in bytes. Bytes beyond it must be a multiple of `stride`, which is 0 without a
  /// runtime-sized array.
  std::uint64_t least, stride;
  /// Its descriptor set and binding.
  std::uint32_t set, binding;
  /// Whether the kernel declares that it never writes the buffer.
  bool readonly;
};

/// What a dispatch of a kernel must pass.
struct KernelDetails {
  /// The entry point.
  std::string name;
  std::vector<Parameter> parameters;
  /// Bytes of push constants; 0 if it has none.
  std::size_t push_bytes;
  /// Threads of a workgroup in x, y, z.
  Groups workgroup;
};

/// A kernel that was compiled for a context's GPU. It never changes, so threads may share one.
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

  /// Returns whether the stream has reached the event.
  Returned<bool> query() const { return detail::asked<bool>(adead_event_query, get()); }

  /// Waits until the stream has reached the event.
  Returned<void> wait() const { return detail::done(adead_event_wait(get(), ADEAD_FOREVER)); }

  /// Waits for at most this time; not_ready if it was too short.
  Returned<void> wait(std::chrono::nanoseconds most) const {
    return detail::done(adead_event_wait(get(), static_cast<std::uint64_t>(most.count())));
  }

  adead_event *get() const noexcept { return handle_.get(); }
  explicit operator bool() const noexcept { return static_cast<bool>(handle_); }

 private:
  detail::Handle<adead_event, adead_event_destroy> handle_;
};

/// Bytes on their way to the host. One thread at a time may use it.
class Download {
 public:
  Download() noexcept = default;
  explicit Download(adead_download *raw) noexcept : handle_(raw) {}

  /// Returns whether the bytes have arrived. It stays true after they were read.
  Returned<bool> query() const { return detail::asked<bool>(adead_download_query, get()); }

  /// Waits for the bytes and returns their address without a copy. It is valid until they are read or the download is
  /// destroyed. Memory that the device can access is limited, so don't keep it for long.
  Returned<const void *> data() const { return detail::asked<const void *>(adead_download_data, get()); }

  /// Waits for the bytes and copies them, once. `bytes` must be the size of the download.
  Returned<void> read(void *to, std::size_t bytes) { return detail::done(adead_download_read(get(), to, bytes)); }

  adead_download *get() const noexcept { return handle_.get(); }
  explicit operator bool() const noexcept { return static_cast<bool>(handle_); }

 private:
  detail::Handle<adead_download, adead_download_destroy> handle_;
};

/// A time on a device's clock. Threads may share one.
class Timestamp {
 public:
  Timestamp() noexcept = default;
  explicit Timestamp(adead_timestamp *raw) noexcept : handle_(raw) {}

  /// Returns the time from `earlier` to this timestamp of the same device. not_ready until the device has taken both.
  Returned<std::chrono::nanoseconds> since(const Timestamp &earlier) const {
    return detail::asked<std::chrono::nanoseconds>(adead_timestamp_since, get(), earlier.get());
  }

  adead_timestamp *get() const noexcept { return handle_.get(); }
  explicit operator bool() const noexcept { return static_cast<bool>(handle_); }

 private:
  detail::Handle<adead_timestamp, adead_timestamp_destroy> handle_;
};

/// Recorded work. Threads may share one.
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
