// The conformance cases through the C++ API: tests/conformance/FORMAT.md, bit for bit. Every case runs by its operation's number,
// and, where its operands and attributes can be written so, by its operation's own method too.
//
//   conformance [--list] FOLDER [ID-PREFIX ...]
#include "../c/cases.h"
#include "check.hpp"
#include "typed.hpp"

#include <string>

using namespace adead;

namespace {

const Context *context;
std::size_t ran, by_method;

/// Why a call failed, or "ok".
template <class Call>
std::string status_of(Call call, std::string *text = nullptr) {
#ifdef ADEAD_NO_EXCEPTIONS
  auto result = call();
  if (text) *text = result.message();
  return name(result.status());
#else
  try {
    (void)call();
    return "ok";
  } catch (const Error &error) {
    if (text) *text = error.what();
    return name(error.status());
  }
#endif
}

template <class E>
bool word(const char *text, std::optional<E> &to) {
  for (int i = 0; name(static_cast<E>(i)); i++) {
    if (!std::strcmp(name(static_cast<E>(i)), text)) return to = static_cast<E>(i), true;
  }
  return false;
}
bool word(const char *text, std::optional<bool> &to) {
  if (std::strcmp(text, "0") && std::strcmp(text, "1")) return false;
  to = *text == '1';
  return true;
}
bool word(const char *text, std::optional<std::int32_t> &to) {
  char *end;
  if (!std::strcmp(text, "all")) return to = all_axes, true;
  to = static_cast<std::int32_t>(std::strtol(text, &end, 10));
  return !*end;
}
bool word(const char *text, std::optional<float> &to) {
  if (std::strncmp(text, "0x", 2) || std::strlen(text) != 10) return false;
  auto bits = static_cast<std::uint32_t>(std::strtoul(text + 2, nullptr, 16));
  float value;
  std::memcpy(&value, &bits, 4);
  to = value;
  return true;
}
bool word(const char *text, Permutation &to) {
  std::vector<std::int32_t> axes;
  for (char *end; *text; text = *end ? end + 1 : end) axes.push_back(static_cast<std::int32_t>(std::strtol(text, &end, 10)));
  to = Permutation(std::move(axes));
  return true;
}

void check(const test_case *c, const std::string &status, const std::string &text, const Tensor &result) {
  const char *expected = c->error ? c->error : "ok";
  if (status != expected) {
    fail(c->id, expected, status == "ok" ? "ok" : text.c_str());
  } else if (!c->error) {
    auto shape = OK(result.shape());
    auto bytes = OK(result.bytes());
    check_result(c->id, &c->out, static_cast<adead_dtype>(OK(result.dtype())), shape.data(), shape.size(), bytes.data(), bytes.size());
  }
}

/// A call's result, or an empty tensor.
template <class Call>
Tensor result_of(Call call, std::string &status, std::string &text) {
  Tensor result;
  status = status_of(
      [&] {
#ifdef ADEAD_NO_EXCEPTIONS
        auto got = call();
        if (got.ok()) result = std::move(*got);
        return got;
#else
        result = call();
        return 0;
#endif
      },
      &text);
  return result;
}

void run(const test_case *c) {
  ran++;
  std::optional<Op> op;
  if (!word(c->op, op)) return fail(c->id, "an operation", c->op);
  std::vector<Tensor> tensors(c->operand_count);
  std::vector<const Tensor *> operands(c->operand_count, nullptr);
  std::string text, status = "ok";
  for (std::size_t i = 0; status == "ok" && i < c->operand_count; i++) {
    if (!c->operands[i].shape) continue;
    elements e = read_value(&c->operands[i]);
    tensors[i] = result_of(
        [&] { return context->tensor(static_cast<DType>(e.dtype), {e.dims, e.rank}, e.data, e.bytes); }, status, text);
    std::free(e.data);
    operands[i] = &tensors[i];
  }
  Attrs attrs;
  for (std::size_t i = 0; status == "ok" && i < c->attr_count; i++) {
    status = status_of([&]() -> decltype(auto) {
#ifdef ADEAD_NO_EXCEPTIONS
      return attrs.set(*op, c->attrs[i][0], c->attrs[i][1]);
#else
      return attrs.set(*op, c->attrs[i][0], c->attrs[i][1]), 0;
#endif
    }, &text);
  }
  Tensor result;
  if (status == "ok") result = result_of([&] { return context->run(*op, operands, attrs); }, status, text);
  check(c, status, text, result);

  // The operation's own method has parameters for what the operation has, and no other.
  bool expressible = true;
  std::size_t used = 0;
  auto in = [&](std::size_t i) { return i < operands.size() ? operands[i] : nullptr; };
  auto attr = [&](const char *name, auto &to) {
    for (std::size_t i = 0; i < c->attr_count; i++) {
      if (!std::strcmp(c->attrs[i][0], name)) used++, expressible &= word(c->attrs[i][1], to);
    }
  };
  if (!fits(*op, c->operand_count, in)) return;
  result = result_of(
      [&]() -> Returned<Tensor> {
        return typed(*context, *op, c->operand_count, in, attr);
      },
      status, text);
  // An attribute that the method has no name for, or a value that it has no type for: only text can say it.
  if (!expressible || used != c->attr_count) return;
  by_method++;
  check(c, status, text, result);
}

void list(const test_case *c) { std::puts(c->id); }

}  // namespace

int main(int argc, char **argv) {
  bool listing = argc > 1 && !std::strcmp(argv[1], "--list");
  char **arguments = argv + 1 + listing;
  if (!*arguments) fatal(nullptr, "usage: conformance [--list] FOLDER [ID-PREFIX ...]");
  std::optional<Context> opened;
  if (!listing) {
    std::string text, status = status_of([&] {
#ifdef ADEAD_NO_EXCEPTIONS
      auto got = Context::open();
      if (got.ok()) opened.emplace(std::move(*got));
      return got;
#else
      opened.emplace();
      return 0;
#endif
    }, &text);
    if (status == "backend_unavailable") {
      std::printf("skipped: %s\n", text.c_str());
      return 77;
    }
    if (status != "ok") fatal(nullptr, text.c_str());
    context = &*opened;
  }
  each_case(*arguments, arguments + 1, listing ? list : run);
  if (!listing) {
    std::printf("%zu of them by their operation's own method\n", by_method);
    std::printf("%zu ran, %zu failed, 0 skipped\n", ran, failures);
    if (by_method < ran / 2) fatal(nullptr, "too few cases ran by their operation's own method");
  }
  return failures > 0;
}
