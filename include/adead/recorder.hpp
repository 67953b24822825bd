// Fused pipelines: values, compiled pipelines, and the base of the generated methods.
#ifndef ADEAD_RECORDER_HPP
#define ADEAD_RECORDER_HPP

#include <adead/operations.hpp>

namespace adead {
inline namespace ADEAD_HPP_MODE {

/// A value of a pipeline: an input, a constant, or the result of an operation. Other pipelines refuse it.
class Value {
 public:
  Value() noexcept = default;
  explicit Value(adead_value raw) noexcept : raw_(raw) {}
  adead_value get() const noexcept { return raw_; }

 private:
  adead_value raw_ = ADEAD_NO_VALUE;
};

/// An operand of a pipeline's operation: a tensor, which becomes a constant, or an earlier value.
class PipelineOperand {
 public:
  PipelineOperand(const Tensor &tensor) noexcept : tensor_(&tensor) {}
  PipelineOperand(Value value) noexcept : value_(value) {}
  const Tensor *tensor() const noexcept { return tensor_; }
  Value value() const noexcept { return value_; }

 private:
  const Tensor *tensor_ = nullptr;
  Value value_;
};

/// What a pipeline was compiled to.
struct CompiledInfo {
  /// The numbers of input and output tensors.
  std::size_t inputs, outputs;
  /// The number of recorded operations that the outputs depend on, and of the steps that they became.
  std::size_t operations, steps;
  /// Bytes of the memory that intermediate values share. On a GPU it includes inputs and outputs.
  std::size_t memory;
  /// The device that it runs on: "cpu", "cuda:0".
  std::string device;
};

/// A pipeline that was planned for a device, to be run any number of times. Threads may share one.
class Compiled {
 public:
  Compiled() noexcept = default;
  Compiled(adead_compiled *raw, detail::Shared context) noexcept : handle_(raw), context_(std::move(context)) {}

  /// Runs it with its inputs, in the order in which they were recorded, and returns all outputs.
  Returned<std::vector<Tensor>> run_all(Array<std::reference_wrapper<const Tensor>> inputs) const {
    auto given = detail::raws(inputs);
    auto info = detail::sized<adead_compiled_info>();
    adead_status status = adead_compiled_describe(get(), &info);
    std::vector<adead_tensor *> raw(info.outputs);
    if (!status) status = adead_compiled_run(get(), given.data(), given.size(), raw.data(), raw.size());
    std::vector<Tensor> outputs;
    for (adead_tensor *one : raw) outputs.emplace_back(one, context_);
    return detail::done(status, std::move(outputs));
  }

  /// Runs it and returns the last output.
  Returned<Tensor> run(Array<std::reference_wrapper<const Tensor>> inputs) const {
#ifdef ADEAD_NO_EXCEPTIONS
    return run_all(inputs).and_then([](std::vector<Tensor> all) { return Result<Tensor>(std::move(all.back())); });
#else
    return std::move(run_all(inputs).back());
#endif
  }

  /// Describes it.
  Returned<CompiledInfo> info() const {
    auto info = detail::sized<adead_compiled_info>();
    adead_status status = adead_compiled_describe(get(), &info);
    return detail::done(
        status, CompiledInfo{info.inputs, info.outputs, info.operations, info.steps, info.memory, info.device});
  }

  /// Returns the plan as text, with a line for each step.
  Returned<std::string> text() const { return made(adead_compiled_text); }
  /// Returns the plan as a graph in the DOT language, which Graphviz draws.
  Returned<std::string> dot() const { return made(adead_compiled_dot); }

  adead_compiled *get() const noexcept { return handle_.get(); }
  explicit operator bool() const noexcept { return static_cast<bool>(handle_); }

 private:
  template <class F>
  Returned<std::string> made(F make) const {
    const char *text = "";
    adead_status status = make(get(), &text);
    return detail::done(status, std::string(text));
  }

  detail::Handle<adead_compiled, adead_compiled_destroy> handle_;
  detail::Shared context_;
};

/// The base of a Pipeline's methods: its operations so far, the value that the next one takes, and the first error.
class Recorder {
 public:
  /// Returns the current value, for use in later operations.
  Value value() const noexcept { return current_; }

  /// Runs the pipeline once and returns the current value. Its tensors are constants. The compiled form is cached: the
  /// next pipeline with the same operations and shapes reuses it. Returns the first error of an operation.
  Returned<Tensor> execute() {
    output();
    if (status_) return detail::failed<Tensor>(status_, text_.c_str());
    std::vector<adead_tensor *> raw(outputs_);
    adead_status status = adead_chain_execute(handle_.get(), raw.data(), raw.size());
    std::vector<Tensor> outputs;
    for (adead_tensor *one : raw) outputs.emplace_back(one, context_);
    return detail::done(status, std::move(outputs.back()));
  }

  /// Returns a value with the current value's elements that no gradient passes through.
  Returned<Value> detach() {
    adead_value out = ADEAD_NO_VALUE;
    if (!status_) failed(adead_chain_detach(handle_.get(), current_.get(), &out));
    return told(Value(out));
  }

  /// Records the gradients of the current value, which has one element as a loss does, by values, and returns them:
  /// docs/training.md. The current value stays. After an error it is the pipeline's first one. Rethrows what a hook threw.
  Returned<std::vector<Value>> gradients(Array<Value> values) {
    const Value loss = current_;
    std::vector<adead_value> by, hooked, found(values.size(), ADEAD_NO_VALUE);
    for (const Value &one : values) by.push_back(one.get());
    for (const auto &one : hooks_) hooked.push_back(one.first.get());
    if (!status_) {
      failed(adead_chain_gradients_with(handle_.get(), loss.get(), by.data(), by.size(), hooked.data(), hooked.size(), called,
                                        this, found.data()));
    }
    current_ = loss;
#ifndef ADEAD_NO_EXCEPTIONS
    if (thrown_) {
      status_ = ADEAD_OK;
      std::rethrow_exception(std::exchange(thrown_, nullptr));
    }
#endif
    std::vector<Value> gradients;
    for (adead_value one : found) gradients.push_back(Value(one));
    return told(std::move(gradients));
  }

  /// Says whether gradients pass through the operations recorded from now on, as they do at first. Returns whether they did before.
  Returned<bool> set_grad_enabled(bool enabled) {
    std::int32_t before = 1;
    if (!status_) failed(adead_chain_set_grad_enabled(handle_.get(), enabled, &before));
    return told(before != 0);
  }

  /// Plans it for the device with the lowest estimated time.
  Returned<Compiled> compile() {
    output();
    if (status_) return detail::failed<Compiled>(status_, text_.c_str());
    adead_compiled *out = nullptr;
    adead_status status = adead_chain_compile(handle_.get(), &out);
    return detail::done(status, Compiled(out, context_));
  }

 protected:
  explicit Recorder(detail::Shared context) : context_(std::move(context)) {
    adead_chain *out = nullptr;
    failed(adead_chain_create(context_.get(), &out));
    handle_ = detail::Handle<adead_chain, adead_chain_destroy>(out);
  }

  void begin(const PipelineOperand &operand) {
    Value value = of(operand);
    if (!status_) current_ = value;
  }
  void input(DType dtype, Array<std::size_t> dims) {
    if (status_) return;
    adead_value out = ADEAD_NO_VALUE;
    failed(adead_chain_input(handle_.get(), static_cast<adead_dtype>(dtype), dims.data(), dims.size(), &out));
    if (!status_) current_ = Value(out);
  }
  void reshape(Array<std::size_t> dims) {
    if (status_) return;
    adead_value out = ADEAD_NO_VALUE;
    failed(adead_chain_reshape(handle_.get(), current_.get(), dims.data(), dims.size(), &out));
    if (!status_) current_ = Value(out);
  }
  void hook(std::function<void(Recorder &)> function) {
    if (!status_) hooks_.emplace_back(current_, std::move(function));
  }
  /// Makes the current value an output. The last value is always one.
  void output() {
    if (status_ || marked_ == current_.get()) return;
    failed(adead_chain_output(handle_.get(), current_.get()));
    marked_ = current_.get();
    outputs_++;
  }
  /// Adds an operation on the current value and these operands; if there is no current value, on these operands alone.
  void then(adead_status status, Op op, const Attrs &attrs, Array<Value> operands) {
    failed(status);
    std::vector<adead_value> raw;
    if (current_.get() != ADEAD_NO_VALUE) raw.push_back(current_.get());
    for (const Value &one : operands) raw.push_back(one.get());
    record(op, attrs, raw);
  }
  /// Adds an operation on all of its operands.
  void op(Op what, Array<PipelineOperand> operands, const Attrs &attrs) {
    std::vector<adead_value> raw;
    for (const PipelineOperand &one : operands) raw.push_back(of(one).get());
    record(what, attrs, raw);
  }
  void record(Op op, const Attrs &attrs, const std::vector<adead_value> &raw) {
    if (status_) return;
    adead_value out = ADEAD_NO_VALUE;
    failed(adead_chain_op(handle_.get(), static_cast<adead_op>(op), raw.data(), raw.size(), attrs.get(), &out));
    if (!status_) current_ = Value(out);
  }

  /// Returns an operand's value.
  Value of(const PipelineOperand &operand) { return operand.tensor() ? of(operand.tensor()) : operand.value(); }
  /// Returns a tensor as a constant; no value for NULL.
  Value of(const Tensor *tensor) {
    adead_value out = ADEAD_NO_VALUE;
    if (!status_ && tensor) failed(adead_chain_constant(handle_.get(), tensor->get(), &out));
    return Value(out);
  }

 private:
  /// Returns a result, or the first error.
  template <class T>
  Returned<T> told(T result) {
    if (status_) return detail::failed<T>(status_, text_.c_str());
    return detail::done(ADEAD_OK, std::move(result));
  }
  /// Calls a hook, with the gradient as the current value, which it may change. No exception may pass through the library.
  static adead_status called(adead_chain *chain, std::size_t number, adead_value gradient, adead_value *out, void *user) noexcept {
    auto &self = *static_cast<Recorder *>(user);
    self.current_ = Value(gradient);
    // A hook records with the pointer that it was given.
    adead_chain *own = self.handle_.release();
    self.handle_ = detail::Handle<adead_chain, adead_chain_destroy>(chain);
    const adead_status status = self.replaced(number);
    self.handle_.release();
    self.handle_ = detail::Handle<adead_chain, adead_chain_destroy>(own);
    *out = self.current_.get();
    return status;
  }
  adead_status replaced(std::size_t number) noexcept {
    // A copy, as the function may add hooks.
#ifndef ADEAD_NO_EXCEPTIONS
    try {
      const auto function = hooks_[number].second;
      function(*this);
    } catch (...) {
      thrown_ = std::current_exception();
      return ADEAD_INVALID_ARGUMENT;
    }
#else
    const auto function = hooks_[number].second;
    function(*this);
#endif
    return status_;
  }
  void failed(adead_status status) {
    if (status && !status_) {
      status_ = status;
      text_ = adead_last_error();
    }
  }

  detail::Handle<adead_chain, adead_chain_destroy> handle_;
  detail::Shared context_;
  Value current_;
  adead_value marked_ = ADEAD_NO_VALUE;
  std::size_t outputs_ = 0;
  adead_status status_ = ADEAD_OK;
  std::string text_;
  std::vector<std::pair<Value, std::function<void(Recorder &)>>> hooks_;
#ifndef ADEAD_NO_EXCEPTIONS
  std::exception_ptr thrown_;
#endif
};

}  // namespace ADEAD_HPP_MODE
}  // namespace adead

#endif
