// Training over <adead/models.h> and its library, adead_models: networks that learn from arrays, and jobs that a file describes.
// docs/training.md is the guide. Programs that use it need not link libadead.
#ifndef ADEAD_TRAIN_HPP
#define ADEAD_TRAIN_HPP

#include <adead/models.hpp>

#include <memory>
#include <string_view>

namespace adead {
inline namespace ADEAD_HPP_MODE {

/// The result of Trainer::evaluate.
struct Measured {
  /// The mean loss.
  double loss = 0;
  /// The fraction of the samples whose most likely class is the right one.
  double accuracy = 0;
};

/// A view of samples or targets, one sample after another: f32, or i64 for ids and classes. The values must outlive the call.
class Samples {
 public:
  Samples(const std::vector<float> &values) noexcept : Samples(values.data(), values.size()) {}
  Samples(const std::vector<std::int64_t> &values) noexcept : Samples(values.data(), values.size()) {}
  Samples(const float *values, std::size_t size) noexcept : data_(values), size_(size), dtype_(ADEAD_DTYPE_F32) {}
  Samples(const std::int64_t *values, std::size_t size) noexcept : data_(values), size_(size), dtype_(ADEAD_DTYPE_I64) {}

  const void *data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }
  adead_dtype dtype() const noexcept { return dtype_; }

 private:
  const void *data_;
  std::size_t size_;
  adead_dtype dtype_;
};

/// A parameter of a network.
struct TrainedParameter {
  std::string name;
  std::vector<std::size_t> dims;
  std::vector<float> values;
};

/// Moves bytes between the ranks of a training, for example over MPI. Derive a class from it for Trainer::join.
class Transport {
 public:
  virtual ~Transport() = default;
  /// Returns the number of this rank, counted from 0.
  virtual std::size_t rank() const noexcept = 0;
  /// Returns the number of ranks.
  virtual std::size_t size() const noexcept = 0;
  /// Sends each rank r the bytes of parts[r], and returns the bytes that each rank sent to this one. There is nothing for this rank
  /// itself, and its own element of the result is ignored. All ranks call it equally often, in the thread that calls the trainer. Returns
  /// nothing if a rank is lost, which is io. An exception ends the trainer's call too, and is rethrown.
  virtual std::optional<std::vector<std::string>> exchange(const std::vector<std::string_view> &parts) = 0;
};

/// A network in training. Its weights have the same bits on every device, with every number of threads, and in every language.
class Trainer {
 public:
  Trainer(Trainer &&) noexcept = default;
  Trainer &operator=(Trainer &&) noexcept = default;
#ifndef ADEAD_NO_EXCEPTIONS
  /// Makes a trainer as create() does.
  explicit Trainer(Text description, Text device = nullptr, const ContextOptions &options = {})
      : Trainer(create(description, device, options)) {}
#else
  /// Makes an empty trainer. create() makes a usable one.
  Trainer() noexcept = default;
#endif

  /// Compiles a network for training. The description is JSON: the network, its loss and its optimiser (docs/training.md).
  /// invalid_argument or shape_mismatch if it is malformed or does not describe a network.
  static Returned<Trainer> create(Text description, Text device = nullptr, const ContextOptions &options = {}) {
    const adead_context_options raw = detail::raw(options);
    adead_trainer *out = nullptr;
    adead_status status = adead_trainer_create(description.get(), device.get(), &raw, &out);
    auto info = detail::sized<adead_trainer_info>();
    if (!status) status = adead_trainer_inspect(out, &info);
    return detail::encoded(status, Trainer(out, info));
  }

  /// Returns the number of steps so far.
  Returned<std::uint64_t> steps() const {
    auto info = detail::sized<adead_trainer_info>();
    adead_status status = adead_trainer_inspect(get(), &info);
    return detail::encoded(status, info.steps);
  }
  /// Returns the number of samples in a step.
  std::size_t batch() const noexcept { return info_.batch; }
  /// Returns the number of values in an output.
  std::size_t output_size() const noexcept { return info_.output_size; }
  /// Returns the device that trains, such as "cpu" or "cuda:0".
  std::string device() const { return info_.device; }

  /// Joins other processes, which then train together. `place` names this process's rank: "0/4@host:29500" is rank 0 of 4, and rank 0
  /// listens on that address. "env" reads the variables of torchrun, Open MPI, MPICH or Slurm. After joining, each rank makes the same
  /// calls with the same samples. A rank may take `patience` seconds to connect, and to compute its part of a step. invalid_argument
  /// if there are more ranks than shards or the ranks' trainers differ; io if a rank does not connect or is lost.
  Returned<void> join(Text place = "env", double patience = 300) {
    return detail::encoded(adead_trainer_join(get(), place.get(), patience));
  }
  /// Joins other processes as above, through the program's own transport. The trainer shares it. invalid_argument if it is null.
  Returned<void> join(std::shared_ptr<Transport> ranks) {
    if (!ranks) return detail::failed<void>(ADEAD_INVALID_ARGUMENT, "ranks is null");
    auto raw = detail::sized<adead_transport>();
    raw.rank = ranks->rank();
    raw.size = ranks->size();
    raw.user = ranks.get();
    raw.exchange = exchange;
    adead_status status = adead_trainer_join_through(get(), &raw);
    if (!status) ranks_ = std::move(ranks);
    return detail::computed(status);
  }

  /// Trains with one batch, and returns the loss before the step. shape_mismatch unless there are batch() samples; invalid_argument
  /// for a class that does not exist, or a loss that is not finite. After an error nothing has changed.
  Returned<float> step(const Samples &x, const Samples &targets) {
    std::size_t count = 0;
    float loss = 0;
    if (const char *wrong = check(x, &targets, count)) return failed<float>(wrong);
    adead_status status = adead_trainer_step(get(), x.data(), targets.data(), count, &loss);
    return detail::computed(status, loss);
  }

  /// Trains with all samples `epochs` times, in an order that the seed determines, and returns the mean loss of the last epoch.
  /// `progress` is called after each step, and returns false to end the training with not_ready. An exception ends it too, and is
  /// rethrown.
  Returned<double> fit(const Samples &x, const Samples &targets, std::uint32_t epochs,
                       const std::function<bool(std::uint32_t epoch, std::uint64_t step, float loss)> &progress = {}) {
    std::size_t count = 0;
    double loss = 0;
    if (const char *wrong = check(x, &targets, count)) return failed<double>(wrong);
    using Told = std::function<bool(std::uint32_t, std::uint64_t, float)>;
    auto told = [](void *user, std::uint32_t epoch, std::uint64_t step, float of_step) noexcept -> std::int32_t {
      const Told &tell = *static_cast<const Told *>(user);
#ifndef ADEAD_NO_EXCEPTIONS
      try {
        return tell(epoch, step, of_step) ? 0 : 1;
      } catch (...) {
        detail::thrown() = std::current_exception();
        return 1;
      }
#else
      return tell(epoch, step, of_step) ? 0 : 1;
#endif
    };
    adead_fit_progress function = nullptr;
    if (progress) function = told;
    adead_status status = adead_trainer_fit(get(), x.data(), targets.data(), count, epochs, function, const_cast<Told *>(&progress), &loss);
    return detail::computed(status, loss);
  }

  /// Computes the outputs for samples: output_size() values for each sample, in order.
  Returned<std::vector<float>> predict(const Samples &x) const {
    std::size_t count = 0;
    if (const char *wrong = check(x, nullptr, count)) return failed<std::vector<float>>(wrong);
    std::vector<float> out(count * info_.output_size);
    adead_status status = adead_trainer_predict(get(), x.data(), count, out.data(), out.size());
    return detail::encoded(status, std::move(out));
  }

  /// Computes the mean loss and the accuracy on samples with known classes. unsupported for a loss without classes.
  Returned<Measured> evaluate(const Samples &x, const Samples &targets) const {
    std::size_t count = 0;
    Measured out;
    if (const char *wrong = check(x, &targets, count)) return failed<Measured>(wrong);
    adead_status status = adead_trainer_evaluate(get(), x.data(), targets.data(), count, &out.loss, &out.accuracy);
    return detail::encoded(status, out);
  }

  /// Writes parameters, optimiser and step to a safetensors file, atomically. io if it can't be written.
  Returned<void> save(Text path) const { return detail::encoded(adead_trainer_save(get(), path.get())); }
  /// Continues from a file of save(). The next steps have the same bits as without the interruption. io, invalid_argument or
  /// shape_mismatch if the file can't be read or belongs to another network or optimiser.
  Returned<void> load(Text path) { return detail::encoded(adead_trainer_load(get(), path.get())); }

  /// Returns the SHA-256 of the parameters in the order of their names: f32, little endian.
  Returned<std::string> sha256() const {
    char text[65] = "";
    adead_status status = adead_trainer_sha256(get(), text, sizeof text);
    return detail::encoded(status, std::string(text));
  }

  /// Returns copies of the parameters; their averages, if the optimiser keeps averages.
  Returned<std::vector<TrainedParameter>> parameters() const {
    std::size_t count = 0;
    adead_status status = adead_trainer_parameter_count(get(), &count);
    std::vector<TrainedParameter> all(status ? 0 : count);
    for (std::size_t i = 0; !status && i < all.size(); i++) {
      auto raw = detail::sized<adead_trained_parameter>();
      status = adead_trainer_parameter(get(), i, &raw, nullptr, 0);
      if (status) break;
      all[i].name = raw.name;
      all[i].dims.assign(raw.dims, raw.dims + raw.rank);
      all[i].values.resize(raw.size);
      status = adead_trainer_parameter(get(), i, &raw, all[i].values.data(), raw.size);
    }
    return detail::encoded(status, std::move(all));
  }

  adead_trainer *get() const noexcept { return handle_.get(); }
  explicit operator bool() const noexcept { return static_cast<bool>(handle_); }

 private:
  Trainer(adead_trainer *raw, const adead_trainer_info &info) noexcept : handle_(raw), info_(info) {}

  template <class T>
  static Returned<T> failed(const char *wrong) {
    return detail::failed<T>(ADEAD_SHAPE_MISMATCH, wrong);
  }

  /// Counts samples. The library sees only pointers, so types and sizes are checked here.
  const char *check(const Samples &x, const Samples *targets, std::size_t &count) const noexcept {
    if (!handle_) return nullptr;
    if (x.dtype() != info_.sample_type) return "x: the network takes values of another type";
    if (x.size() % info_.sample_size) return "x: the values are no whole samples";
    count = x.size() / info_.sample_size;
    if (!targets) return nullptr;
    if (targets->dtype() != info_.target_type) return "targets: the loss takes values of another type";
    if (targets->size() != count * info_.target_size) return "targets: there are more or fewer than samples";
    return nullptr;
  }

  /// The exchange of a Transport, for the C interface.
  static std::int32_t exchange(void *user, const void *const *parts, const std::size_t *lengths, adead_mailbox *mailbox) noexcept {
    Transport &ranks = *static_cast<Transport *>(user);
    const auto run = [&] {
      std::vector<std::string_view> sent;
      for (std::size_t rank = 0; rank < ranks.size(); rank++) sent.emplace_back(static_cast<const char *>(parts[rank]), lengths[rank]);
      const auto found = ranks.exchange(sent);
      if (!found) return 1;
      for (std::size_t rank = 0; rank < found->size(); rank++) {
        const std::string &bytes = (*found)[rank];
        if (rank != ranks.rank() && adead_mailbox_put(mailbox, rank, bytes.data(), bytes.size())) return 1;
      }
      return 0;
    };
#ifndef ADEAD_NO_EXCEPTIONS
    try {
      return run();
    } catch (...) {
      detail::thrown() = std::current_exception();
      return 1;
    }
#else
    return run();
#endif
  }

  /// The trainer calls it, so it outlives the handle.
  std::shared_ptr<Transport> ranks_;
  detail::Handle<adead_trainer, adead_trainer_destroy> handle_;
  adead_trainer_info info_{};
};

/// An event of a job: the end of a step or of an epoch.
using TrainEvent = adead_train_event;

/// Options for running a job.
struct TrainOptions {
  /// Whether to continue from the job's checkpoint, if it exists.
  bool resume = false;
  /// The number of epochs. By default the job's.
  std::optional<std::uint32_t> epochs = {};
  /// The rank of this process, as for Trainer::join. By default the process trains alone.
  std::optional<std::string> ranks = {};
  /// How many seconds a rank may take to connect, and to compute its part of a step.
  double patience = 300;
  /// Called with each event. Returns false to end the job with not_ready. An exception ends it too, and is rethrown.
  std::function<bool(const TrainEvent &event)> progress = {};
};

/// The result of a job.
struct TrainOutcome {
  /// The number of steps, including those before a checkpoint.
  std::uint64_t steps = 0;
  /// The mean loss of the held-out samples, and the fraction of them that is classified right. NaN if no epoch was made.
  double held_out_loss = 0, accuracy = 0;
  /// The SHA-256 of the trained parameters, and the device that trained them.
  std::string sha256, device;
};

/// Runs a training job from a TOML file (docs/training.md). io or invalid_argument if the job, its data or a checkpoint can't be read
/// or is malformed.
inline Returned<TrainOutcome> train(Text job, Text device = nullptr, const TrainOptions &options = {}, const ContextOptions &context = {}) {
  const adead_context_options opened = detail::raw(context);
  adead_train_options raw = ADEAD_TRAIN_OPTIONS_INIT;
  raw.resume = options.resume;
  if (options.epochs) raw.epochs = *options.epochs;
  if (options.ranks) raw.ranks = options.ranks->c_str();
  raw.patience = options.patience;
  raw.user = const_cast<TrainOptions *>(&options);
  if (options.progress) {
    raw.progress = [](void *user, const adead_train_event *event) noexcept -> std::int32_t {
      const auto &progress = static_cast<const TrainOptions *>(user)->progress;
#ifndef ADEAD_NO_EXCEPTIONS
      try {
        return progress(*event) ? 0 : 1;
      } catch (...) {
        detail::thrown() = std::current_exception();
        return 1;
      }
#else
      return progress(*event) ? 0 : 1;
#endif
    };
  }
  auto out = detail::sized<adead_train_outcome>();
  adead_status status = adead_train_job(job.get(), device.get(), &opened, &raw, &out);
  return detail::computed(status, TrainOutcome{out.steps, out.held_out_loss, out.accuracy, out.sha256, out.device});
}

}  // namespace ADEAD_HPP_MODE
}  // namespace adead

#endif
