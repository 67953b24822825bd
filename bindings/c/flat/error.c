/* The text of a thread's last failure. */
#include "internal.h"

#include <stdarg.h>
#include <stdio.h>

static _Thread_local char text[1024];

const char *adead_flat_last_error(void) { return text; }

adead_status flat_fail(adead_status status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return status;
}

adead_status flat_check(adead_status status) { return status ? flat_fail(status, "%s", adead_last_error()) : ADEAD_OK; }
