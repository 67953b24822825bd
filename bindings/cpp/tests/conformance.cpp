// The conformance cases through the C++ API: tests/conformance/FORMAT.md, bit for bit. Every case runs by its operation's
// number, and, where its operands and attributes can be written so, by its operation's own method too. So do a pipeline's.
//
//   conformance [--list] FOLDER|FILE.txt [ID-PREFIX ...]
#include "../../c/tests/cases.h"
#include "check.hpp"
#include "typed.hpp"

#include <string>

using namespace adead;

namespace {

const Context *context;
std::size_t ran, pipelines, by_method, recorded_by_method, recorded_by_number;

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
  // Not every number below an enum's largest is one of its values.
  for (int i = 0; i < 256; i++) {
    const char *value = name(static_cast<E>(i));
    if (value && !std::strcmp(value, text)) return to = static_cast<E>(i), true;
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

/// Whether a call ended as it is to; if not, a failure is reported.
bool ended(const char *id, const char *error, const std::string &status, const std::string &text) {
  const char *expected = error ? error : "ok";
  if (status == expected) return true;
  fail(id, expected, status == "ok" ? "ok" : text.c_str());
  return false;
}

void check_tensor(const char *id, const value *out, const Tensor &result) {
  auto shape = OK(result.shape());
  auto bytes = OK(result.bytes());
  check_result(id, out, static_cast<adead_dtype>(OK(result.dtype())), shape.data(), shape.size(), bytes.data(), bytes.size());
}

void check(const test_case *c, const std::string &status, const std::string &text, const Tensor &result) {
  if (ended(c->id, c->error, status, text) && !c->error) check_tensor(c->id, &c->out, result);
}

/// A call's result, or an empty one.
template <class T = Tensor, class Call>
T result_of(Call call, std::string &status, std::string &text) {
  T result;
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

Tensor tensor_of(const value *v, std::string &status, std::string &text) {
  elements e = read_value(v);
  Tensor result = result_of(
      [&] { return context->tensor(static_cast<DType>(e.dtype), {e.dims, e.rank}, e.data, e.bytes); }, status, text);
  std::free(e.data);
  return result;
}

/// What of attributes an operation's options have room and a type for.
struct Options {
  const char *const (*attrs)[2];
  std::size_t count, used = 0;
  bool expressible = true;

  template <class T>
  void operator()(const char *name, T &to) {
    for (std::size_t i = 0; i < count; i++) {
      if (!std::strcmp(attrs[i][0], name)) used++, expressible &= word(attrs[i][1], to);
    }
  }
  bool said() const { return expressible && used == count; }
};

/// Attributes from their texts; why they are none.
std::string set(Attrs &attrs, Op op, const char *const (*texts)[2], std::size_t count, std::string &text) {
  std::string status = "ok";
  for (std::size_t i = 0; status == "ok" && i < count; i++) {
    status = status_of([&]() -> decltype(auto) {
#ifdef ADEAD_NO_EXCEPTIONS
      return attrs.set(op, texts[i][0], texts[i][1]);
#else
      return attrs.set(op, texts[i][0], texts[i][1]), 0;
#endif
    }, &text);
  }
  return status;
}

/// Records a pipeline, its inputs as inputs, or, where they are a run's, as constants; then by its operations' own methods.
std::string record(Pipeline &pipeline, const pipeline_case *p, const pipeline_run *executed, std::string &text) {
  std::vector<Value> values;
  std::vector<Tensor> tensors(p->value_count);
  std::string status = "ok";
  std::size_t inputs = 0;
  for (std::size_t i = 0; status == "ok" && i < p->value_count; i++) {
    const recorded_value &v = p->values[i];
    if (v.source == VALUE_INPUT && !executed) {
      elements e = read_value(&v.given);
      std::free(e.data);
      pipeline.input(static_cast<DType>(e.dtype), {e.dims, e.rank});
    } else if (v.source == VALUE_INPUT || v.source == VALUE_CONSTANT) {
      tensors[i] = tensor_of(v.source == VALUE_INPUT ? &executed->inputs[inputs++] : &v.given, status, text);
      pipeline.begin(tensors[i]);
    } else if (v.source == VALUE_RESHAPE) {
      std::size_t dims[ADEAD_MAX_RANK], rank = read_shape(v.given.shape, dims);
      pipeline.begin(values[static_cast<std::size_t>(v.operands[0])]).reshape({dims, rank});
    } else {
      std::optional<Op> op;
      if (!word(v.op, op)) fatal(v.op, "no such operation");
      std::vector<PipelineOperand> operands;
      for (std::size_t j = 0; j < v.operand_count; j++) {
        auto at = static_cast<std::size_t>(v.operands[j]);
        if (v.operands[j] < 0) operands.emplace_back(Value());
        else if (executed && !p->by_count && p->values[at].source <= VALUE_CONSTANT) operands.emplace_back(tensors[at]);
        else operands.emplace_back(values[at]);
      }
      auto in = [&](std::size_t j) { return j < operands.size() && v.operands[j] >= 0 ? &operands[j] : nullptr; };
      Options options{v.attrs, v.attr_count};
      if (executed && fits(*op, v.operand_count, in) &&
          recorded(pipeline, *op, v.operand_count, in, std::ref(options), [&] { return options.said(); })) {
        recorded_by_method++;
      } else {
        recorded_by_number += executed != nullptr;
        Attrs attrs;
        status = set(attrs, *op, v.attrs, v.attr_count, text);
        if (status == "ok") pipeline.op(*op, operands, attrs);
      }
    }
    values.push_back(pipeline.value());
  }
  for (std::size_t i = 0; status == "ok" && i < p->give_count; i++) pipeline.begin(values[p->gives[i]]).output();
  if (status != "ok" || !p->by_count) return status;
  std::vector<Value> by;
  for (std::size_t i = 0; i < p->by_count; i++) by.push_back(values[p->by[i]]);
  auto gradients = result_of<std::vector<Value>>([&] { return pipeline.gradients(by); }, status, text);
  // A copy, as a gradient may be a constant, which a pipeline does not give.
  for (const Value &one : gradients) pipeline.begin(one).scale().output();
  return status;
}

void run_pipeline(const test_case *c) {
  const pipeline_case *p = c->pipeline;
  pipelines++;
  std::string refused_text;
  Pipeline pipeline = context->pipeline();
  std::string refused = record(pipeline, p, nullptr, refused_text);
  Compiled compiled;
  if (refused == "ok") compiled = result_of<Compiled>([&] { return pipeline.compile(); }, refused, refused_text);
  for (std::size_t i = 0; i < p->run_count; i++) {
    const pipeline_run *run = &p->runs[i];
    std::string status = refused, text = refused_text, where = c->id + (", run " + std::to_string(i)) + ", compiled";
    std::vector<Tensor> inputs, outputs;
    for (std::size_t j = 0; status == "ok" && j < run->input_count; j++) {
      inputs.push_back(tensor_of(&run->inputs[j], status, text));
    }
    std::vector<std::reference_wrapper<const Tensor>> given(inputs.begin(), inputs.end());
    if (status == "ok") outputs = result_of<std::vector<Tensor>>([&] { return compiled.run_all(given); }, status, text);
    if (ended(where.c_str(), run->error, status, text) && !run->error) {
      std::string count = std::to_string(outputs.size());
      if (outputs.size() != run->output_count) return fail(where.c_str(), "another number of outputs", count.c_str());
      for (std::size_t j = 0; j < outputs.size(); j++) check_tensor(where.c_str(), &run->outputs[j], outputs[j]);
    }
    if (!fits_recording(p, run)) continue;
    // Executed it gives the last one.
    Pipeline again = context->pipeline();
    Tensor last;
    where = c->id + (", run " + std::to_string(i)) + ", executed";
    status = record(again, p, run, text);
    if (status == "ok") last = result_of([&] { return again.execute(); }, status, text);
    if (ended(where.c_str(), run->error, status, text) && !run->error) {
      check_tensor(where.c_str(), &run->outputs[run->output_count - 1], last);
    }
  }
}

void run(const test_case *c) {
  ran++;
  if (c->pipeline) return run_pipeline(c);
  std::optional<Op> op;
  if (!word(c->op, op)) return fail(c->id, "an operation", c->op);
  std::vector<Tensor> tensors(c->operand_count);
  std::vector<const Tensor *> operands(c->operand_count, nullptr);
  std::string text, status = "ok";
  for (std::size_t i = 0; status == "ok" && i < c->operand_count; i++) {
    if (!c->operands[i].shape) continue;
    tensors[i] = tensor_of(&c->operands[i], status, text);
    operands[i] = &tensors[i];
  }
  Attrs attrs;
  if (status == "ok") status = set(attrs, *op, c->attrs, c->attr_count, text);
  Tensor result;
  if (status == "ok") result = result_of([&] { return context->run(*op, operands, attrs); }, status, text);
  check(c, status, text, result);

  // The operation's own method has parameters for what the operation has, and no other.
  auto in = [&](std::size_t i) { return i < operands.size() ? operands[i] : nullptr; };
  if (!fits(*op, c->operand_count, in)) return;
  Options options{c->attrs, c->attr_count};
  result = result_of(
      [&]() -> Returned<Tensor> {
        // Methods of contexts and of tensors by turns.
        return typed(*context, *op, c->operand_count, in, std::ref(options), by_method % 2 == 1);
      },
      status, text);
  // An attribute that the method has no name for, or a value that it has no type for: only text can say it.
  if (!options.said()) return;
  by_method++;
  check(c, status, text, result);
}

void list(const test_case *c) { std::puts(c->id); }

}  // namespace

int main(int argc, char **argv) {
  bool listing = argc > 1 && !std::strcmp(argv[1], "--list");
  char **arguments = argv + 1 + listing;
  if (!*arguments) fatal(nullptr, "usage: conformance [--list] FOLDER|FILE.txt [ID-PREFIX ...]");
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
    std::printf("%zu of %zu operations of pipelines by their own method\n", recorded_by_method,
                recorded_by_method + recorded_by_number);
    std::printf("%zu ran, %zu failed, 0 skipped\n", ran, failures);
    if (by_method < (ran - pipelines) / 2 || recorded_by_method < recorded_by_number) {
      fatal(nullptr, "too few operations ran by their own method");
    }
  }
  return failures > 0;
}
