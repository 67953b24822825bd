// Programs: decode, check and encode them. Context::run runs them.
#ifndef ADEAD_PROGRAM_HPP
#define ADEAD_PROGRAM_HPP

#include <adead/tensor.hpp>

namespace adead {
inline namespace ADEAD_HPP_MODE {

/// Statistics of a run: instructions, memory, flops, seconds.
using OutcomeStats = adead_outcome_stats;

/// A named input or output of a program.
struct Slot {
  /// The tensor's name; for AGPU programs the host address as text, such as "0x1000".
  std::string name;
  /// Bytes of its contents.
  std::size_t bytes;
  Direction direction;
  DType dtype;
  /// Whether a tensor bound to it must have exactly this dtype and shape. If not, it must only have this many bytes.
  bool typed;
  /// Whether the caller must bind a tensor to it.
  bool required;
  std::vector<std::size_t> dims;
};

/// Binds a tensor to the program's slot of a name.
class Binding {
 public:
  Binding(Text name, const Tensor &tensor) noexcept : name_(name.get()), tensor_(&tensor) {}
  const char *name() const noexcept { return name_; }
  const Tensor &tensor() const noexcept { return *tensor_; }

 private:
  const char *name_;
  const Tensor *tensor_;
};

/// Options of a run. A field that is not set has the core's default.
struct RunOptions {
  /// The most bytes that registers, temporaries and outputs may take at the same time.
  std::optional<std::size_t> memory_limit = {};
  /// Whether independent instructions may run at the same time. The results are the same.
  std::optional<bool> parallel = {};
};

/// Statistics of one instruction in a run.
struct Trace {
  /// Its index in the program, and its name.
  std::size_t instruction;
  std::string name;
  /// The device that it ran on.
  std::string device;
  double seconds;
  /// Floating-point operations; a multiply-add counts as two.
  double flops;
  /// Bytes read and written, counting each operand once.
  double bytes;
};

/// A decoded program. It never changes, so threads may share one.
class Program {
 public:
  Program() noexcept = default;
  explicit Program(adead_program *raw) noexcept : handle_(raw) {}

  /// Decodes an .adead file, an AGPU binary, an AHYB file, .hex text or program text. The bytes determine the format.
  static Returned<Program> decode(const void *data, std::size_t bytes) {
    return detail::asked<Program>(adead_program_decode, data, bytes);
  }

  /// Decodes a file.
  static Returned<Program> load(Text path) { return detail::asked<Program>(adead_program_load, path.get()); }

  /// Assembles program text, ".adead 1" or ".agpu 1".
  static Returned<Program> assemble(Text source) { return detail::asked<Program>(adead_program_assemble, source.get()); }

  /// Returns the format that it was decoded from.
  Returned<Format> format() const { return detail::asked<Format>(adead_program_format, get()); }

  /// Returns the number of instructions.
  Returned<std::size_t> length() const { return detail::asked<std::size_t>(adead_program_length, get()); }

  /// Encodes the program as a file of a format. unsupported if the format can't express the program.
  Returned<std::string> encode(Format format) const {
    const void *data = nullptr;
    std::size_t bytes = 0;
    adead_status status = adead_program_encode(get(), static_cast<adead_format>(format), &data, &bytes);
    return detail::done(status, std::string(static_cast<const char *>(data), bytes));
  }

  /// Returns text from which assemble() makes this program again.
  Returned<std::string> disassemble() const {
    const char *text = "";
    adead_status status = adead_program_disassemble(get(), &text);
    return detail::done(status, std::string(text));
  }

  /// Returns notes on the program, such as skipped parts and opcodes that do nothing.
  Returned<std::vector<std::string>> notes() const {
    std::vector<std::string> all;
    std::size_t count = 0;
    adead_status status = adead_program_note_count(get(), &count);
    for (std::size_t i = 0; !status && i < count; i++) {
      const char *note = "";
      status = adead_program_note_at(get(), i, &note);
      all.emplace_back(note);
    }
    return detail::done(status, std::move(all));
  }

  /// Returns the named inputs and outputs.
  Returned<std::vector<Slot>> slots() const {
    std::vector<Slot> all;
    std::size_t count = 0;
    adead_status status = adead_program_slot_count(get(), &count);
    for (std::size_t i = 0; !status && i < count; i++) {
      auto one = detail::sized<adead_slot>();
      status = adead_program_slot_at(get(), i, &one);
      if (status) break;
      all.push_back({one.name, one.bytes, static_cast<Direction>(one.direction), static_cast<DType>(one.dtype), one.typed != 0,
                     one.required != 0, {one.dims, one.dims + one.rank}});
    }
    return detail::done(status, std::move(all));
  }

  /// Checks the program as far as is possible without data. Returns the most bytes that a run takes at the same time.
  /// `memory_limit` 0 is the default limit.
  Returned<std::size_t> validate(std::size_t memory_limit = 0) const {
    return detail::asked<std::size_t>(adead_program_validate, get(), memory_limit);
  }

  adead_program *get() const noexcept { return handle_.get(); }
  explicit operator bool() const noexcept { return static_cast<bool>(handle_); }

 private:
  detail::Handle<adead_program, adead_program_destroy> handle_;
};

/// The outcome of a program's run.
class Outcome {
 public:
  Outcome() noexcept = default;
  Outcome(adead_outcome *raw, detail::Shared context) noexcept : handle_(raw), context_(std::move(context)) {}

  /// Returns the output of a name. It stays valid after the outcome is destroyed.
  Returned<Tensor> output(Text name) const { return detail::made<Tensor>(context_, adead_outcome_output, get(), name.get()); }

  /// Returns the names of the outputs, in the order of the program's slots.
  Returned<std::vector<std::string>> output_names() const {
    std::vector<std::string> all;
    std::size_t count = 0;
    adead_status status = adead_outcome_output_count(get(), &count);
    for (std::size_t i = 0; !status && i < count; i++) {
      const char *name = "";
      status = adead_outcome_output_name(get(), i, &name);
      all.emplace_back(name);
    }
    return detail::done(status, std::move(all));
  }

  /// Returns the statistics of the run.
  Returned<OutcomeStats> report() const { return detail::asked<OutcomeStats>(adead_outcome_report, get()); }

  /// Returns the statistics of each instruction.
  Returned<std::vector<Trace>> trace() const {
    std::vector<Trace> all;
    std::size_t count = 0;
    adead_status status = adead_outcome_trace_count(get(), &count);
    for (std::size_t i = 0; !status && i < count; i++) {
      auto one = detail::sized<adead_trace>();
      status = adead_outcome_trace_at(get(), i, &one);
      all.push_back({one.instruction, one.name, one.device, one.seconds, one.flops, one.bytes});
    }
    return detail::done(status, std::move(all));
  }

  adead_outcome *get() const noexcept { return handle_.get(); }
  explicit operator bool() const noexcept { return static_cast<bool>(handle_); }

 private:
  detail::Handle<adead_outcome, adead_outcome_destroy> handle_;
  detail::Shared context_;
};

}  // namespace ADEAD_HPP_MODE
}  // namespace adead

#endif
