// Contexts: opened devices, the objects made on them, and the choice of the device that computes.
#ifndef ADEAD_CONTEXT_HPP
#define ADEAD_CONTEXT_HPP

#include <adead/device.hpp>
#include <adead/operations.hpp>
#include <adead/pipeline.hpp>
#include <adead/program.hpp>
#include <adead/stream.hpp>

namespace adead {
inline namespace ADEAD_HPP_MODE {

/// Options for opening a context. A field that is not set takes its value from the environment or adead.toml, or else the default.
struct ContextOptions {
  /// The CPU's instruction set: "avx512", "avx2", "sse2", "neon" or "portable".
  std::optional<std::string> isa = {};
  /// The number of CPU threads.
  std::optional<std::size_t> threads = {};
  /// The default precision of products: see Context::set_precision. Precision::f32 if not set.
  std::optional<Precision> precision = {};
};

/// A right operand of matrix products, laid out for them in advance. It never changes, so threads may share one.
class Packed {
 public:
  Packed() noexcept = default;
  Packed(adead_packed *raw, detail::Shared context) noexcept : handle_(raw), context_(std::move(context)) {}

  /// Multiplies with this as b: the same result as Context::matmul, without the time for packing.
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

  /// Returns K and N, in this order for both layouts of b.
  Returned<std::array<std::size_t, 2>> dims() const {
    const std::size_t *dims = nullptr;
    adead_status status = adead_packed_dims(get(), &dims);
    std::array<std::size_t, 2> out = {};
    if (!status) out = {dims[0], dims[1]};
    return detail::done(status, out);
  }

  /// Returns the dtype of the matrix that was packed.
  Returned<DType> dtype() const { return detail::asked<DType>(adead_packed_dtype, get()); }

  /// Returns the bytes of memory that the packed elements take.
  Returned<std::size_t> bytes() const { return detail::asked<std::size_t>(adead_packed_bytes, get()); }

  adead_packed *get() const noexcept { return handle_.get(); }
  explicit operator bool() const noexcept { return static_cast<bool>(handle_); }

 private:
  detail::Handle<adead_packed, adead_packed_destroy> handle_;
  detail::Shared context_;
};

namespace detail {

/// Appends an element of nested lists. Always returns "": no error is possible.
template <class T>
std::string flatten(const T &value, std::size_t, std::vector<std::size_t> &, std::vector<T> &values) {
  return values.push_back(value), std::string();
}
/// Appends the elements of nested lists, and the length of each axis. Returns an error text if lists of one axis differ in length.
template <class L, class T>
std::string flatten(std::initializer_list<L> list, std::size_t axis, std::vector<std::size_t> &dims, std::vector<T> &values) {
  if (axis == dims.size()) {
    dims.push_back(list.size());
  } else if (list.size() != dims[axis]) {
    return "a list of axis " + std::to_string(axis) + " has " + std::to_string(list.size()) + " elements and the first one " +
           std::to_string(dims[axis]);
  }
  for (const L &one : list) {
    std::string text = flatten(one, axis + 1, dims, values);
    if (!text.empty()) return text;
  }
  return "";
}

}  // namespace detail

/// A device's estimate for an operation, in nanoseconds: compute_ns, launch_ns, transfer_ns, total_ns; and fits.
using Estimate = adead_estimate;

/// The use of the cache of executed pipelines: entries, most, hits, misses.
using CacheUse = adead_cache_use;
/// The memory that tensors' copies use on a device: budget and used in bytes; tensors, hits, misses, evictions.
using TensorCacheUse = adead_tensor_cache_use;

/// A choice of a device, its reason, and every device's estimate.
struct Explanation {
  /// The chosen device: its index in devices(), and the name that opens it.
  std::size_t device;
  std::string id;
  std::string reason;
  Family family;
  /// Elements of the largest operand or result. The threshold is compared with this number.
  std::size_t elements;
  /// Floating-point operations, a multiply-add counting as two, and bytes read and written.
  double flops, bytes;
  /// Each device's estimate, in the order of devices().
  std::vector<Estimate> estimates;
};

/// Opened devices, and every operation on them. Threads may share one. The objects that it makes keep it open.
class Context : public Operations {
 public:
  Context(Context &&) noexcept = default;
  Context &operator=(Context &&) noexcept = default;
#ifndef ADEAD_NO_EXCEPTIONS
  /// Opens devices as open() does.
  explicit Context(Text device, const ContextOptions &options = {}) : Context(open(device, options)) {}
  /// Opens the device that the environment or adead.toml names, or else "auto".
  Context() : Context(open()) {}
#else
  /// Makes an empty context. open() makes a usable one.
  Context() noexcept : Operations(detail::Shared()) {}
#endif

  /// Opens a device by name: "auto", "cpu", "cuda", "vulkan:1", a part of a GPU's name, or its UUID. "hybrid", or names
  /// separated by commas, open several devices as one. NULL takes the device of the environment or adead.toml, or else
  /// "auto".
  static Returned<Context> open(Text device = nullptr, const ContextOptions &options = {}) {
    adead_context_options raw = ADEAD_CONTEXT_OPTIONS_INIT;
    if (options.isa) raw.isa = options.isa->c_str();
    if (options.threads) raw.threads = *options.threads;
    if (options.precision) raw.precision = static_cast<adead_precision>(*options.precision);
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

  /// Describes the context's device.
  Returned<DeviceInfo> device() const {
    auto info = detail::sized<adead_device_info>();
    adead_status status = adead_context_device_info(get(), &info);
    return detail::done(status, detail::device(info));
  }

  /// Describes the devices that the context can use.
  Returned<std::vector<DeviceInfo>> devices() const {
    std::size_t count = 0;
    adead_status status = adead_context_device_count(get(), &count);
    return detail::devices(status, count, [this](std::size_t i, adead_device_info *info) {
      return adead_context_device_at(get(), i, info);
    });
  }

  /// Reports the memory of the context's GPU, or of the host if the context has no GPU.
  Returned<MemoryUse> memory() const { return detail::asked<MemoryUse>(adead_memory, get()); }

  /// Frees what the context keeps for its next work: scratch memory, threads, and GPU copies of tensors that are also
  /// in host memory.
  Returned<void> trim() const { return detail::done(adead_context_trim(get())); }

  // --- tensors ---

  /// Makes a tensor with a copy of these values: `tensor({2, 2}, {1.f, 2.f, 3.f, 4.f})`.
  template <class T>
  Returned<Tensor> tensor(Array<std::size_t> dims, std::initializer_list<T> values) const {
    return tensor(Element<T>::dtype, dims, values.begin(), values.size() * sizeof(T));
  }
  template <class C>
  Returned<Tensor> tensor(Array<std::size_t> dims, const C &values) const {
    using T = std::remove_cv_t<std::remove_reference_t<decltype(*std::data(values))>>;
    return tensor(Element<T>::dtype, dims, std::data(values), std::size(values) * sizeof(T));
  }

  /// Makes a tensor of one to four axes: `tensor({1.f, 2.f})`, `tensor({{1.f, 2.f}, {3.f, 4.f}})`. shape_mismatch if lists of
  /// one axis differ in length.
  template <class T>
  Returned<Tensor> tensor(std::initializer_list<T> values) const {
    return tensor({values.size()}, values);
  }
  template <class T>
  Returned<Tensor> tensor(std::initializer_list<std::initializer_list<T>> rows) const {
    return nested<T>(rows);
  }
  template <class T>
  Returned<Tensor> tensor(std::initializer_list<std::initializer_list<std::initializer_list<T>>> lists) const {
    return nested<T>(lists);
  }
  template <class T>
  Returned<Tensor> tensor(
      std::initializer_list<std::initializer_list<std::initializer_list<std::initializer_list<T>>>> lists) const {
    return nested<T>(lists);
  }

  /// Makes a tensor with a copy of these bytes. f16 and bf16 are given by their bits.
  Returned<Tensor> tensor(DType dtype, Array<std::size_t> dims, const void *data, std::size_t bytes) const {
    return detail::made<Tensor>(
        context_, adead_tensor_create, static_cast<adead_dtype>(dtype), dims.data(), dims.size(), data, bytes);
  }

  /// Makes a tensor of zeros.
  Returned<Tensor> zeros(DType dtype, Array<std::size_t> dims) const {
    return detail::made<Tensor>(context_, adead_tensor_zeros, static_cast<adead_dtype>(dtype), dims.data(), dims.size());
  }

  /// Packs a matrix for many products: b is [K, N], or [N, K] if `trans_b`. Products with it have the default precision that the
  /// context has now.
  Returned<Packed> pack(const Tensor &b, bool trans_b = false) const {
    return detail::made<Packed>(context_, adead_packed_create, get(), b.get(), trans_b);
  }

  /// Starts to record operations that run together: `pipeline().matmul(x, w1).bias(b1).relu().matmul(w2).execute()`.
  Pipeline pipeline() const { return Pipeline(context_); }

  /// Reports the use of the cache of executed pipelines. trim() empties it.
  Returned<CacheUse> pipeline_cache() const { return detail::asked<CacheUse>(adead_chain_cache, get()); }

  // --- where tensors are ---

  /// Copies a tensor's values to one of the context's devices, by its name. May return while the copy is in progress.
  /// "cpu" is Tensor::to_cpu(). Operations use the copy there, and their results stay on the device that computed them.
  Returned<void> to(const Tensor &tensor, const char *device) const {
    return detail::done(adead_tensor_to(get(), tensor.get(), device));
  }

  /// Reports the memory that tensors' copies use on one of the context's devices, by its name. All counts are 0 for the
  /// CPU.
  Returned<TensorCacheUse> tensor_cache(const char *device) const {
    return detail::asked<TensorCacheUse>(adead_context_tensor_cache, get(), device);
  }

  /// Sets the most bytes that tensors may keep on each GPU. The least recently used copies are evicted; no value is
  /// lost.
  Returned<void> set_tensor_cache(std::uint64_t bytes) const {
    return detail::done(adead_context_set_tensor_cache(get(), bytes));
  }

  // --- how products are computed ---

  /// Sets the default precision of products, for later calls, pipelines and programs. Without a call it is Precision::f32. A
  /// layer keeps the precision that the context had when the layer was made.
  Returned<void> set_precision(Precision precision) const {
    return detail::done(adead_context_set_precision(get(), static_cast<adead_precision>(precision)));
  }

  /// Makes a context with the same devices and settings, and with its own default precision. With it, a layer or a pipeline can
  /// have another precision than the rest of a model.
  Returned<Context> with_precision(Precision precision) const {
    adead_context *out = nullptr;
    adead_status status = adead_context_with_precision(get(), static_cast<adead_precision>(precision), &out);
    return opened(status, out);
  }

  /// Returns the default precision of products.
  Returned<Precision> precision() const { return detail::asked<Precision>(adead_context_precision, get()); }

  // --- which device ---

  /// Chooses the device for work on that many elements. Returns its index in devices().
  Returned<std::size_t> select(std::size_t elements) const { return detail::asked<std::size_t>(adead_select, get(), elements); }

  /// Explains on which device run() would run with the same arguments, why, and what each device would take. Runs
  /// nothing.
  Returned<Explanation> explain(Op op, Array<const Tensor *> operands, const Attrs &attrs = {}) const {
    std::vector<const adead_tensor *> all;
    for (const Tensor *tensor : operands) all.push_back(detail::raw(tensor));
    auto out = detail::sized<adead_explanation>();
    adead_status status = adead_explain(get(), static_cast<adead_op>(op), all.data(), all.size(), attrs.get(), &out);
    return detail::done(status, Explanation{out.device, out.id, out.reason, static_cast<Family>(out.family), out.elements,
                                            out.flops, out.bytes, {out.estimates, out.estimates + out.estimate_count}});
  }

  /// Sets the number of elements from which operations of a family run on a GPU. With no_threshold the cost model
  /// decides.
  Returned<void> set_threshold(Family family, std::size_t elements) const {
    return detail::done(adead_context_set_threshold(get(), static_cast<adead_family>(family), elements));
  }

  /// Runs everything on one of the context's devices by its id. NULL lets the cost model decide again.
  Returned<void> force(Text device) const { return detail::done(adead_context_force(get(), device.get())); }

  // --- programs ---

  using Operations::run;
  /// Runs a program with tensors that are bound to its slots: `run(program, {{"a", a}, {"b", b}})`.
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

  /// Makes a buffer with a copy of these bytes, or with zeros if `data` is NULL.
  Returned<Buffer> buffer(const void *data, std::size_t bytes) const {
    return detail::asked<Buffer>(adead_buffer_create, get(), data, bytes);
  }
  template <class T>
  Returned<Buffer> buffer(const std::vector<T> &values) const {
    static_assert(std::is_trivially_copyable_v<T>, "memory has values that are copied by their bytes");
    return buffer(values.data(), values.size() * sizeof(T));
  }
  Returned<Buffer> buffer_zeroed(std::size_t bytes) const { return buffer(nullptr, bytes); }

  /// Loads a kernel from a SPIR-V file, or from a module in memory.
  Returned<Kernel> load_spirv(Text path) const { return kernel(adead_kernel_load_spirv, path.get()); }
  Returned<Kernel> load_spirv(const void *data, std::size_t bytes) const {
    return kernel(adead_kernel_load_spirv_bytes, data, bytes);
  }

  /// Loads a kernel from a PTX file, or from PTX in memory. `entry` names the kernel; NULL takes the first. `workgroup`
  /// sets the threads of a workgroup; NULL takes as many as the PTX declares.
  Returned<Kernel> load_ptx(Text path) const { return kernel(adead_kernel_load_ptx, path.get()); }
  Returned<Kernel> load_ptx(const void *data, std::size_t bytes, Text entry = nullptr, const Groups *workgroup = nullptr) const {
    return kernel(adead_kernel_load_ptx_bytes, data, bytes, entry.get(), workgroup ? workgroup->data() : nullptr);
  }

  /// Loads a kernel from a cubin or a fatbin, as load_ptx does.
  Returned<Kernel> load_cubin(Text path) const { return kernel(adead_kernel_load_cubin, path.get()); }
  Returned<Kernel> load_cubin(const void *data, std::size_t bytes, Text entry = nullptr, const Groups *workgroup = nullptr) const {
    return kernel(adead_kernel_load_cubin_bytes, data, bytes, entry.get(), workgroup ? workgroup->data() : nullptr);
  }

  /// Compiles a kernel's source for the context's GPU, and loads it: CUDA C++ on a CUDA device, GLSL of a compute shader on a Vulkan
  /// device. `name` stands for the source in messages. invalid_kernel has the compiler's messages, with their lines.
  Returned<Kernel> compile_kernel(Text source, Text name = nullptr, Text entry = nullptr, const Groups *workgroup = nullptr) const {
    return kernel(adead_kernel_compile, source.get(), name.get(), entry.get(), workgroup ? workgroup->data() : nullptr);
  }

  /// Makes another kernel from the module of a kernel, with another entry point and specialization constants set.
  Returned<Kernel> create_pipeline(const Kernel &from, Text entry, Array<Constant> constants = {}) const {
    return kernel(adead_pipeline_create, from.get(), entry.get(), constants.data(), constants.size());
  }

  /// Enqueues a kernel, with buffers in the order of set and binding. The call returns at once. Reading a buffer waits,
  /// and so does wait().
  Returned<void> dispatch(const Kernel &kernel, Buffers buffers, Groups groups, Push push = {}) const {
    auto all = detail::raws(buffers);
    return detail::done(
        adead_dispatch_with(get(), kernel.get(), all.data(), all.size(), push.data(), push.size(), groups.data()));
  }

  /// Waits until everything that the context has enqueued has finished.
  Returned<void> wait() const { return detail::done(adead_wait(get())); }

  /// Makes an event at the point after everything that the context has enqueued so far.
  Returned<Event> event() const { return detail::asked<Event>(adead_event_create, get()); }

  /// Makes a stream on the context's device. On an NVIDIA GPU through CUDA, waiting work of `Priority::high` begins
  /// before that of other streams. Other devices ignore the priority.
  Returned<Stream> stream(Priority priority = Priority::normal) const {
    return detail::asked<Stream>(adead_stream_create_with, get(), static_cast<adead_priority>(priority));
  }

  adead_context *get() const noexcept { return context_.get(); }
  /// Returns the shared context, for objects that compute on it.
  const detail::Shared &shared() const noexcept { return context_; }
  explicit operator bool() const noexcept { return static_cast<bool>(context_); }

 private:
  struct Opened {};
  Context(Opened, detail::Shared context) noexcept : Operations(std::move(context)) {}

  static Returned<Context> opened(adead_status status, adead_context *out) {
    return detail::done(status, Context(Opened{}, detail::Shared(out, adead_context_destroy)));
  }

  template <class T, class L>
  Returned<Tensor> nested(const L &lists) const {
    std::vector<std::size_t> dims;
    std::vector<T> values;
    std::string text = detail::flatten(lists, 0, dims, values);
    if (!text.empty()) return detail::failed<Tensor>(ADEAD_SHAPE_MISMATCH, text.c_str());
    return tensor(dims, values);
  }

  template <class F, class... A>
  Returned<Kernel> kernel(F load, A... arguments) const {
    return detail::asked<Kernel>(load, get(), arguments...);
  }
};

}  // namespace ADEAD_HPP_MODE
}  // namespace adead

#endif
