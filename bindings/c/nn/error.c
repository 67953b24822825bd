/* The text of the last failure on a thread. */
#include "internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char text[4096];

const char *adead_nn_last_error(void) { return text; }

uint32_t adead_nn_abi_version(void) { return ADEAD_NN_ABI_VERSION; }

adead_status nn_fail(adead_status status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return status;
}

adead_status nn_check(adead_status status) { return status ? nn_fail(status, "%s", adead_last_error()) : ADEAD_OK; }

adead_status nn_out_of_memory(void) { return nn_fail(ADEAD_OUT_OF_MEMORY, "out of memory"); }

const char *nn_shown(const size_t *dims, size_t rank, char room[SHOWN]) {
  size_t length = 1, i;
  room[0] = '[';
  /* A number and its comma have at most 22 characters. */
  for (i = 0; i < rank && length + 28 < SHOWN; i++) {
    length += (size_t)snprintf(room + length, SHOWN - length, "%s%zu", i ? ", " : "", dims[i]);
  }
  memcpy(room + length, i < rank ? ", ...]" : "]", i < rank ? 7 : 2);
  return room;
}
