// The excerpts of the guide (bindings/cpp/README.md), docs/profile.md and docs/logging.md, run one after another. `ci/guide` copies
// what stands between [guide: NAME] and [end] there.
#include <adead.hpp>
#include <adead/log.hpp>
#include <adead/profile.hpp>
#include <cstdlib>
#include <iostream>
#include <string_view>
#include <thread>

namespace {

void check(bool right, const char *what) {
  if (right) return;
  std::cerr << what << " is wrong\n";
  std::exit(1);
}

void copies(const adead::Context &ctx) {
  // [guide: copies]
  adead::Tensor a = ctx.tensor({{1.f, 2.f}, {3.f, 4.f}}), b = a;
  a += 1.f;                                        // b keeps its values
  std::cout << 2.f / a << (a == b ? " same" : " different");
  // [end]
  std::cout << '\n';
  check(b.data<float>()[0] == 1 && a.data<float>()[0] == 2, "a copy");
}

void options_of_operations(const adead::Context &ctx) {
  adead::Tensor x = ctx.zeros(adead::DType::f32, {2, 3, 4}), y = x, z = x;
  adead::Tensor w = ctx.zeros(adead::DType::f32, {5, 4}), bias = ctx.zeros(adead::DType::f32, {5});
  // [guide: options]
  ctx.softmax(x);                                  // the last axis
  ctx.sum(x, {1, true});                           // axis 1, keepdim
  ctx.sum(x, {adead::all_axes});
  ctx.transpose(x, {{1, 0, 2}});
  adead::MatmulOptions options;                    // with C++20: {.trans_b = true, .bias = &bias}
  options.trans_b = true;
  options.bias = &bias;
  options.activation = adead::Activation::gelu_erf;
  ctx.matmul(x, w, options);
  ctx.concat({x, y, z}, {1});
  // [end]
}

void interrupts(const adead::Context &ctx) {
  adead::Tensor x = ctx.tensor({{1.f, 2.f}, {3.f, 4.f}}), w = x, y = x;
  // [guide: interrupt]
  std::jthread worker([&](std::stop_token token) {
    adead::Interrupt stop = adead::Interrupt::create(token);
    adead::Interrupt::Watch watch = stop.watch();
    try {
      y = ctx.matmul(x, w);
    } catch (const adead::NotReady &) {
      // worker.request_stop() was called before the product was done.
    }
  });
  // [end]
  worker.join();
  check(y.data<float>()[0] == 7, "the product that nothing interrupted");
}

void work(const adead::Context &ctx) { ctx.softmax(ctx.tensor({{1.f, 2.f}, {3.f, 4.f}})); }

void profiles(const adead::Context &ctx) {
  // [guide: profile]
  adead::Profile profile = adead::Profile::begin(ctx);  // <adead/profile.hpp>
  work(ctx);
  adead::ProfileReport report = profile.finish();
  std::cout << report.totals[0].name << adead::profile_table(profile);  // profile_json, profile_trace
  // [end]
  check(report.totals.size() == 1, "the profile");
}

void messages() {
  // [guide: log]
  adead::set_logger([](adead::LogLevel level, std::string_view target, std::string_view text) {  // <adead/log.hpp>
    std::cerr << adead::name(level) << ' ' << target << ' ' << text << '\n';
  });                                                // info by default; the level is the second argument
  adead::set_logger({});                             // remove the function
  // [end]
}

}  // namespace

int main() {
  messages();
  adead::Context ctx("cpu");
  copies(ctx);
  options_of_operations(ctx);
  interrupts(ctx);
  profiles(ctx);
}
