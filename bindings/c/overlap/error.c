/* The text of the last failure on a thread. */
#include "internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char text[TEXT];
static _Thread_local size_t failures;

const char *adead_overlap_last_error(void) { return text; }

uint32_t adead_overlap_abi_version(void) { return ADEAD_OVERLAP_ABI_VERSION; }

size_t overlap_failures(void) { return failures; }

adead_status overlap_fail(adead_status status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  failures++;
  return status;
}

adead_status overlap_check(adead_status status) { return status ? overlap_fail(status, "%s", adead_last_error()) : ADEAD_OK; }

adead_status overlap_failed(adead_status status, const char *callback, size_t batch, size_t before) {
  char number[16], cause[TEXT];
  const char *name = adead_status_name(status), *last = adead_last_error();
  if (!name) {
    snprintf(number, sizeof number, "%d", (int)status);
    name = number;
  }
  if (failures != before) {
    /* The callback passed on what this library told it. */
    memcpy(cause, text, sizeof cause);
    return overlap_fail(status, "%s of batch %zu returned %s: %s", callback, batch, name, cause);
  }
  if (!*last) return overlap_fail(status, "%s of batch %zu returned %s", callback, batch, name);
  return overlap_fail(status, "%s of batch %zu returned %s; libadead's last error on its thread: %s", callback, batch, name,
                      last);
}
