/* Profiles: what they record of operations and transfers, and every misuse as a status. */
#include "check.h"

static adead_profile_summary summary_of(const adead_profile *profile) {
  adead_profile_summary it;
  memset(&it, 0x55, sizeof it);
  it.struct_size = sizeof it;
  OK(adead_profile_report(profile, &it));
  return it;
}

static adead_profile_record record_of(const adead_profile *profile, size_t index) {
  adead_profile_record it;
  memset(&it, 0x55, sizeof it);
  it.struct_size = sizeof it;
  OK(adead_profile_record_at(profile, index, &it));
  return it;
}

static void run(const adead_context *context, const adead_tensor *a, const adead_tensor *b, int times) {
  int i;
  for (i = 0; i < times; i++) {
    adead_tensor *y = NULL, *z = NULL;
    OK(adead_tensor_matmul(context, a, b, NULL, &y));
    OK(adead_tensor_softmax(context, y, -1, &z));
    adead_tensor_destroy(y);
    adead_tensor_destroy(z);
  }
}

/* They are Rust's (its tests compare them), and the same texts each time. */
static void texts(const adead_profile *profile, uint64_t ns) {
  const char *table = NULL, *json = NULL, *trace = NULL, *again = NULL;
  char expected[64];
  OK(adead_profile_table(profile, &table));
  CHECK(!strncmp(table, "name ", 5) && strstr(table, "\nmatmul ") && strstr(table, "20 records in "));
  OK(adead_profile_json(profile, &json));
  snprintf(expected, sizeof expected, "{\"version\":\"%s\",\"ns\":%llu,", adead_version(), (unsigned long long)ns);
  CHECK(!strncmp(json, expected, strlen(expected)) && json[strlen(json) - 1] == '}');
  OK(adead_profile_trace(profile, &trace));
  CHECK(strstr(trace, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[{") == trace && trace[strlen(trace) - 1] == '}');
  OK(adead_profile_table(profile, &again));
  CHECK(again == table);
}

/* The numbers are those of what ran, and the sums are those of the records. */
static void records(const adead_context *context, const adead_tensor *a, const adead_tensor *b) {
  adead_profile *profile = NULL;
  adead_profile_summary all;
  adead_profile_total total;
  adead_profile_device device;
  size_t i;
  uint64_t work = 0, counted = 0;
  run(context, a, b, 1);
  OK(adead_profile_begin(context, 0, &profile));
  run(context, a, b, 10);
  OK(adead_profile_finish(profile));
  run(context, a, b, 1);
  all = summary_of(profile);
  CHECK(all.struct_size == sizeof all && all.records == 20 && all.totals == 2 && all.devices == 1 && all.dropped == 0);
  CHECK(all.busy_ns > 0 && all.busy_ns <= all.ns && all.overlapped_ns == 0 && all.overlap == 0);
  for (i = 0; i < all.records; i++) {
    adead_profile_record it = record_of(profile, i);
    CHECK(it.activity == ADEAD_ACTIVITY_OPERATION && it.device == 0 && !strcmp(it.device_id, "cpu"));
    CHECK(!strcmp(it.name, i % 2 ? "softmax" : "matmul"));
    CHECK(!strcmp(it.operands, i % 2 ? "f32[2, 4] -> f32[2, 4]" : "f32[2, 3], f32[3, 4] -> f32[2, 4]"));
    CHECK(!strcmp(it.reason, "only device") && it.threshold == 0 && it.thread == 0 && it.stream == 0);
    CHECK(it.host_begin_ns <= it.host_end_ns && it.host_end_ns <= all.ns);
    CHECK(it.has_work == 1 && it.work_begin_ns == it.host_begin_ns && it.work_end_ns == it.host_end_ns);
    CHECK((it.has_cycles == 0 || it.has_cycles == 1) && (it.has_cycles || it.cycles == 0) && it.reserved == 0);
    CHECK(i % 2 ? it.flops > 0 : it.flops == 2 * 2 * 3 * 4);
    CHECK(it.bytes == (i % 2 ? 4 * (8 + 8) : 4 * (6 + 12 + 8)));
    work += it.work_end_ns - it.work_begin_ns;
  }
  for (i = 0; i < all.totals; i++) {
    total.struct_size = sizeof total;
    OK(adead_profile_total_at(profile, i, &total));
    CHECK(total.count == 10 && total.timed == 10 && total.activity == ADEAD_ACTIVITY_OPERATION && total.device == 0);
    CHECK(total.min_ns <= total.max_ns && total.max_ns <= total.ns && total.reserved == 0);
    CHECK(total.mean_ns == (double)total.ns / 10 && total.gbytes == total.bytes / (double)total.ns);
    CHECK(!strcmp(total.name, "matmul") ? total.flops == 10 * 48 : !strcmp(total.name, "softmax"));
    CHECK(!strcmp(total.reason, "only device") && !strcmp(total.device_id, "cpu") && total.of_peak > 0);
    counted += total.ns;
  }
  device.struct_size = sizeof device;
  OK(adead_profile_device_at(profile, 0, &device));
  CHECK(!strcmp(device.id, "cpu") && device.uploaded == 0 && device.downloaded == 0);
  CHECK(device.work_ns == work && counted == work && all.busy_ns == work);
  CHECK(device.peak_gflops > 0 && device.peak_gbytes > 0 && device.figures && strchr(device.figures, ':'));
  CHECK(device.calibrated == 0 || device.calibrated == 1);
  texts(profile, all.ns);
  adead_profile_destroy(profile);
}

/* What is beyond the limit is only counted. */
static void limited(const adead_context *context, const adead_tensor *a, const adead_tensor *b) {
  adead_profile *profile = NULL;
  adead_profile_summary all;
  OK(adead_profile_begin(context, 3, &profile));
  run(context, a, b, 5);
  OK(adead_profile_finish(profile));
  all = summary_of(profile);
  CHECK(all.records == 3 && all.dropped == 7);
  adead_profile_destroy(profile);
  OK(adead_profile_begin(context, 0, &profile));
  OK(adead_profile_finish(profile));
  all = summary_of(profile);
  CHECK(all.records == 0 && all.totals == 0 && all.devices == 0 && all.busy_ns == 0 && all.overlap == 0);
  adead_profile_destroy(profile);
}

/* Transfers of a stream of the caller's own. */
static void transfers(const adead_context *context) {
  float values[64];
  adead_profile *profile = NULL;
  adead_stream *stream = NULL;
  adead_buffer *from = NULL, *to = NULL;
  adead_profile_summary all;
  static const char *names[] = {"upload", "copy", "clear"};
  static const adead_activity kinds[] = {ADEAD_ACTIVITY_UPLOAD, ADEAD_ACTIVITY_COPY, ADEAD_ACTIVITY_CLEAR};
  size_t i;
  some_values(values, 64, 3);
  OK(adead_stream_create(context, &stream));
  OK(adead_buffer_create(context, NULL, sizeof values, &from));
  OK(adead_buffer_create(context, NULL, sizeof values, &to));
  OK(adead_profile_begin(context, 0, &profile));
  OK(adead_stream_upload(stream, from, 0, values, sizeof values));
  OK(adead_stream_copy(stream, from, 0, to, 0, sizeof values));
  OK(adead_stream_clear(stream, to, 0, sizeof values));
  OK(adead_stream_sync(stream));
  OK(adead_profile_finish(profile));
  all = summary_of(profile);
  CHECK(all.records == 3);
  for (i = 0; i < 3; i++) {
    adead_profile_record it = record_of(profile, i);
    CHECK(it.activity == kinds[i] && !strcmp(it.name, names[i]) && !strcmp(it.operands, ""));
    CHECK(it.bytes == sizeof values && it.flops == 0 && !strcmp(it.reason, "stream's device") && it.stream > 0);
  }
  adead_stream_destroy(stream);
  adead_buffer_destroy(from);
  adead_buffer_destroy(to);
  adead_profile_destroy(profile);
}

static void misuse(const adead_context *context, const adead_tensor *a, const adead_tensor *b) {
  adead_profile *profile = NULL, *other = NULL;
  adead_profile_summary all;
  adead_profile_record record;
  adead_profile_total total;
  adead_profile_device device;
  adead_context *another = NULL;
  const char *text = "kept";
  all.struct_size = sizeof all;
  record.struct_size = sizeof record;
  total.struct_size = sizeof total;
  device.struct_size = sizeof device;
  FAILS(adead_profile_begin(NULL, 0, &profile), ADEAD_INVALID_ARGUMENT, "context is NULL");
  FAILS(adead_profile_begin(context, 0, NULL), ADEAD_INVALID_ARGUMENT, "out is NULL");
  FAILS(adead_profile_finish(NULL), ADEAD_INVALID_ARGUMENT, "profile is NULL");
  FAILS(adead_profile_report(NULL, &all), ADEAD_INVALID_ARGUMENT, "profile is NULL");
  CHECK(!profile);
  adead_profile_destroy(NULL);

  OK(adead_profile_begin(context, 0, &profile));
  FAILS(adead_profile_begin(context, 0, &other), ADEAD_INVALID_ARGUMENT, "under way");
  CHECK(!other);
  FAILS(adead_profile_report(profile, &all), ADEAD_NOT_READY, "finish it first");
  FAILS(adead_profile_record_at(profile, 0, &record), ADEAD_NOT_READY, "finish it first");
  FAILS(adead_profile_total_at(profile, 0, &total), ADEAD_NOT_READY, "finish it first");
  FAILS(adead_profile_device_at(profile, 0, &device), ADEAD_NOT_READY, "finish it first");
  FAILS(adead_profile_table(profile, &text), ADEAD_NOT_READY, "finish it first");
  FAILS(adead_profile_json(NULL, &text), ADEAD_INVALID_ARGUMENT, "profile is NULL");
  FAILS(adead_profile_trace(profile, NULL), ADEAD_INVALID_ARGUMENT, "out is NULL");
  CHECK(!strcmp(text, "kept"));
  run(context, a, b, 1);
  OK(adead_profile_finish(profile));
  FAILS(adead_profile_finish(profile), ADEAD_INVALID_ARGUMENT, "finished already");
  FAILS(adead_profile_report(profile, NULL), ADEAD_INVALID_ARGUMENT, "out is NULL");
  FAILS(adead_profile_record_at(profile, 2, &record), ADEAD_INVALID_ARGUMENT, "index is 2; the profile has 2 records");
  FAILS(adead_profile_total_at(profile, 9, &total), ADEAD_INVALID_ARGUMENT, "index is 9; the profile has 2 totals");
  FAILS(adead_profile_device_at(profile, 1, &device), ADEAD_INVALID_ARGUMENT, "index is 1; the profile has 1 devices");
  FAILS(adead_profile_record_at(profile, 0, NULL), ADEAD_INVALID_ARGUMENT, "out is NULL");
  record.struct_size = 8;
  FAILS(adead_profile_record_at(profile, 0, &record), ADEAD_INVALID_ARGUMENT, "adead_profile_record");
  CHECK(summary_of(profile).records == 2);

  /* A finished one is no longer under way, whatever becomes of it; one that is given up ends. */
  OK(adead_profile_begin(context, 0, &other));
  adead_profile_destroy(profile);
  FAILS(adead_profile_begin(context, 0, &profile), ADEAD_INVALID_ARGUMENT, "under way");
  adead_profile_destroy(other);
  OK(adead_profile_begin(context, 0, &profile));
  adead_profile_destroy(profile);

  /* Contexts have their own, which outlives them. */
  OK(adead_context_open("cpu", NULL, &another));
  OK(adead_profile_begin(another, 0, &profile));
  OK(adead_profile_begin(context, 0, &other));
  run(another, a, b, 1);
  adead_context_destroy(another);
  OK(adead_profile_finish(other));
  OK(adead_profile_finish(profile));
  CHECK(summary_of(profile).records == 2 && summary_of(other).records == 0);
  adead_profile_destroy(profile);
  adead_profile_destroy(other);
}

int main(void) {
  float values[12];
  adead_context *context = NULL;
  adead_tensor *a, *b;
  some_values(values, 12, 1);
  a = tensor(values, 2, 2, 3);
  b = tensor(values, 2, 3, 4);
  OK(adead_context_open("cpu", NULL, &context));
  records(context, a, b);
  limited(context, a, b);
  transfers(context);
  misuse(context, a, b);
  adead_tensor_destroy(a);
  adead_tensor_destroy(b);
  adead_context_destroy(context);
  printf("profiles as they should be\n");
  return 0;
}
