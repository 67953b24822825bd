// The C++ API on a GPU, software or not: kernels, dispatches, recordings, and exceptions that pass through them.
#include "check.hpp"

#include <string>

using namespace adead;

namespace {

constexpr std::uint32_t n = 1000;
const Groups groups = {(n + 255) / 256, 1, 1};

void kernels(const Context &gpu) {
  Kernel vecadd = OK(gpu.load_spirv(KERNELS "/vecadd.spv")), reduce = OK(gpu.load_spirv(std::string(KERNELS) + "/reduce.spv"));
  KernelDetails details = OK(vecadd.info());
  CHECK(details.name == "main" && details.push_bytes == 4 && details.workgroup == Groups{256, 1, 1});
  CHECK(details.parameters.size() == 3 && details.parameters[1].readonly && !details.parameters[2].readonly);
  CHECK(details.parameters[2].binding == 2 && details.parameters[2].stride == 4);
  Kernel small = OK(gpu.create_pipeline(reduce, nullptr, {{0, 64}}));
  CHECK(OK(small.info()).workgroup[0] == 64);
  FAILS(InvalidArgument, invalid_argument, "constant 99", gpu.create_pipeline(reduce, nullptr, {{99, 1}}));
  FAILS(InvalidKernel, invalid_kernel, "SPIR-V", gpu.load_spirv("nonsense", 8));
  // From its source, with the compiler's message, if there is one.
  const char *empty = "#version 450\nlayout(local_size_x = 32) in;\nvoid main() {}\n";
  if (std::system("glslangValidator --version >/dev/null 2>&1") == 0) {
    CHECK(OK(OK(gpu.compile_kernel(empty)).info()).workgroup[0] == 32);
    FAILS(InvalidKernel, invalid_kernel, "wrong.comp:1:", gpu.compile_kernel("wrong", "wrong.comp"));
  }
  FAILS(Unsupported, unsupported, "cuda", gpu.load_ptx(KERNELS "/vecadd.ptx"));
  FAILS(Unsupported, unsupported, "cuda", gpu.load_ptx("nonsense", 8));
  FAILS(Unsupported, unsupported, "cuda", gpu.load_cubin("nonsense", 8));
  FAILS(Io, io, "nowhere", gpu.load_cubin("nowhere"));
}

void dispatches(const Context &gpu) {
  Kernel vecadd = OK(gpu.load_spirv(KERNELS "/vecadd.spv"));
  std::vector<float> x = some_values(n, 1), y = some_values(n, 2), sums;
  for (std::uint32_t i = 0; i < n; i++) sums.push_back(x[i] + y[i]);
  Buffer a = OK(gpu.buffer(x)), b = OK(gpu.buffer(y)), c = OK(gpu.buffer_zeroed(4 * n));
  OK(gpu.dispatch(vecadd, {a, b, c}, groups, n));
  OK(gpu.wait());
  CHECK(OK(c.to_vector<float>()) == sums);
  FAILS(InvalidArgument, invalid_argument, "push constants", gpu.dispatch(vecadd, {a, b, c}, groups));
  FAILS(InvalidArgument, invalid_argument, "got 2", gpu.dispatch(vecadd, {a, b}, groups, n));

  Stream stream = OK(gpu.stream()), other = OK(gpu.stream(Priority::high));
  OK(stream.dispatch(vecadd, {c, a, c}, groups, n));
  OK(other.wait_event(OK(stream.event())));
  Download download = OK(other.download(c, 0, 4));
  float first = 0;
  OK(download.read(&first, 4));
  CHECK(OK(download.query()) && first == sums[0] + x[0]);
}

/// Streams that wait for each other and go as soon as their work is seen to be done: their driver may still be letting go.
void short_streams(const Context &gpu) {
  Kernel vecadd = OK(gpu.load_spirv(KERNELS "/vecadd.spv"));
  Buffer a = OK(gpu.buffer(std::vector<float>(n, 1.f))), b = OK(gpu.buffer_zeroed(4 * n));
  for (int i = 1; i <= 300; i++) {
    Stream first = OK(gpu.stream()), second = OK(gpu.stream());
    OK(first.dispatch(vecadd, {a, b, b}, groups, n));
    OK(second.wait_event(OK(first.event())));
    Download download = OK(second.download(b, 0, 4));
    float got = 0;
    OK(download.read(&got, 4));
    CHECK(got == static_cast<float>(i));
  }
}

/// Work that is recorded from a callback; what goes wrong in it comes out, and the stream goes on.
void recordings(const Context &gpu) {
  Kernel vecadd = OK(gpu.load_spirv(KERNELS "/vecadd.spv"));
  std::vector<float> ones(n, 1.f);
  Buffer one = OK(gpu.buffer(ones)), sum = OK(gpu.buffer_zeroed(4 * n));
  Stream stream = OK(gpu.stream());
  auto add = [&](Stream &to) { return to.dispatch(vecadd, {sum, one, sum}, groups, n); };
  Recording recording = OK(stream.record(add));
  Timestamp before = OK(stream.timestamp());
  for (int i = 0; i < 10; i++) OK(stream.replay(recording));
  Timestamp after = OK(stream.timestamp());
  OK(stream.sync());
  CHECK(OK(sum.to_vector<float>())[n - 1] == 10 && OK(after.since(before)).count() >= 0);

  FAILS(InvalidArgument, invalid_argument, "got 1",
        stream.record([&](Stream &to) { return to.dispatch(vecadd, {sum}, groups, n); }));
#ifndef ADEAD_NO_EXCEPTIONS
  struct Own {
    int number;
  };
  bool caught = false;
  try {
    stream.record([&](Stream &to) {
      add(to);
      throw Own{7};
    });
  } catch (const Own &own) {
    caught = own.number == 7;
  }
  CHECK(caught);
#endif
  // Nothing of what failed runs, and nothing is still being recorded.
  OK(stream.sync());
  CHECK(OK(sum.to_vector<float>())[0] == 10);
  OK(stream.record_begin());
  OK(add(stream));
  Recording again = OK(stream.record_end());
  OK(stream.replay(again));
  OK(stream.sync());
  CHECK(OK(sum.to_vector<float>())[0] == 11);
}

void bits(const Context &gpu) {
  Context cpu = OK(Context::open("cpu"));
  Tensor x = OK(cpu.tensor({33, 65}, some_values(33 * 65, 7))), w = OK(cpu.tensor({65, 17}, some_values(65 * 17, 8)));
  CHECK(same(OK(gpu.softmax(OK(gpu.matmul(x, w)))), OK(cpu.softmax(OK(cpu.matmul(x, w))))));
}

/// Results stay where they were computed, and whoever reads gets the same bits.
void residence(const Context &others) {
  std::string name = OK(others.device()).id;
  const char *id = name.c_str();
  Context gpu = OK(Context::open(id)), cpu = OK(Context::open("cpu"));
  Tensor x = OK(gpu.tensor({40, 50}, some_values(2000, 9)));
  Tensor y = OK(gpu.relu(x));
  CHECK(OK(x.is_on("cpu")) && OK(x.is_on(id)) && OK(y.is_on(id)) && !OK(y.is_on("cpu")) && !OK(y.is_on("nowhere")));
  Tensor z = OK(gpu.add(y, x)), part = OK(z.reshape({50, 40}));
  TensorCacheUse now = OK(gpu.tensor_cache(id));
  CHECK(now.hits == 2 && now.misses == 1 && now.tensors == 3 && now.used == 24000 && now.evictions == 0);
  CHECK(OK(part.is_on(id)) && !OK(part.is_on("cpu")));
  OK(part.to_cpu());
  Tensor expected = OK(cpu.add(OK(cpu.relu(x)), x));
  CHECK(same(z, expected) && OK(z.is_on("cpu")) && OK(part.is_on("cpu")) && !OK(y.is_on("cpu")));
  Tensor other = OK(cpu.tensor({2000}, some_values(2000, 10)));
  OK(gpu.to(other, id));
  CHECK(OK(other.is_on(id)));
  OK(gpu.to(y, "cpu"));
  FAILS(InvalidArgument, invalid_argument, "no device 'cuda:77'", gpu.to(x, "cuda:77"));
  FAILS(InvalidArgument, invalid_argument, "cuda:77", gpu.tensor_cache("cuda:77"));
  OK(gpu.set_tensor_cache(0));
  CHECK(OK(gpu.tensor_cache(id)).tensors == 0 && OK(gpu.tensor_cache(id)).evictions == 4 && !OK(x.is_on(id)));
  CHECK(same(y, OK(cpu.relu(x))));
  // Longer than the context that made it.
  std::optional<Context> short_lived = OK(Context::open(id));
  Tensor last = OK(short_lived->neg(y));
  short_lived.reset();
  CHECK(OK(last.is_on(id)) && same(last, OK(cpu.neg(y))));
}

#ifdef ADEAD_NO_EXCEPTIONS
std::optional<Context> open() {
  Result<Context> gpu = Context::open_gpu();
  if (gpu.status() == Status::backend_unavailable) return std::printf("skipped: %s\n", gpu.message()), std::nullopt;
  return OK(std::move(gpu));
}
#else
std::optional<Context> open() {
  try {
    return Context::open_gpu();
  } catch (const BackendUnavailable &error) {
    return std::printf("skipped: %s\n", error.what()), std::nullopt;
  }
}
#endif

}  // namespace

int main() {
  std::optional<Context> gpu = open();
  if (!gpu) return 77;
  CHECK(OK(gpu->device()).kind != DeviceKind::cpu && !OK(gpus()).empty() && !OK(gpu_backends(0)).empty());
  kernels(*gpu);
  dispatches(*gpu);
  short_streams(*gpu);
  recordings(*gpu);
  bits(*gpu);
  residence(*gpu);
  std::puts("ok");
}
