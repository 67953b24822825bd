// What is made and dropped 100,000 times leaves no memory behind: handles, results, and errors.
#include "check.hpp"

#include <unistd.h>

using namespace adead;

namespace {

std::size_t resident() {
  unsigned long pages = 0, all = 0;
  std::FILE *file = std::fopen("/proc/self/statm", "r");
  CHECK(file && std::fscanf(file, "%lu %lu", &all, &pages) == 2);
  std::fclose(file);
  return pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

/// 100,000 cycles after 10,000 to get into the swing; what they added must be less than six bytes each.
template <class Cycle>
void flat(const char *what, Cycle cycle, int cycles = 100000) {
  for (int i = 0; i < cycles / 10; i++) cycle();
  std::size_t before = resident();
  for (int i = 0; i < cycles; i++) cycle();
  std::size_t after = resident(), grown = after > before ? after - before : 0;
  std::printf("%-28s %7d cycles: %zu KB, %zu KB more\n", what, cycles, after / 1024, grown / 1024);
  if (grown > 512 * 1024) stop(__FILE__, __LINE__, what, "keeps memory");
}

}  // namespace

int main() {
  Context ctx = OK(Context::open("cpu"));
  Tensor x = OK(ctx.tensor({4, 4}, some_values(16, 1))), wide = OK(ctx.zeros(DType::f32, {7}));
  Program program = OK(Program::assemble(".adead 1\ninput a f32[4,4]\noutput c f32[4,4]\nc = relu a\nhalt\n"));
  std::string file = OK(program.encode(Format::adead));
  flat("tensors", [&] { OK(OK(ctx.tensor({4}, {1.f, 2.f, 3.f, 4.f})).clone()); });
  flat("operations", [&] { OK(ctx.softmax(OK(ctx.matmul(x, x)), {0})); });
  flat("errors", [&] { FAILS(ShapeMismatch, shape_mismatch, "[7]", x + wide); });
  flat("packed matrices", [&] { OK(OK(ctx.pack(x)).matmul(x)); });
  flat("contexts", [] { OK(Context::open("cpu")); });
  flat("buffers", [&] { OK(ctx.buffer_zeroed(64)); });
  Buffer a = OK(ctx.buffer_zeroed(64)), b = OK(ctx.buffer_zeroed(64));
  flat("streams, events, downloads", [&] {
    Stream stream = OK(ctx.stream());
    OK(stream.run(Op::relu, {{a, DType::f32, {16}}}, {b, DType::f32, {16}}));
    Event event = OK(stream.event());
    Download download = OK(stream.download(b, 0, 64));
    Timestamp time = OK(stream.timestamp());
    OK(event.wait());
  });
  flat("programs and runs", [&] {
    Program again = OK(Program::decode(file.data(), file.size()));
    OK(OK(ctx.run(again, {{"a", x}})).output("c"));
  });
  flat("allocators and arenas", [] {
    Allocator allocator = OK(Allocator::create(64, 16));
    OK(allocator.alloc(100));
    Arena arena = OK(Arena::create());
    OK(arena.alloc(100, 8));
  });
  flat("layouts", [] { OK(OK(Layout::morton(4, 2, 2)).arrange(std::vector<float>{1, 2, 3, 4})); });
  std::puts("ok");
}
