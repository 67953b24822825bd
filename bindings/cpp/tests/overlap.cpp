// Batches through a device, several under way at once: the results are those of a plain loop, at every depth.
#include <adead/overlap.hpp>

#include "check.hpp"

#include <array>
#include <string>

using namespace adead;

namespace {

std::vector<float> floats(Span<const std::byte> bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

/// Each batch's relu, of another size now and then.
void batches(const Context &context) {
  std::vector<std::vector<float>> all;
  for (std::uint32_t i = 0; i < 20; i++) all.push_back(some_values(i % 7 == 6 ? 64 : 1000, i));
  for (std::size_t depth : {1u, 2u, 3u, 8u, 64u}) {
    std::size_t taken = 0;
    auto work = [&](Stage &stage) {
      std::size_t n = all[stage.index()].size();
      const Buffer *out = OK(stage.buffer(n * sizeof(float)));
      OK(stage.stream().run(Op::relu, {{stage.input(), DType::f32, {n}}}, {*out, DType::f32, {n}}));
      stage.result(*out, 0, n * sizeof(float));
    };
    OK(overlap(context, all, depth, work, [&](std::size_t index, const std::vector<std::byte> &bytes) {
      // Who wants a vector gets one.
      CHECK(index == taken++);
      std::vector<float> expected = all[index];
      for (float &value : expected) value = value > 0 ? value : 0;
      CHECK(floats({bytes.data(), bytes.size()}) == expected);
    }));
    CHECK(taken == all.size());
  }
}

/// A state that every batch changes, brought back each time: in order, though downloads run beside work.
void states(const Context &context) {
  const std::size_t n = 500;
  Buffer sum = OK(context.buffer_zeroed(n * sizeof(float)));
  std::vector<std::array<float, n>> all(12);
  for (std::size_t i = 0; i < all.size(); i++) all[i].fill(static_cast<float>(i));
  float expected = 0;
  OK(overlap(
      context, all, 4,
      [&](Stage &stage) {
        Operand state(sum, DType::f32, {n});
        OK(stage.stream().run(Op::add, {state, {stage.input(), DType::f32, {n}}}, state));
        stage.result(sum, 4, 8);
      },
      [&](std::size_t index, Span<const std::byte> bytes) {
        CHECK(reinterpret_cast<std::uintptr_t>(bytes.data()) % 8 == 0);
        expected += static_cast<float>(index);
        CHECK(floats(bytes) == std::vector<float>(2, expected));
      }));
  CHECK(expected == 66);
}

/// No result, no batch, nothing in a batch.
void nothing(const Context &context) {
  std::size_t taken = 0;
  auto take = [&](auto, const auto &bytes) { taken += bytes.empty(); };
  auto work = [](Stage &) {};
  OK(overlap(context, std::vector<std::vector<float>>(), 3, work, take));
  CHECK(taken == 0);
  OK(overlap(context, std::vector<std::vector<float>>{{1, 2}, {}, {3}}, 2, work, take));
  CHECK(taken == 3);
}

void errors(const Context &context) {
  std::vector<std::vector<float>> all(6, std::vector<float>(10, 1.f));
  std::size_t taken = 0;
  auto take = [&](std::size_t, const std::vector<std::byte> &) { taken++; };
  FAILS(InvalidArgument, invalid_argument, "the depth is 0", overlap(context, all, 0, [](Stage &) {}, take));
  FAILS(InvalidArgument, invalid_argument, "the depth is 65", overlap(context, all, 65, [](Stage &) {}, take));
  auto wrong = [&](Stage &stage) {
    // The fifth batch is not as long as is said.
    std::size_t n = stage.index() == 4 ? 11 : 10;
    return stage.stream().run(Op::relu, {{stage.input(), DType::f32, {n}}}, {stage.input(), DType::f32, {n}});
  };
  for (std::size_t depth : {1u, 2u, 3u, 8u}) {
    // In its batch's place: the results before it come, and no others.
    taken = 0;
    FAILS(InvalidArgument, invalid_argument, "bytes", overlap(context, all, depth, wrong, take));
    CHECK(taken == 4);
  }
  // The context is as good as before.
  taken = 0;
  OK(overlap(context, all, 2, [](Stage &) {}, take));
  CHECK(taken == 6);
}

/// Batches that know how many of them are under way, and may fail.
struct Counted {
  struct Iterator {
    Counted *of;
    std::size_t index;
    std::vector<float> operator*() const {
      // A batch is asked for when there is room for it.
      CHECK(of->asked - of->taken < of->depth);
      of->asked++;
#ifndef ADEAD_NO_EXCEPTIONS
      if (index == of->bad) throw std::runtime_error("no more tape");
#endif
      return std::vector<float>(10, static_cast<float>(index));
    }
    Iterator &operator++() {
      CHECK(of->asked - of->taken < of->depth);
      index++;
      return *this;
    }
    bool operator!=(const Iterator &other) const { return index != other.index; }
  };
  std::size_t depth, bad, asked = 0, taken = 0;
  Iterator begin() { return {this, 0}; }
  Iterator end() { return {this, 12}; }
};

/// At most so many under way; a taker that wants no more ends it.
void bounds(const Context &context) {
  auto back = [](Stage &stage) { stage.result(stage.input(), 0, 40); };
  for (std::size_t depth : {1u, 2u, 5u}) {
    Counted batches{depth, 12};
    OK(overlap(context, batches, depth, back, [&](std::size_t index, Span<const std::byte> bytes) {
      CHECK(index == batches.taken && floats(bytes) == std::vector<float>(10, static_cast<float>(index)));
      batches.taken++;
    }));
    CHECK(batches.taken == 12 && batches.asked == 12);
    Counted left{depth, 12};
    auto enough = [&](std::size_t index, Span<const std::byte>) -> Returned<void> {
      if (index == 3) return detail::failed<void>(ADEAD_IO, "enough");
      left.taken++;
      return Returned<void>();
    };
    FAILS(Io, io, "enough", overlap(context, left, depth, back, enough));
    CHECK(left.taken == 3 && left.asked == 3 + depth);
#ifndef ADEAD_NO_EXCEPTIONS
    Counted broken{depth, 7};
    bool caught = false;
    try {
      overlap(context, broken, depth, back, [&](std::size_t, Span<const std::byte>) { broken.taken++; });
    } catch (const std::runtime_error &error) {
      caught = !std::strcmp(error.what(), "no more tape");
    }
    CHECK(caught && broken.taken == 7);
    // A taker before it has the word.
    Counted both{depth, 7};
    auto stops = [&](std::size_t index, Span<const std::byte>) {
      if (index == 6) throw 6;
      both.taken++;
    };
    int thrown = 0;
    try {
      overlap(context, both, depth, back, stops);
    } catch (int number) {
      thrown = number;
    }
    CHECK(thrown == 6 && both.taken == 6);
#endif
  }
}

void everything(const Context &context) {
  batches(context);
  states(context);
  nothing(context);
  errors(context);
  bounds(context);
}

std::optional<Context> open(const char *device) {
#ifdef ADEAD_NO_EXCEPTIONS
  auto context = Context::open(device);
  if (context.ok()) return std::move(*context);
  std::printf("skipped: %s\n", context.message());
  return std::nullopt;
#else
  try {
    return Context::open(device);
  } catch (const BackendUnavailable &error) {
    std::printf("skipped: %s\n", error.what());
    return std::nullopt;
  }
#endif
}

}  // namespace

int main() {
  everything(*open("cpu"));
  if (auto gpu = open("vulkan")) everything(*gpu);
  std::puts("ok");
}
