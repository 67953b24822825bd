// Contexts: opened devices, what is made on them, and which of them computes.
#ifndef ADEAD_CONTEXT_HPP
#define ADEAD_CONTEXT_HPP

#include <adead/device.hpp>
#include <adead/pipeline.hpp>
#include <adead/program.hpp>
#include <adead/stream.hpp>

namespace adead {
inline namespace ADEAD_HPP_MODE {

/// How to open a context. What is left out is what the environment says, else the core's default.
struct ContextOptions {
  /// The CPU's instruction set: "avx512", "avx2", "sse2", "neon", "portable".
  std::optional<std::string> isa = {};
  /// CPU threads.
  std::optional<std::size_t> threads = {};
};

/// A right operand of matrix products, laid out in advance for them. It never changes, so threads may share one.
class Packed {
 public:
  Packed() noexcept = default;
  Packed(adead_packed *raw, detail::Shared context) noexcept : handle_(raw), context_(std::move(context)) {}

  /// Context::matmul with this as b: the same result, and no time spent on packing.
  Returned<Tensor> matmul(const Tensor &a, const MatmulOptions &options = {}) const {
    adead_matmul_options raw = ADEAD_MATMUL_OPTIONS_INIT;
    if (options.trans_a) raw.trans_a = *options.trans_a;
    if (options.trans_b) raw.trans_b = *options.trans_b;
    if (options.alpha) raw.alpha = *options.alpha;
    if (options.beta) raw.beta = *options.beta;
    if (options.activation) raw.activation = static_cast<adead_activation>(*options.activation);
    if (options.precision) raw.precision = static_cast<adead_precision>(*options.precision);
    raw.c = detail::raw(options.c);
    raw.bias = detail::raw(options.bias);
    return detail::made<Tensor>(context_, adead_packed_matmul, context_.get(), a.get(), get(), &raw);
  }

  /// K and N, in this order however b was given.
  Returned<std::array<std::size_t, 2>> dims() const {
    const std::size_t *dims = nullptr;
    adead_status status = adead_packed_dims(get(), &dims);
    std::array<std::size_t, 2> out = {};
    if (!status) out = {dims[0], dims[1]};
    return detail::done(status, out);
  }

  /// The dtype of what was packed.
  Returned<DType> dtype() const { return detail::asked<DType>(adead_packed_dtype, get()); }

  /// Bytes of memory that the packed elements take.
  Returned<std::size_t> bytes() const { return detail::asked<std::size_t>(adead_packed_bytes, get()); }

  adead_packed *get() const noexcept { return handle_.get(); }
  explicit operator bool() const noexcept { return static_cast<bool>(handle_); }

 private:
  detail::Handle<adead_packed, adead_packed_destroy> handle_;
  detail::Shared context_;
};

/// What a device would take for an operation, in nanoseconds: compute_ns, launch_ns, transfer_ns, total_ns, fits.
using Estimate = adead_estimate;

/// How the cache of executed pipelines was used: entries, most, hits, misses.
using CacheUse = adead_cache_use;
/// What tensors keep on a device: budget and used in bytes; tensors, hits, misses, evictions.
using TensorCacheUse = adead_tensor_cache_use;

/// A choice of a device with its reason and what every device would take.
struct Explanation {
  /// The chosen device, by its index in devices(), and how to open it.
  std::size_t device;
  std::string id;
  std::string reason;
  Family family;
  /// Elements of the largest operand or result: what a threshold is compared with.
  std::size_t elements;
  /// Floating-point operations, a multiply-add being two, and bytes read and written.
  double flops, bytes;
  /// In the order of devices().
  std::vector<Estimate> estimates;
};

/// Opened devices, and every operation on them. Threads may share one. What it made keeps it open.
class Context : public Operations {
 public:
  Context(Context &&) noexcept = default;
  Context &operator=(Context &&) noexcept = default;
#ifndef ADEAD_NO_EXCEPTIONS
  /// As open().
  explicit Context(Text device, const ContextOptions &options = {}) : Context(open(device, options)) {}
  /// What the environment and adead.toml say, else "auto".
  Context() : Context(open()) {}
#else
  /// None. open() gives one.
  Context() noexcept : Operations(detail::Shared()) {}
#endif

  /// Opens a device by name: "auto", "cpu", "cuda", "vulkan:1", a part of a GPU's name, its UUID; several as one: "hybrid", or
  /// names with commas between them. NULL is what the environment and adead.toml say, else "auto".
  static Returned<Context> open(Text device = nullptr, const ContextOptions &options = {}) {
    adead_context_options raw = ADEAD_CONTEXT_OPTIONS_INIT;
    if (options.isa) raw.isa = options.isa->c_str();
    if (options.threads) raw.threads = *options.threads;
    adead_context *out = nullptr;
    adead_status status = adead_context_open(device.get(), &raw, &out);
    return opened(status, out);
  }

  /// Opens the best GPU. backend_unavailable says why there is none.
  static Returned<Context> open_gpu() {
    adead_context *out = nullptr;
    adead_status status = adead_gpu_open(&out);
    return opened(status, out);
  }

  /// What the context's device is.
  Returned<DeviceInfo> device() const {
    auto info = detail::sized<adead_device_info>();
    adead_status status = adead_context_device_info(get(), &info);
    return detail::done(status, detail::device(info));
  }

  /// What the devices are that the context can use.
  Returned<std::vector<DeviceInfo>> devices() const {
    std::size_t count = 0;
    adead_status status = adead_context_device_count(get(), &count);
    return detail::devices(status, count, [this](std::size_t i, adead_device_info *info) {
      return adead_context_device_at(get(), i, info);
    });
  }

  /// The memory of the context's GPU, or of the host where it has none.
  Returned<MemoryUse> memory() const { return detail::asked<MemoryUse>(adead_memory, get()); }

  /// Gives back what the context keeps for its next work: scratch memory and threads.
  Returned<void> trim() const { return detail::done(adead_context_trim(get())); }

  // --- tensors ---

  /// A tensor with a copy of these values: `tensor({2, 2}, {1.f, 2.f, 3.f, 4.f})`.
  template <class T>
  Returned<Tensor> tensor(Array<std::size_t> dims, std::initializer_list<T> values) const {
    return tensor(Element<T>::dtype, dims, values.begin(), values.size() * sizeof(T));
  }
  template <class C>
  Returned<Tensor> tensor(Array<std::size_t> dims, const C &values) const {
    using T = std::remove_cv_t<std::remove_reference_t<decltype(*std::data(values))>>;
    return tensor(Element<T>::dtype, dims, std::data(values), std::size(values) * sizeof(T));
  }

  /// A tensor with a copy of these bytes: f16 and bf16 are theirs.
  Returned<Tensor> tensor(DType dtype, Array<std::size_t> dims, const void *data, std::size_t bytes) const {
    return detail::made<Tensor>(
        context_, adead_tensor_create, static_cast<adead_dtype>(dtype), dims.data(), dims.size(), data, bytes);
  }

  /// A tensor of zeros.
  Returned<Tensor> zeros(DType dtype, Array<std::size_t> dims) const {
    return detail::made<Tensor>(context_, adead_tensor_zeros, static_cast<adead_dtype>(dtype), dims.data(), dims.size());
  }

  /// Packs a matrix that is multiplied with many times: b is [K, N], or [N, K] if `trans_b`.
  Returned<Packed> pack(const Tensor &b, bool trans_b = false) const {
    return detail::made<Packed>(context_, adead_packed_create, get(), b.get(), trans_b);
  }

  /// Begins to record operations that are run as a whole: `pipeline().matmul(x, w1).bias(b1).relu().matmul(w2).execute()`.
  Pipeline pipeline() const { return Pipeline(context_); }

  /// How the cache of executed pipelines was used; trim() empties it.
  Returned<CacheUse> pipeline_cache() const { return detail::asked<CacheUse>(adead_chain_cache, get()); }

  // --- where tensors are ---

  /// Puts a copy of a tensor's values on one of the context's devices, by its name; returns when they may be on their way. "cpu" is
  /// Tensor::to_cpu(). Operations find them there, and leave their results where they compute.
  Returned<void> to(const Tensor &tensor, const char *device) const {
    return detail::done(adead_tensor_to(get(), tensor.get(), device));
  }

  /// What tensors keep on one of the context's devices, by its name: nothing on the CPU.
  Returned<TensorCacheUse> tensor_cache(const char *device) const {
    return detail::asked<TensorCacheUse>(adead_context_tensor_cache, get(), device);
  }

  /// The most bytes that tensors may keep on each GPU. Those that were not used for longest leave; no value is lost.
  Returned<void> set_tensor_cache(std::uint64_t bytes) const {
    return detail::done(adead_context_set_tensor_cache(get(), bytes));
  }

  // --- which device ---

  /// The device for work on that many elements, by its index in devices().
  Returned<std::size_t> select(std::size_t elements) const { return detail::asked<std::size_t>(adead_select, get(), elements); }

  /// On which device run() with the same arguments would run, why, and what every device would take. Runs nothing.
  Returned<Explanation> explain(Op op, Array<const Tensor *> operands, const Attrs &attrs = {}) const {
    std::vector<const adead_tensor *> all;
    for (const Tensor *tensor : operands) all.push_back(detail::raw(tensor));
    auto out = detail::sized<adead_explanation>();
    adead_status status = adead_explain(get(), static_cast<adead_op>(op), all.data(), all.size(), attrs.get(), &out);
    return detail::done(status, Explanation{out.device, out.id, out.reason, static_cast<Family>(out.family), out.elements,
                                            out.flops, out.bytes, {out.estimates, out.estimates + out.estimate_count}});
  }

  /// From how many elements on operations of a family go to a GPU; no_threshold lets the costs decide.
  Returned<void> set_threshold(Family family, std::size_t elements) const {
    return detail::done(adead_context_set_threshold(get(), static_cast<adead_family>(family), elements));
  }

  /// Sends everything to one of the context's devices by its id; NULL lets the costs decide.
  Returned<void> force(Text device) const { return detail::done(adead_context_force(get(), device.get())); }

  // --- programs ---

  using Operations::run;
  /// Runs a program with tensors bound to its slots: `run(program, {{"a", a}, {"b", b}})`.
  Returned<Outcome> run(const Program &program, Array<Binding> bindings, const RunOptions &options = {}) const {
    std::vector<const char *> names;
    std::vector<const adead_tensor *> tensors;
    for (const Binding &one : bindings) {
      names.push_back(one.name());
      tensors.push_back(one.tensor().get());
    }
    adead_run_options raw = ADEAD_RUN_OPTIONS_INIT;
    if (options.memory_limit) raw.memory_limit = *options.memory_limit;
    if (options.parallel) raw.parallel = *options.parallel;
    return detail::made<Outcome>(
        context_, adead_program_run, get(), program.get(), names.data(), tensors.data(), names.size(), &raw);
  }

  // --- memory, kernels and streams ---

  /// A buffer with a copy of these bytes, or of zeros where `data` is NULL.
  Returned<Buffer> buffer(const void *data, std::size_t bytes) const {
    return detail::asked<Buffer>(adead_buffer_create, get(), data, bytes);
  }
  template <class T>
  Returned<Buffer> buffer(const std::vector<T> &values) const {
    static_assert(std::is_trivially_copyable_v<T>, "memory has values that are copied by their bytes");
    return buffer(values.data(), values.size() * sizeof(T));
  }
  Returned<Buffer> buffer_zeroed(std::size_t bytes) const { return buffer(nullptr, bytes); }

  /// A kernel from a SPIR-V file, or from a module in memory.
  Returned<Kernel> load_spirv(Text path) const { return kernel(adead_kernel_load_spirv, path.get()); }
  Returned<Kernel> load_spirv(const void *data, std::size_t bytes) const {
    return kernel(adead_kernel_load_spirv_bytes, data, bytes);
  }

  /// A kernel from a PTX file, or from PTX in memory: the one called `entry`, or with NULL the first, with workgroups of that
  /// many threads, or with NULL of as many as it says.
  Returned<Kernel> load_ptx(Text path) const { return kernel(adead_kernel_load_ptx, path.get()); }
  Returned<Kernel> load_ptx(const void *data, std::size_t bytes, Text entry = nullptr, const Groups *workgroup = nullptr) const {
    return kernel(adead_kernel_load_ptx_bytes, data, bytes, entry.get(), workgroup ? workgroup->data() : nullptr);
  }

  /// The same from a cubin or a fatbin.
  Returned<Kernel> load_cubin(Text path) const { return kernel(adead_kernel_load_cubin, path.get()); }
  Returned<Kernel> load_cubin(const void *data, std::size_t bytes, Text entry = nullptr, const Groups *workgroup = nullptr) const {
    return kernel(adead_kernel_load_cubin_bytes, data, bytes, entry.get(), workgroup ? workgroup->data() : nullptr);
  }

  /// The module of a kernel as another kernel: with another entry point, with specialization constants set.
  Returned<Kernel> create_pipeline(const Kernel &from, Text entry, Array<Constant> constants = {}) const {
    return kernel(adead_pipeline_create, from.get(), entry.get(), constants.data(), constants.size());
  }

  /// Enqueues a kernel, with buffers in the order of their set and binding. It returns at once; reading a buffer, or wait(),
  /// waits.
  Returned<void> dispatch(const Kernel &kernel, Buffers buffers, Groups groups, Push push = {}) const {
    auto all = detail::raws(buffers);
    return detail::done(
        adead_dispatch_with(get(), kernel.get(), all.data(), all.size(), push.data(), push.size(), groups.data()));
  }

  /// Waits until everything that the context enqueued has finished.
  Returned<void> wait() const { return detail::done(adead_wait(get())); }

  /// The point after everything that the context enqueued so far.
  Returned<Event> event() const { return detail::asked<Event>(adead_event_create, get()); }

  /// A stream on the context's device. On an NVIDIA GPU through CUDA the work of `Priority::high` begins before that of other streams
  /// where both wait; elsewhere it is an ordinary stream.
  Returned<Stream> stream(Priority priority = Priority::normal) const {
    return detail::asked<Stream>(adead_stream_create_with, get(), static_cast<adead_priority>(priority));
  }

  adead_context *get() const noexcept { return context_.get(); }
  /// What keeps it, for what computes on it.
  const detail::Shared &shared() const noexcept { return context_; }
  explicit operator bool() const noexcept { return static_cast<bool>(context_); }

 private:
  struct Opened {};
  Context(Opened, detail::Shared context) noexcept : Operations(std::move(context)) {}

  static Returned<Context> opened(adead_status status, adead_context *out) {
    return detail::done(status, Context(Opened{}, detail::Shared(out, adead_context_destroy)));
  }

  template <class F, class... A>
  Returned<Kernel> kernel(F load, A... arguments) const {
    return detail::asked<Kernel>(load, get(), arguments...);
  }
};

namespace detail {
/// An operator: it computes on the left operand's context.
inline Returned<Tensor> apply(Op op, Array<const Tensor *> operands, const Attrs &attrs = {}) {
  std::array<const adead_tensor *, 2> all = {};
  for (std::size_t i = 0; i < operands.size(); i++) all[i] = operands.data()[i]->get();
  const Shared &context = operands.data()[0]->context();
  adead_tensor *out = nullptr;
  adead_status status =
      adead_op_run(context.get(), static_cast<adead_op>(op), all.data(), operands.size(), attrs.get(), &out);
  return done(status, Tensor(out, context));
}
}  // namespace detail

/// Context::add, sub, mul, div and neg.
inline Returned<Tensor> operator+(const Tensor &a, const Tensor &b) { return detail::apply(Op::add, {&a, &b}); }
inline Returned<Tensor> operator-(const Tensor &a, const Tensor &b) { return detail::apply(Op::sub, {&a, &b}); }
inline Returned<Tensor> operator*(const Tensor &a, const Tensor &b) { return detail::apply(Op::mul, {&a, &b}); }
inline Returned<Tensor> operator/(const Tensor &a, const Tensor &b) { return detail::apply(Op::div, {&a, &b}); }
inline Returned<Tensor> operator-(const Tensor &x) { return detail::apply(Op::neg, {&x}); }

/// Context::scale.
inline Returned<Tensor> operator*(const Tensor &x, float alpha) {
  Attrs attrs;
  adead_status status = ADEAD_OK;
  attrs.give(status, Op::scale, "alpha", std::optional<float>(alpha));
  if (status) return detail::failed<Tensor>(status);
  return detail::apply(Op::scale, {&x}, attrs);
}
inline Returned<Tensor> operator*(float alpha, const Tensor &x) { return x * alpha; }

}  // namespace ADEAD_HPP_MODE
}  // namespace adead

#endif
