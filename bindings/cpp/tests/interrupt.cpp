// Flags that end long work: set by other threads, by a stop token, by a signal handler.
#include "check.hpp"

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

using namespace adead;

namespace {

const Interrupt *handled = nullptr;

/// Where nothing ends: what would hang fails.
class Guard {
 public:
  Guard() : thread_([this] {
    for (int i = 0; i < 3000 && !done_; i++) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    if (!done_) std::abort();
  }) {}
  ~Guard() {
    done_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> done_{false};
  std::thread thread_;
};

/// Products until one does not succeed.
Status products(const Context &context, const Tensor &x) {
#ifdef ADEAD_NO_EXCEPTIONS
  for (;;) {
    auto y = context.matmul(x, x);
    if (!y.ok()) return y.status();
  }
#else
  try {
    for (;;) (void)context.matmul(x, x);
  } catch (const NotReady &error) {
    return error.status();
  }
#endif
}

}  // namespace

int main() {
  Guard guard;
  Context context = OK(Context::open("cpu"));
  Tensor x = OK(context.tensor({1024, 1024}, some_values(1024 * 1024, 3)));
  Tensor expected = OK(context.matmul(x, x));
  auto works = [&] {
    Tensor y = OK(context.matmul(x, x));
    return same(y, expected);
  };

  Interrupt flag = OK(Interrupt::create());
  CHECK(flag && !flag.is_set());
  flag.set();
  CHECK(flag.is_set() && works());  // Nobody watches it.
  flag.set(false);
  {
    auto watch = flag.watch();
    std::thread setting([&] { flag.set(); });
    CHECK(products(context, x) == Status::not_ready);
    setting.join();
    FAILS(NotReady, not_ready, "interrupted", context.matmul(x, x));
    // Another thread is not meant.
    bool other = false;
    std::thread([&] { other = works(); }).join();
    CHECK(other);
    // The inner one counts, and then the outer one again.
    Interrupt inner = OK(Interrupt::create());
    CHECK(inner.run(works));
    FAILS(NotReady, not_ready, "interrupted", context.matmul(x, x));
    flag.set(false);
    CHECK(works());
    flag.set();
  }
  CHECK(works());
  flag.set(false);
  CHECK(flag.run([] { return 7; }) == 7);

  handled = &flag;
  std::signal(SIGINT, [](int) { handled->set(); });
  std::raise(SIGINT);
  CHECK(flag.run([&] { return products(context, x); }) == Status::not_ready);
  std::signal(SIGINT, SIG_DFL);

  // Moved, it is the same flag; what has none is never set.
  Interrupt moved = std::move(flag);
  CHECK(moved.is_set() && !flag && !flag.is_set());
  flag.set();
  CHECK(flag.run(works));

#ifdef __cpp_lib_jthread
  std::stop_source source;
  moved = OK(Interrupt::create(source.get_token()));
  CHECK(!moved.is_set() && moved.run(works));
  std::jthread requesting([&] { source.request_stop(); });
  CHECK(moved.run([&] { return products(context, x); }) == Status::not_ready);
  requesting.join();
  Interrupt late = OK(Interrupt::create(source.get_token()));
  CHECK(late.is_set());
  std::stop_source longer;
  {
    Interrupt gone = OK(Interrupt::create(longer.get_token()));
    gone = OK(Interrupt::create());
  }
  longer.request_stop();  // Of a flag that is gone.
#endif
  return works() ? 0 : 1;
}
