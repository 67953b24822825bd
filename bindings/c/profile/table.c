/* The table. core/src/profile/text.rs writes the same. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

/* Columns; the first LEFT are aligned to the left. */
enum { COLUMNS = 11, LEFT = 3 };

/* A number with one decimal, below 100. */
static void tenths(Text *text, double value) {
  uint64_t all = whole(value * 10.0 + 0.5), integer = all / 10, tenth = all % 10;
  put_number(text, integer >= 100 ? whole(value + 0.5) : integer);
  if (integer >= 100 || !tenth) return;
  put(text, ".");
  put_number(text, tenth);
}

/* Nanoseconds in a unit that suits them. */
static void duration(Text *text, double ns) {
  if (ns < 999.5) {
    tenths(text, ns);
    put(text, " ns");
  } else if (ns < 999.5e3) {
    tenths(text, ns / 1e3);
    put(text, " \xc2\xb5s");
  } else if (ns < 999.5e6) {
    tenths(text, ns / 1e6);
    put(text, " ms");
  } else {
    tenths(text, ns / 1e9);
    put(text, " s");
  }
}

/* A known rate of work that was timed. */
static void known(Text *text, const adead_profile_total *of, double value, const char *unit) {
  if (!(value > 0)) {
    put(text, "-");
    return;
  }
  if (of->timed) {
    tenths(text, value);
  } else {
    put(text, "-");
  }
  put(text, unit);
}

static void timed(Text *text, const adead_profile_total *of, double ns) {
  if (of->timed) {
    duration(text, ns);
  } else {
    put(text, "-");
  }
}

/* The cells of a total, each behind the one before with a NUL between them. */
static void cells(Text *text, const adead_profile_total *it) {
  int i;
  for (i = 0; i < COLUMNS; i++) {
    switch (i) {
      case 0: put(text, it->name); break;
      case 1: put(text, it->device_id); break;
      case 2: put_reason(text, it->reason, it->threshold); break;
      case 3: put_number(text, it->count); break;
      case 4: timed(text, it, (double)it->ns); break;
      case 5: timed(text, it, it->mean_ns); break;
      case 6: timed(text, it, (double)it->min_ns); break;
      case 7: timed(text, it, (double)it->max_ns); break;
      case 8: known(text, it, it->gflops, ""); break;
      case 9: known(text, it, it->gbytes, ""); break;
      default: known(text, it, it->of_peak * 100.0, " %"); break;
    }
    put_bytes(text, "", 1);
  }
}

/* How many characters of UTF-8. */
static size_t characters(const char *words) {
  size_t count = 0;
  for (; *words; words++) count += ((unsigned char)*words & 0xc0) != 0x80;
  return count;
}

static void spaces(Text *text, size_t count) {
  while (count--) put(text, " ");
}

/* Rows of cells as lines. */
static void lines(Text *text, const char *cell, size_t rows) {
  size_t widths[COLUMNS] = {0}, row, i;
  const char *at = cell;
  for (row = 0; row < rows; row++) {
    for (i = 0; i < COLUMNS; i++, at += strlen(at) + 1) {
      size_t width = characters(at);
      if (width > widths[i]) widths[i] = width;
    }
  }
  at = cell;
  for (row = 0; row < rows; row++) {
    for (i = 0; i < COLUMNS; i++, at += strlen(at) + 1) {
      size_t pad = widths[i] - characters(at);
      spaces(text, (i ? 2 : 0) + (i < LEFT ? 0 : pad));
      put(text, at);
      spaces(text, i < LEFT ? pad : 0);
    }
    put(text, "\n");
  }
}

static void of_device(Text *text, const adead_profile_device *it) {
  put(text, it->id);
  put(text, ": ");
  duration(text, (double)it->work_ns);
  put(text, " of work, ");
  put_number(text, it->uploaded);
  put(text, " bytes up, ");
  put_number(text, it->downloaded);
  put(text, " bytes down");
  if (it->figures) {
    put(text, "; peak ");
    tenths(text, it->peak_gflops);
    put(text, " GFLOP/s, ");
    tenths(text, it->peak_gbytes);
    put(text, " GB/s (");
    put(text, it->figures);
    put(text, ")");
  }
  put(text, "\n");
}

adead_status adead_profile_table(const adead_profile *profile, char **out) {
  static const char head[] = "name\0device\0why\0count\0total\0mean\0min\0max\0GFLOP/s\0GB/s\0of peak";
  Text rows = {NULL, 0, 0, 0}, text = {NULL, 0, 0, 0};
  adead_profile_summary all;
  adead_profile_total total;
  adead_profile_device device;
  size_t i;
  adead_status status = out ? summary_of(profile, &all) : adead_profile_report(profile, NULL);
  if (status) return status;
  put_bytes(&rows, head, sizeof head);
  for (i = 0; !status && i < all.totals; i++)
    if (!(status = total_of(profile, i, &total))) cells(&rows, &total);
  if (rows.failed) text.failed = 1;
  if (!status && !rows.failed) lines(&text, rows.bytes, all.totals + 1);
  free(rows.bytes);
  for (i = 0; !status && i < all.devices; i++)
    if (!(status = device_of(profile, i, &device))) of_device(&text, &device);
  put_number(&text, all.records);
  put(&text, " records in ");
  duration(&text, (double)all.ns);
  put(&text, "; busy for ");
  duration(&text, (double)all.busy_ns);
  put(&text, ", ");
  tenths(&text, all.overlap * 100.0);
  put(&text, " % of it overlapped");
  if (all.dropped) {
    put(&text, "; ");
    put_number(&text, all.dropped);
    put(&text, " more were dropped");
  }
  put(&text, "\n");
  return give(&text, status, out);
}
