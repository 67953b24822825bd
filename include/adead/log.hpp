// What the runtime tells of itself, to a function of the program's. docs/logging.md.
#ifndef ADEAD_LOG_HPP
#define ADEAD_LOG_HPP

#include <adead/result.hpp>

#include <mutex>
#include <string_view>

namespace adead {
inline namespace ADEAD_HPP_MODE {

/// What gets messages: a level, what it is about ("adead.devices"), a text. Both texts go with the call.
using Logger = std::function<void(LogLevel level, std::string_view target, std::string_view text)>;

namespace detail {
/// The function that was given last; it is not destroyed when the program ends, as others may still tell something then.
struct LoggerSlot {
  std::mutex changing;
  Logger *now = nullptr;
};
inline LoggerSlot &logger_slot() {
  static LoggerSlot *const slot = new LoggerSlot;
  return *slot;
}

/// Whether this thread is in such a function.
inline bool &telling() noexcept {
  thread_local bool it = false;
  return it;
}

/// What the C interface calls. No exception leaves it.
inline void tell(adead_log_level level, const char *target, const char *text, void *logger) noexcept {
  telling() = true;
#if defined(__cpp_exceptions)
  try {
#endif
    (*static_cast<Logger *>(logger))(static_cast<LogLevel>(level), target, text);
#if defined(__cpp_exceptions)
  } catch (...) {
    // Nobody is there who could take it.
  }
#endif
  telling() = false;
}
}  // namespace detail

/// Gives messages of a level and above to a function; one for the process, the last one that was given. Without one, ADEAD_LOG
/// or adead.toml say what is printed to stderr. It is called where a message comes from, by any thread, one call at a time, and
/// must not call adead; it is destroyed when another one was given. An exception that it throws is dropped.
/// invalid_argument in such a function; unsupported in a library built with ADEAD_MINIMAL.
inline Returned<void> set_logger(Logger logger, LogLevel level = LogLevel::info) {
  // Another thread that changes it may wait for this one's call.
  std::unique_lock<std::mutex> lock;
  if (!detail::telling()) lock = std::unique_lock<std::mutex>(detail::logger_slot().changing);
  std::unique_ptr<Logger> given;
  if (logger) given = std::make_unique<Logger>(std::move(logger));
  adead_status status = adead_log_set(static_cast<adead_log_level>(level), given ? detail::tell : nullptr, given.get());
  if (status) return detail::done(status);
  // The one before, which nobody calls any more.
  std::unique_ptr<Logger> before(std::exchange(detail::logger_slot().now, given.release()));
  lock.unlock();
  return detail::done(status);
}

}  // namespace ADEAD_HPP_MODE
}  // namespace adead

#endif
