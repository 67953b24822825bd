// Profiles: what a context's operations, kernels and transfers took, and where they ran. docs/profile.md.
#ifndef ADEAD_PROFILE_HPP
#define ADEAD_PROFILE_HPP

#include <adead/context.hpp>

namespace adead {
inline namespace ADEAD_HPP_MODE {

/// From when to when, in nanoseconds since the profile's beginning.
struct ProfileSpan {
  std::uint64_t begin_ns, end_ns;
  std::uint64_t ns() const noexcept { return end_ns - begin_ns; }
};

/// A piece of work: an operation, a user's kernel, a transfer.
struct ProfileRecord {
  Activity activity;
  /// The operation's or the kernel's name; of the others, that of their kind.
  std::string name;
  /// What it worked on: dtypes and shapes, a kernel's workgroups, the operation that bytes travel for.
  std::string operands;
  /// The device's id, and why there: "only device", "cheapest" and others; of "threshold", of how many elements.
  std::string device, reason;
  std::uint64_t threshold;
  /// The thread that called, counted from 0, and the device's stream: 0 is the context's own.
  std::size_t thread, stream;
  /// The call. Where the device works behind the caller's back, it only hands work over.
  ProfileSpan host;
  /// The work itself, on the host's clock. Not there where the device takes no times, or the work was not done when the profile
  /// ended.
  std::optional<ProfileSpan> work;
  /// Cycles of the processor's time stamp counter; not there on GPUs and where the processor has none.
  std::optional<std::uint64_t> cycles;
  /// Floating-point operations, a multiply-add being two, and bytes read and written or moved. 0 where nobody knows.
  double flops, bytes;
};

/// What was recorded of one kind and name, on one device, for one reason.
struct ProfileTotal {
  Activity activity;
  std::string name, device, reason;
  std::uint64_t threshold;
  /// How often, and how many of these have a time; the numbers below are of those.
  std::uint64_t count, timed;
  /// Nanoseconds of all, of the fastest, of the slowest, and on average.
  std::uint64_t ns, min_ns, max_ns;
  double mean_ns;
  double flops, bytes;
  /// Floating-point operations and bytes a nanosecond.
  double gflops, gbytes;
  /// The share of the device's peak; it can be above 1.
  double of_peak;
};

/// A device that worked.
struct ProfileDevice {
  std::string id;
  /// Nanoseconds of work other than transfers; bytes that it was sent and that it sent back.
  std::uint64_t work_ns, uploaded, downloaded;
  /// Its best rates as the dispatcher knows them, 0 where it does not, and where they are from, "" then.
  double peak_gflops, peak_gbytes;
  std::string figures;
  /// Whether these were measured on this machine.
  bool calibrated;
};

/// What was recorded. Times are nanoseconds.
struct ProfileReport {
  /// Every piece of work, in the order in which the calls returned.
  std::vector<ProfileRecord> records;
  /// By kind, name, device and reason; what took longest is first.
  std::vector<ProfileTotal> totals;
  /// The devices that worked.
  std::vector<ProfileDevice> devices;
  /// Records beyond the limit, which are only counted.
  std::uint64_t dropped = 0;
  /// From the profile's beginning to its end; in which anything was under way; in which at least two of work on the CPU, work on a
  /// GPU and transfers were.
  std::uint64_t ns = 0, busy_ns = 0, overlapped_ns = 0;
  /// The share of busy_ns that overlapped_ns is.
  double overlap = 0;
};

/// A profile of a context, under way from begin() on. Destroyed, it ends. One thread uses it at a time.
class Profile {
 public:
  Profile() noexcept = default;
  explicit Profile(adead_profile *raw) noexcept : handle_(raw) {}

  /// Begins to record what a context and its streams do, in every thread: up to so many records, 0 for 65,536; what is beyond is
  /// only counted. invalid_argument while another profile of the context is under way.
  static Returned<Profile> begin(const Context &context, std::size_t records = 0) {
    return detail::asked<Profile>(adead_profile_begin, context.get(), records);
  }

  /// Ends it. Waits for what the context enqueued; synchronize streams of your own before. invalid_argument if it is finished
  /// already.
  Returned<ProfileReport> finish() {
    adead_status status = adead_profile_finish(get());
    return status ? detail::done(status, ProfileReport()) : report();
  }

  /// What a finished profile recorded, once more.
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

/// A finished profile as a table. not_ready while it is under way, as of the other two.
inline Returned<std::string> profile_table(const Profile &profile) { return detail::profile_text(profile, adead_profile_table); }

/// As JSON.
inline Returned<std::string> profile_json(const Profile &profile) { return detail::profile_text(profile, adead_profile_json); }

/// As a trace for Perfetto and chrome://tracing.
inline Returned<std::string> profile_trace(const Profile &profile) { return detail::profile_text(profile, adead_profile_trace); }

}  // namespace ADEAD_HPP_MODE
}  // namespace adead

#endif
