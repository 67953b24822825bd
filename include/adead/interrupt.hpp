// Flags that end long work early.
#ifndef ADEAD_INTERRUPT_HPP
#define ADEAD_INTERRUPT_HPP

#include <adead/result.hpp>

#if __cplusplus >= 202002L && __has_include(<stop_token>)
#include <stop_token>
#endif

namespace adead {
inline namespace ADEAD_HPP_MODE {

/// A flag that ends long calls early. Threads and signal handlers may share one.
class Interrupt {
 public:
  /// As long as it lives, long calls of the thread that made it end with not_ready while the flag is set. The flag lives longer.
  class [[nodiscard]] Watch {
   public:
    Watch(const Watch &) = delete;
    Watch &operator=(const Watch &) = delete;
    ~Watch() { adead_interrupt_watch(before_); }

   private:
    friend class Interrupt;
    explicit Watch(const adead_interrupt *interrupt) noexcept : before_(adead_interrupt_watch(interrupt)) {}
    const adead_interrupt *before_;
  };

  Interrupt() noexcept = default;
  explicit Interrupt(adead_interrupt *raw) noexcept : handle_(raw) {}
  Interrupt(Interrupt &&) noexcept = default;
  Interrupt &operator=(Interrupt &&other) noexcept {
    // The old flag goes with `taken`, and what sets it first.
    Interrupt taken(std::move(other));
    std::swap(handle_, taken.handle_);
    std::swap(source_, taken.source_);
    return *this;
  }

  /// A flag that is not set.
  static Returned<Interrupt> create() { return detail::asked<Interrupt>(adead_interrupt_create); }

#ifdef __cpp_lib_jthread
  /// A flag that is set once a stop is requested of the token.
  static Returned<Interrupt> create(std::stop_token token) {
    adead_interrupt *out = nullptr;
    adead_status status = adead_interrupt_create(&out);
    Interrupt made(out);
    auto set = [out] { adead_interrupt_set(out, 1); };
    if (!status) made.source_ = std::make_shared<std::stop_callback<decltype(set)>>(std::move(token), set);
    return detail::done(status, std::move(made));
  }
#endif

  /// Sets it, or takes it back; calls that saw it end all the same. Any thread may, and a signal handler.
  void set(bool value = true) const noexcept { adead_interrupt_set(get(), value); }

  /// Whether it is set.
  bool is_set() const noexcept { return adead_interrupt_get(get()) != 0; }

  /// Long calls of this thread end while it is set, until the watch is gone: operations, programs and pipelines on the processor,
  /// and waiting for a GPU. They give no result, but parts of the arrays and buffers that they were to write may be written.
  Watch watch() const noexcept { return Watch(get()); }

  /// `work()`, whose long calls end while it is set.
  template <class F>
  decltype(auto) run(F &&work) const {
    Watch watched = watch();
    return std::forward<F>(work)();
  }

  adead_interrupt *get() const noexcept { return handle_.get(); }
  explicit operator bool() const noexcept { return static_cast<bool>(handle_); }

 private:
  detail::Handle<adead_interrupt, adead_interrupt_destroy> handle_;
  /// The callback of a stop token, whatever the standard that this is compiled for.
  std::shared_ptr<void> source_;
};

}  // namespace ADEAD_HPP_MODE
}  // namespace adead

#endif
