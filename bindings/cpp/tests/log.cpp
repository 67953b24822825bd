// Messages: what a function gets, one that throws, one that goes.
#include <adead/log.hpp>

#include "check.hpp"

#include <thread>

using namespace adead;

namespace {

/// How often the CPU was opened, as a logger counts it.
struct Counted {
  int opened = 0, others = 0;
  void operator()(LogLevel level, std::string_view target, std::string_view text) {
    bool it = level == LogLevel::info && target == "adead.devices" && text.substr(0, 12) == "opened cpu: ";
    ++(it ? opened : others);
  }
};

void open_one() { Context context = OK(Context::open("cpu")); }

void messages() {
  Counted all;
  OK(set_logger(std::ref(all)));
  open_one();
  CHECK(all.opened == 1);
  all.others = 0;
  OK(set_logger(std::ref(all), LogLevel::debug));
  open_one();
  CHECK(all.opened == 2 && all.others > 0);
  // Any thread calls it, one at a time.
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; i++) threads.emplace_back(open_one);
  for (std::thread &thread : threads) thread.join();
  CHECK(all.opened == 6);

  // It goes when another one is given, and not before.
  auto owned = std::make_shared<Counted>();
  OK(set_logger([owned](LogLevel level, auto target, auto text) { (*owned)(level, target, text); }));
  CHECK(owned.use_count() == 2);
  open_one();
  CHECK(owned->opened == 1 && all.opened == 6);
  FAILS(InvalidArgument, invalid_argument, "level is 6; it must be 0 to 5", set_logger(std::ref(all), LogLevel(6)));
  CHECK(owned.use_count() == 2);
  open_one();
  CHECK(owned->opened == 2);

  // A logger can't give another one; what it throws goes no further.
  int refused = 0;
  OK(set_logger([&refused](LogLevel, std::string_view, std::string_view) {
    FAILS(InvalidArgument, invalid_argument, "a log callback must not call adead_log_set", set_logger({}));
    refused++;
  }));
  CHECK(owned.use_count() == 1);
  open_one();
  CHECK(refused >= 1);
#ifdef __cpp_exceptions
  int thrown = 0;
  OK(set_logger([&thrown](LogLevel, std::string_view, std::string_view) {
    thrown++;
    throw std::runtime_error("a logger's own");
  }));
  open_one();
  open_one();
  CHECK(thrown >= 2);
#endif
  all.opened = 0;
  OK(set_logger({}));
  open_one();
  CHECK(all.opened == 0);
  CHECK(std::string(name(LogLevel::warn)) == "warn");
}

}  // namespace

int main() {
  messages();
  std::printf("messages as they should be\n");
  return 0;
}
