// Two copies of the runtime in one process: the one that this program is linked with, shared or static, and another that is
// loaded beside it. Each has its own threads, errors and memory; both compute the same bits, at the same time.
//
//   copies LIBRARY     a file that the program is not linked with
#include "check.hpp"

#include <dlfcn.h>

#include <atomic>
#include <thread>

using namespace adead;

namespace {

void *library;

/// A function of the other copy.
template <class F>
F *other(const char *name, F *own) {
  F *found = reinterpret_cast<F *>(dlsym(library, name));
  if (!found) stop(__FILE__, __LINE__, name, dlerror());
  if (found == own) stop(__FILE__, __LINE__, name, "is the same in both: it is one copy");
  return found;
}
#define OTHER(function) other(#function, function)

}  // namespace

int main(int argc, char **argv) {
  if (argc != 2) stop(__FILE__, __LINE__, "usage", "copies LIBRARY");
  Context ctx = OK(Context::open("cpu"));
  library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (!library) stop(__FILE__, __LINE__, argv[1], dlerror());

  auto open = OTHER(adead_context_open);
  auto close = OTHER(adead_context_destroy);
  auto create = OTHER(adead_tensor_create);
  auto destroy = OTHER(adead_tensor_destroy);
  auto matmul = OTHER(adead_tensor_matmul);
  auto softmax = OTHER(adead_tensor_softmax);
  auto read = OTHER(adead_tensor_read);
  auto last_error = OTHER(adead_last_error);
  auto contract = OTHER(adead_contract_version);
  CHECK(!std::strcmp(contract(), contract_version()));

  // Errors of one are not seen by the other.
  adead_context *theirs = nullptr;
  CHECK(open("nowhere", nullptr, &theirs) != ADEAD_OK && std::strstr(last_error(), "nowhere"));
  CHECK(!std::strstr(adead_last_error(), "nowhere"));
  FAILS(InvalidArgument, invalid_argument, "elsewhere", Context::open("elsewhere"));
  CHECK(std::strstr(last_error(), "nowhere") && !std::strstr(last_error(), "elsewhere"));

  // Both at work at once, each with its own threads.
  CHECK(open("cpu", nullptr, &theirs) == ADEAD_OK);
  constexpr std::size_t n = 192;
  const std::size_t dims[] = {n, n};
  std::vector<float> values = some_values(n * n, 3);
  Tensor x = OK(ctx.tensor({n, n}, values));
  std::vector<float> expected = OK(OK(ctx.softmax(OK(ctx.matmul(x, x)))).to_vector<float>());
  std::atomic<bool> good{true};
  std::thread ours([&] {
    for (int i = 0; i < 50; i++) {
      if (OK(OK(ctx.softmax(OK(ctx.matmul(x, x)))).to_vector<float>()) != expected) good = false;
    }
  });
  for (int i = 0; i < 50; i++) {
    adead_tensor *a = nullptr, *product = nullptr, *y = nullptr;
    std::vector<float> got(n * n);
    const std::size_t bytes = n * n * sizeof(float);
    if (create(ADEAD_DTYPE_F32, dims, 2, values.data(), bytes, &a) || matmul(theirs, a, a, nullptr, &product) ||
        softmax(theirs, product, -1, &y) || read(y, got.data(), bytes) || got != expected) {
      good = false;
    }
    destroy(a);
    destroy(product);
    destroy(y);
  }
  ours.join();
  CHECK(good);
  close(theirs);
  // The other one gone, this one goes on. (The library stays mapped: its threads may be parked in it.)
  CHECK(!dlclose(library));
  CHECK(OK(OK(ctx.softmax(OK(ctx.matmul(x, x)))).to_vector<float>()) == expected);
  std::puts("ok");
}
