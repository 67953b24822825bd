/* JSON and traces. core/src/profile/text.rs writes the same. */
#include "internal.h"

#include <string.h>

/* Commas are put where they belong. */
static void next(Text *json) {
  if (json->length && !strchr("{[:", json->bytes[json->length - 1])) put(json, ",");
}

static void open(Text *json, const char *bracket) {
  next(json);
  put(json, bracket);
}

static void quoted(Text *json, const char *words) {
  static const char hex[] = "0123456789abcdef";
  next(json);
  put(json, "\"");
  for (; *words; words++) {
    unsigned char c = (unsigned char)*words;
    if (c == '"' || c == '\\') {
      put(json, "\\");
      put_bytes(json, words, 1);
    } else if (c < ' ') {
      char escape[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};
      put_bytes(json, escape, sizeof escape);
    } else {
      put_bytes(json, words, 1);
    }
  }
  put(json, "\"");
}

static void key(Text *json, const char *name) {
  quoted(json, name);
  put(json, ":");
}

static void field(Text *json, const char *name, const char *words) {
  key(json, name);
  quoted(json, words);
}

static void number(Text *json, const char *name, uint64_t value) {
  key(json, name);
  put_number(json, value);
}

/* A number with six decimals; 0 or more. */
static void decimal(Text *json, const char *name, double value) {
  uint64_t integer = whole(value), rest = whole((value - (double)integer) * 1e6 + 0.5), digit;
  if (rest > 999999) {
    integer += integer != (uint64_t)-1;
    rest = 0;
  }
  number(json, name, integer);
  if (!rest) return;
  put(json, ".");
  for (digit = 100000; digit; digit /= 10) put_number(json, rest / digit % 10);
}

static void span(Text *json, const char *name, uint64_t begin_ns, uint64_t end_ns) {
  key(json, name);
  open(json, "{");
  number(json, "begin_ns", begin_ns);
  number(json, "end_ns", end_ns);
  put(json, "}");
}

static void list(Text *json, const char *name) {
  key(json, name);
  open(json, "[");
}

static const char *activity(adead_activity value) {
  static const char *const names[] = {"operation", "kernel", "replay", "upload", "download", "copy", "clear"};
  return value >= 0 && value < (adead_activity)(sizeof names / sizeof *names) ? names[value] : "operation";
}

static void reason(Text *json, const char *words, uint64_t threshold) {
  key(json, "reason");
  next(json);
  put(json, "\"");
  put_reason(json, words, threshold);
  put(json, "\"");
}

/* What JSON and a trace say of a record. */
static void details(Text *json, const adead_profile_record *it) {
  field(json, "device", it->device_id);
  reason(json, it->reason, it->threshold);
  field(json, "operands", it->operands);
  number(json, "flops", whole(it->flops));
  number(json, "bytes", whole(it->bytes));
  if (it->has_cycles) number(json, "cycles", it->cycles);
}

static void device(Text *json, const adead_profile_device *it) {
  open(json, "{");
  field(json, "id", it->id);
  number(json, "work_ns", it->work_ns);
  number(json, "uploaded", it->uploaded);
  number(json, "downloaded", it->downloaded);
  if (it->figures) {
    decimal(json, "peak_gflops", it->peak_gflops);
    decimal(json, "peak_gbytes", it->peak_gbytes);
    number(json, "calibrated", (uint64_t)it->calibrated);
    field(json, "figures", it->figures);
  }
  put(json, "}");
}

static void total(Text *json, const adead_profile_total *it) {
  open(json, "{");
  field(json, "activity", activity(it->activity));
  field(json, "name", it->name);
  field(json, "device", it->device_id);
  reason(json, it->reason, it->threshold);
  number(json, "count", it->count);
  number(json, "timed", it->timed);
  number(json, "ns", it->ns);
  number(json, "min_ns", it->min_ns);
  number(json, "max_ns", it->max_ns);
  number(json, "flops", whole(it->flops));
  number(json, "bytes", whole(it->bytes));
  decimal(json, "mean_ns", it->mean_ns);
  decimal(json, "gflops", it->gflops);
  decimal(json, "gbytes", it->gbytes);
  decimal(json, "of_peak", it->of_peak);
  put(json, "}");
}

static void record(Text *json, const adead_profile_record *it) {
  open(json, "{");
  field(json, "activity", activity(it->activity));
  field(json, "name", it->name);
  details(json, it);
  number(json, "thread", it->thread);
  number(json, "stream", it->stream);
  span(json, "host", it->host_begin_ns, it->host_end_ns);
  if (it->has_work) span(json, "work", it->work_begin_ns, it->work_end_ns);
  put(json, "}");
}

adead_status adead_profile_json(const adead_profile *profile, char **out) {
  Text json = {NULL, 0, 0, 0};
  adead_profile_summary all;
  adead_profile_device of_device;
  adead_profile_total of_total;
  adead_profile_record of_record;
  size_t i;
  adead_status status = out ? summary_of(profile, &all) : adead_profile_report(profile, NULL);
  if (status) return status;
  open(&json, "{");
  field(&json, "version", adead_version());
  number(&json, "ns", all.ns);
  number(&json, "busy_ns", all.busy_ns);
  number(&json, "overlapped_ns", all.overlapped_ns);
  number(&json, "dropped", all.dropped);
  decimal(&json, "overlap", all.overlap);
  list(&json, "devices");
  for (i = 0; !status && i < all.devices; i++)
    if (!(status = device_of(profile, i, &of_device))) device(&json, &of_device);
  put(&json, "]");
  list(&json, "totals");
  for (i = 0; !status && i < all.totals; i++)
    if (!(status = total_of(profile, i, &of_total))) total(&json, &of_total);
  put(&json, "]");
  list(&json, "records");
  for (i = 0; !status && i < all.records; i++)
    if (!(status = record_of(profile, i, &of_record))) record(&json, &of_record);
  put(&json, "]}");
  return give(&json, status, out);
}

static void process(Text *json, size_t number_of, const char *name) {
  open(json, "{");
  field(json, "name", "process_name");
  field(json, "ph", "M");
  number(json, "pid", number_of);
  number(json, "tid", 0);
  key(json, "args");
  open(json, "{");
  field(json, "name", name);
  put(json, "}}");
}

static void event(Text *json, const adead_profile_record *it, const char *category, size_t number_of, size_t row,
                  uint64_t begin_ns, uint64_t end_ns) {
  open(json, "{");
  field(json, "name", it->name);
  field(json, "cat", category);
  field(json, "ph", "X");
  number(json, "pid", number_of);
  number(json, "tid", row);
  decimal(json, "ts", (double)begin_ns / 1e3);
  decimal(json, "dur", (double)(end_ns - begin_ns) / 1e3);
  key(json, "args");
  open(json, "{");
  details(json, it);
  put(json, "}}");
}

adead_status adead_profile_trace(const adead_profile *profile, char **out) {
  Text json = {NULL, 0, 0, 0};
  adead_profile_summary all;
  adead_profile_device of_device;
  adead_profile_record it;
  size_t i;
  adead_status status = out ? summary_of(profile, &all) : adead_profile_report(profile, NULL);
  if (status) return status;
  open(&json, "{");
  field(&json, "displayTimeUnit", "ns");
  list(&json, "traceEvents");
  process(&json, 0, "host");
  for (i = 0; !status && i < all.devices; i++)
    if (!(status = device_of(profile, i, &of_device))) process(&json, i + 1, of_device.id);
  for (i = 0; !status && i < all.records; i++) {
    int on_cpu;
    if ((status = record_of(profile, i, &it))) break;
    on_cpu = !strcmp(it.device_id, "cpu");
    if (!on_cpu) event(&json, &it, "call", 0, it.thread, it.host_begin_ns, it.host_end_ns);
    if (it.has_work)
      event(&json, &it, activity(it.activity), it.device + 1, on_cpu ? it.thread : it.stream, it.work_begin_ns, it.work_end_ns);
  }
  put(&json, "]}");
  return give(&json, status, out);
}
