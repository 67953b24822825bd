// Profiles: how long a context's operations, kernels and transfers took, and where they ran. docs/profile.md is the
// guide.
#ifndef ADEAD_PROFILE_HPP
#define ADEAD_PROFILE_HPP

#include <adead/context.hpp>

namespace adead {
inline namespace ADEAD_HPP_MODE {

/// A begin and an end, in nanoseconds since the profile's start.
struct ProfileSpan {
  std::uint64_t begin_ns, end_ns;
  std::uint64_t ns() const noexcept { return end_ns - begin_ns; }
};

/// A piece of work: an operation, a user's kernel or a transfer.
struct ProfileRecord {
  Activity activity;
  /// The name of the operation or the kernel; for other work, the name of its kind.
  std::string name;
  /// The operands: dtypes and shapes, a kernel's workgroups, or the operation that a transfer serves.
  std::string operands;
  /// The device's id, and why the work ran there: "only device", "cheapest" and others. For "threshold", also the
  /// threshold in elements.
  std::string device, reason;
  std::uint64_t threshold;
  /// The calling thread, counted from 0, and the device's stream; 0 is the context's own.
  std::size_t thread, stream;
  /// The call. On an asynchronous device, it only enqueues the work.
  ProfileSpan host;
  /// The work itself, on the host's clock. Empty if the device measures no times, and for work that had not finished
  /// when the profile ended.
  std::optional<ProfileSpan> work;
  /// Cycles of the processor's time stamp counter; empty on GPUs and on processors without a counter.
  std::optional<std::uint64_t> cycles;
  /// Floating-point operations, a multiply-add counting as two, and bytes read and written or moved. 0 if unknown.
  double flops, bytes;
};

/// The total of records with one kind, name, device and reason.
struct ProfileTotal {
  Activity activity;
  std::string name, device, reason;
  std::uint64_t threshold;
  /// The number of records, and of those with a time. The fields below cover only these.
  std::uint64_t count, timed;
  /// The sum, the minimum, the maximum and the mean of the times, in nanoseconds.
  std::uint64_t ns, min_ns, max_ns;
  double mean_ns;
  double flops, bytes;
  /// Floating-point operations and bytes per nanosecond.
  double gflops, gbytes;
  /// The fraction of the device's peak rate. It can exceed 1.
  double of_peak;
};

/// A device that worked.
struct ProfileDevice {
  std::string id;
  /// Nanoseconds of work other than transfers; bytes uploaded to and downloaded from the device.
  std::uint64_t work_ns, uploaded, downloaded;
  /// Its peak rates as the dispatcher knows them, and their source; 0 and "" if unknown.
  double peak_gflops, peak_gbytes;
  std::string figures;
  /// Whether the rates were measured on this machine.
  bool calibrated;
};

/// The report of a profile. Times are nanoseconds.
struct ProfileReport {
  /// Every piece of work, in the order in which the calls returned.
  std::vector<ProfileRecord> records;
  /// By kind, name, device and reason; the one with the longest total time is first.
  std::vector<ProfileTotal> totals;
  /// The devices that worked.
  std::vector<ProfileDevice> devices;
  /// Records beyond the limit, which are only counted.
  std::uint64_t dropped = 0;
  /// Nanoseconds from the profile's start to its end; with any work; and with at least two of work on the CPU, work on
  /// a GPU and transfers.
  std::uint64_t ns = 0, busy_ns = 0, overlapped_ns = 0;
  /// The ratio of overlapped_ns to busy_ns.
  double overlap = 0;
};

/// A profile of a context. It is active from begin() on, and ends when it is destroyed. One thread at a time may use
/// it.
class Profile {
 public:
  Profile() noexcept = default;
  explicit Profile(adead_profile *raw) noexcept : handle_(raw) {}

  /// Starts to record the work of a context and its streams, in every thread. It keeps at most `records` records; 0
  /// means 65,536. Records beyond the limit are only counted. invalid_argument while another profile of the context is
  /// active.
  static Returned<Profile> begin(const Context &context, std::size_t records = 0) {
    return detail::asked<Profile>(adead_profile_begin, context.get(), records);
  }

  /// Ends the profile and returns its report. Waits for everything that the context has enqueued; synchronise your own
  /// streams before. invalid_argument if the profile has already ended.
  Returned<ProfileReport> finish() {
    adead_status status = adead_profile_finish(get());
    return status ? detail::done(status, ProfileReport()) : report();
  }

  /// Returns the report of a finished profile again.
  Returned<ProfileReport> report() const {
    ProfileReport to;
    auto all = detail::sized<adead_profile_summary>();
    adead_status status = adead_profile_report(get(), &all);
    to.dropped = all.dropped;
    to.ns = all.ns;
    to.busy_ns = all.busy_ns;
    to.overlapped_ns = all.overlapped_ns;
    to.overlap = all.overlap;
    to.records.reserve(all.records);
    for (std::size_t i = 0; !status && i < all.records; i++) {
      auto it = detail::sized<adead_profile_record>();
      status = adead_profile_record_at(get(), i, &it);
      if (status) break;
      std::optional<ProfileSpan> work;
      if (it.has_work) work = ProfileSpan{it.work_begin_ns, it.work_end_ns};
      std::optional<std::uint64_t> cycles;
      if (it.has_cycles) cycles = it.cycles;
      to.records.push_back({static_cast<Activity>(it.activity), it.name, it.operands, it.device_id, it.reason, it.threshold,
                            it.thread, it.stream, {it.host_begin_ns, it.host_end_ns}, work, cycles, it.flops, it.bytes});
    }
    for (std::size_t i = 0; !status && i < all.totals; i++) {
      auto it = detail::sized<adead_profile_total>();
      status = adead_profile_total_at(get(), i, &it);
      if (status) break;
      to.totals.push_back({static_cast<Activity>(it.activity), it.name, it.device_id, it.reason, it.threshold, it.count,
                           it.timed, it.ns, it.min_ns, it.max_ns, it.mean_ns, it.flops, it.bytes, it.gflops, it.gbytes,
                           it.of_peak});
    }
    for (std::size_t i = 0; !status && i < all.devices; i++) {
      auto it = detail::sized<adead_profile_device>();
      status = adead_profile_device_at(get(), i, &it);
      if (status) break;
      to.devices.push_back({it.id, it.work_ns, it.uploaded, it.downloaded, it.peak_gflops, it.peak_gbytes,
                            it.figures ? it.figures : "", it.calibrated != 0});
    }
    return detail::done(status, std::move(to));
  }

  adead_profile *get() const noexcept { return handle_.get(); }
  explicit operator bool() const noexcept { return static_cast<bool>(handle_); }

 private:
  detail::Handle<adead_profile, adead_profile_destroy> handle_;
};

namespace detail {
inline Returned<std::string> profile_text(const Profile &profile, adead_status (*write)(const adead_profile *, const char **)) {
  const char *text = "";
  adead_status status = write(profile.get(), &text);
  return done(status, std::string(text));
}
}  // namespace detail

/// Returns a finished profile as a table. not_ready while it is active, as for the next two functions.
inline Returned<std::string> profile_table(const Profile &profile) { return detail::profile_text(profile, adead_profile_table); }

/// Returns it as JSON.
inline Returned<std::string> profile_json(const Profile &profile) { return detail::profile_text(profile, adead_profile_json); }

/// Returns it as a trace for Perfetto and chrome://tracing.
inline Returned<std::string> profile_trace(const Profile &profile) { return detail::profile_text(profile, adead_profile_trace); }

}  // namespace ADEAD_HPP_MODE
}  // namespace adead

#endif
