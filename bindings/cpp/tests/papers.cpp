// The first papers: each call that they name does what its name says, with their program as they have it. Kernels run on the GPU that
// ADEAD_TEST_DEVICE names, else on the best one through Vulkan; without one that part is skipped.
#include "check.hpp"

#include <cmath>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>

using namespace adead;

namespace {

void machine(const Context &cpu) {
  Hardware report = OK(hardware());
  CHECK(report.recommended == Mode::cpu || report.recommended == Mode::gpu || report.recommended == Mode::hybrid);
  CHECK(report.cpu_threads >= 1 && report.memory_total > 0);
  CHECK(OK(cpu.device()).id == "cpu" && OK(cpu.select(1024)) == 0);
}

void chained(const Context &cpu) {
  Tensor x = OK(cpu.tensor({1, 2}, {1.f, -2.f})), w1 = OK(cpu.tensor({2, 2}, {1.f, 0.f, 0.f, 1.f}));
  Tensor w2 = OK(cpu.tensor({2, 1}, {2.f, 3.f}));
  Tensor y = OK(cpu.pipeline().matmul(x, w1).relu().matmul(w2).execute());
  CHECK(same(y, OK(cpu.tensor({1, 1}, {2.f}))));
  CHECK(OK(cpu.explain(Op::matmul, {&x, &w1})).id == "cpu");
}

void programs(const Context &cpu) {
  const char *path = KERNELS "/../programs/mlp.adead";
  std::ifstream file(path, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  Program program = OK(Program::decode(bytes.data(), bytes.size()));
  CHECK(OK(program.length()) > 0 && OK(OK(Program::load(path)).length()) == OK(program.length()));
  Tensor x = OK(cpu.zeros(DType::f32, {2, 4}));
  Outcome outcome = OK(cpu.run(program, {{"x", x}}));
  CHECK(OK(OK(outcome.output("p")).shape()).size() == 2);
}

void layouts() {
  std::vector<float> data = some_values(64 * 96, 1);
  Layout tiles = OK(Layout::optimize_matrix(sizeof(float), 64, 96, 32));
  std::vector<float> tiled = OK(tiles.arrange(data));
  CHECK(tiled.size() == data.size() && !std::memcmp(&tiled[32], &data[96], sizeof(float)));
  std::vector<float> back = OK(tiles.restore(tiled));
  CHECK(!std::memcmp(back.data(), data.data(), data.size() * sizeof(float)));
  CHECK(OK(OK(Layout::align(sizeof(float), 1, 10, 64)).arrange(std::vector<float>(10, 1.f))).size() == 16);
  std::vector<float> fields = OK(OK(Layout::coalesce(sizeof(float), 4, 2)).arrange(std::vector<float>{0, 1, 2, 3}));
  CHECK(fields[1] > 1.5f && fields[2] < 1.5f);
}

/// Buffers, streams and events are there on every device.
void order(const Context &ctx) {
  Buffer x = OK(ctx.buffer_zeroed(2 * sizeof(float))), y = OK(ctx.buffer_zeroed(2 * sizeof(float)));
  OK(x.write(0, std::vector<float>{-1.f, 2.f}));
  Stream stream = OK(ctx.stream()), other = OK(ctx.stream());
  OK(stream.run(Op::relu, {{x, DType::f32, {2}}}, {y, DType::f32, {2}}));
  Event event = OK(stream.event()), fence = OK(ctx.event());
  OK(other.wait_event(event));
  OK(event.wait());
  OK(fence.wait());
  OK(other.sync());
  OK(ctx.wait());
  std::vector<float> found = OK(y.to_vector<float>());
  CHECK(std::abs(found[0]) < 0.5f && found[1] > 1.5f);
  OK(y.free());
  FAILS(InvalidArgument, invalid_argument, "freed", y.to_vector<float>());
}

void their_program(const Context &gpu) {
  constexpr std::size_t side = 512;
  const bool cuda = OK(gpu.device()).id.rfind("cuda", 0) == 0;
  std::vector<float> data_a = some_values(side * side, 3), data_b = some_values(side * side, 4);
  Kernel loaded = cuda ? OK(gpu.load_ptx(KERNELS "/matmul.ptx")) : OK(gpu.load_spirv(KERNELS "/matmul.spv"));
  Kernel matmul = OK(gpu.create_pipeline(loaded, nullptr));
  Buffer a = OK(gpu.buffer(data_a)), b = OK(gpu.buffer(data_b)), c = OK(gpu.buffer_zeroed(side * side * sizeof(float)));
  OK(gpu.dispatch(matmul, {a, b, c}, {32, 32, 1}));
  OK(gpu.wait());
  std::vector<float> result = OK(c.to_vector<float>());
  CHECK(result.size() == side * side);
  for (std::size_t i = 0; i < side; i++) {
    for (std::size_t j = 0; j < side; j++) {
      double exact = 0;
      for (std::size_t k = 0; k < side; k++) exact += static_cast<double>(data_a[i * side + k]) * data_b[k * side + j];
      CHECK(std::abs(result[i * side + j] - exact) < 1e-3);
    }
  }
}

Returned<Context> best() {
  const char *device = std::getenv("ADEAD_TEST_DEVICE");
  return device ? Context::open(device) : Context::open_gpu();
}

#ifdef ADEAD_NO_EXCEPTIONS
std::optional<Context> open() {
  Result<Context> gpu = best();
  if (gpu.status() == Status::backend_unavailable) return std::printf("skipped: %s\n", gpu.message()), std::nullopt;
  return OK(std::move(gpu));
}
#else
std::optional<Context> open() {
  try {
    return best();
  } catch (const BackendUnavailable &error) {
    return std::printf("skipped: %s\n", error.what()), std::nullopt;
  }
}
#endif

}  // namespace

int main() {
  Context cpu = OK(Context::open("cpu"));
  machine(cpu);
  chained(cpu);
  programs(cpu);
  layouts();
  order(cpu);
  std::optional<Context> gpu = open();
  if (!gpu) return 77;
  order(*gpu);
  their_program(*gpu);
  std::puts("ok");
}
