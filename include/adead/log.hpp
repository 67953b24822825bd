// Messages of the runtime, passed to a function of the program. docs/logging.md is the guide.
#ifndef ADEAD_LOG_HPP
#define ADEAD_LOG_HPP

#include <adead/result.hpp>

#include <mutex>
#include <string_view>

namespace adead {
inline namespace ADEAD_HPP_MODE {

/// Receives messages: a level, a target ("adead.devices") and a text. Both texts are valid only during the call.
using Logger = std::function<void(LogLevel level, std::string_view target, std::string_view text)>;

namespace detail {
/// The current function. It is not destroyed when the program ends, because other threads may still send messages then.
struct LoggerSlot {
  std::mutex changing;
  Logger *now = nullptr;
};
inline LoggerSlot &logger_slot() {
  static LoggerSlot *const slot = new LoggerSlot;
  return *slot;
}

/// Whether this thread is inside such a function.
inline bool &telling() noexcept {
  thread_local bool it = false;
  return it;
}

/// The callback for the C interface. No exception leaves it.
inline void tell(adead_log_level level, const char *target, const char *text, void *logger) noexcept {
  telling() = true;
#if defined(__cpp_exceptions)
  try {
#endif
    (*static_cast<Logger *>(logger))(static_cast<LogLevel>(level), target, text);
#if defined(__cpp_exceptions)
  } catch (...) {
    // No caller could receive the exception.
  }
#endif
  telling() = false;
}
}  // namespace detail

/// Sets the function that receives messages of a level and above. The process has one; the last call wins. Without one,
/// ADEAD_LOG or adead.toml decides what is printed to stderr. Any thread may call the function, one call at a time, and
/// it must not call adead. Another call of set_logger destroys it. An exception that it throws is dropped.
/// invalid_argument inside such a function; unsupported in a library built with ADEAD_MINIMAL.
inline Returned<void> set_logger(Logger logger, LogLevel level = LogLevel::info) {
  // Another thread that changes the function may be waiting for this thread's call of it.
  std::unique_lock<std::mutex> lock;
  if (!detail::telling()) lock = std::unique_lock<std::mutex>(detail::logger_slot().changing);
  std::unique_ptr<Logger> given;
  if (logger) given = std::make_unique<Logger>(std::move(logger));
  adead_status status = adead_log_set(static_cast<adead_log_level>(level), given ? detail::tell : nullptr, given.get());
  if (status) return detail::done(status);
  // No thread calls the old function any more.
  std::unique_ptr<Logger> before(std::exchange(detail::logger_slot().now, given.release()));
  lock.unlock();
  return detail::done(status);
}

}  // namespace ADEAD_HPP_MODE
}  // namespace adead

#endif
