// Flags that end long calls early.
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
  /// While a Watch lives, long calls of the thread that made it end with not_ready if the flag is set. The flag must
  /// outlive it.
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
    // After the swaps, `taken` destroys the old objects: first the callback that sets the flag, then the flag.
    Interrupt taken(std::move(other));
    std::swap(handle_, taken.handle_);
    std::swap(source_, taken.source_);
    return *this;
  }

  /// Makes a flag that is not set.
  static Returned<Interrupt> create() { return detail::asked<Interrupt>(adead_interrupt_create); }

#ifdef __cpp_lib_jthread
  /// Makes a flag that is set when the token's stop is requested.
  static Returned<Interrupt> create(std::stop_token token) {
    adead_interrupt *out = nullptr;
    adead_status status = adead_interrupt_create(&out);
    Interrupt made(out);
    auto set = [out] { adead_interrupt_set(out, 1); };
    if (!status) made.source_ = std::make_shared<std::stop_callback<decltype(set)>>(std::move(token), set);
    return detail::done(status, std::move(made));
  }
#endif

  /// Sets or clears the flag. Calls that have seen it set still end early. Any thread may call this, and so may a
  /// signal handler.
  void set(bool value = true) const noexcept { adead_interrupt_set(get(), value); }

  /// Returns whether the flag is set.
  bool is_set() const noexcept { return adead_interrupt_get(get()) != 0; }

  /// Watches the flag until the result is destroyed: while the flag is set, long calls of this thread end early. Long
  /// calls are operations, programs and pipelines on the CPU, and waits for a GPU. They give no result, but may have
  /// written parts of their output arrays and buffers.
  Watch watch() const noexcept { return Watch(get()); }

  /// Calls `work()`, whose long calls end early while the flag is set.
  template <class F>
  decltype(auto) run(F &&work) const {
    Watch watched = watch();
    return std::forward<F>(work)();
  }

  adead_interrupt *get() const noexcept { return handle_.get(); }
  explicit operator bool() const noexcept { return static_cast<bool>(handle_); }

 private:
  detail::Handle<adead_interrupt, adead_interrupt_destroy> handle_;
  /// The callback of a stop token. Its type is the same in every C++ standard.
  std::shared_ptr<void> source_;
};

}  // namespace ADEAD_HPP_MODE
}  // namespace adead

#endif
