// Profiles: what they record, what they refuse, and their texts.
#include <adead/profile.hpp>

#include "check.hpp"

#include <string>

using namespace adead;

namespace {

void run(const Context &context, int times) {
  Tensor x = OK(context.tensor({3, 4}, some_values(12, 1)));
  Tensor w = OK(context.tensor({4, 5}, some_values(20, 2)));
  for (int i = 0; i < times; i++) {
    Tensor y = OK(context.matmul(x, w));
    Tensor z = OK(context.softmax(y));
  }
}

void records(const Context &context) {
  Profile profile = OK(Profile::begin(context));
  run(context, 10);
  ProfileReport report = OK(profile.finish());
  CHECK(report.records.size() == 20 && report.totals.size() == 2 && report.devices.size() == 1 && report.dropped == 0);
  std::uint64_t work = 0;
  for (std::size_t i = 0; i < 20; i++) {
    const ProfileRecord &it = report.records[i];
    CHECK(it.activity == Activity::operation && it.name == (i % 2 ? "softmax" : "matmul") && it.device == "cpu");
    CHECK(it.operands == (i % 2 ? "f32[3, 5] -> f32[3, 5]" : "f32[3, 4], f32[4, 5] -> f32[3, 5]"));
    CHECK(it.reason == "only device" && it.threshold == 0 && it.thread == 0 && it.stream == 0);
    CHECK(it.work && it.work->begin_ns == it.host.begin_ns && it.work->end_ns == it.host.end_ns);
    CHECK(it.host.end_ns <= report.ns && (i % 2 || it.flops == 2 * 3 * 4 * 5) && it.bytes > 0);
    work += it.work->ns();
  }
  CHECK(report.devices[0].id == "cpu" && report.devices[0].work_ns == work && report.busy_ns == work);
  CHECK(report.devices[0].peak_gflops > 0 && !report.devices[0].figures.empty() && report.overlap == 0);
  for (const ProfileTotal &total : report.totals) CHECK(total.count == 10 && total.timed == 10 && total.min_ns <= total.max_ns);
  CHECK(report.totals[0].ns + report.totals[1].ns == work && report.totals[0].ns >= report.totals[1].ns);
  CHECK(std::string(name(report.records[0].activity)) == "operation");
  CHECK(OK(profile.report()).records.size() == 20);
  std::string table = OK(profile_table(profile)), json = OK(profile_json(profile)), trace = OK(profile_trace(profile));
  CHECK(table.rfind("name ", 0) == 0 && table.find("20 records in ") != std::string::npos);
  CHECK(json.find("\"ns\":" + std::to_string(report.ns) + ",") != std::string::npos && json.back() == '}');
  CHECK(trace.rfind("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[", 0) == 0 && trace.back() == '}');
  const char *raw = nullptr;
  CHECK(adead_profile_table(profile.get(), &raw) == ADEAD_OK && table == raw);
  Profile under_way = OK(Profile::begin(context));
  FAILS(NotReady, not_ready, "finish it first", profile_json(under_way));
}

void misuse(const Context &context) {
  {
    Profile profile = OK(Profile::begin(context, 3));
    FAILS(InvalidArgument, invalid_argument, "under way", Profile::begin(context));
    FAILS(NotReady, not_ready, "finish it first", profile.report());
    run(context, 2);
    ProfileReport report = OK(profile.finish());
    CHECK(report.records.size() == 3 && report.dropped == 1);
    FAILS(InvalidArgument, invalid_argument, "finished already", profile.finish());
    // Moved, it is the same one; destroyed, it ends.
    Profile other = OK(Profile::begin(context));
    profile = std::move(other);
    FAILS(InvalidArgument, invalid_argument, "profile is NULL", other.finish());
  }
  Profile profile = OK(Profile::begin(context));
  CHECK(OK(profile.finish()).records.empty());
}

}  // namespace

int main() {
  Context context = OK(Context::open("cpu"));
  records(context);
  misuse(context);
  std::printf("profiles as they should be\n");
  return 0;
}
