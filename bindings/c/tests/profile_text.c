/* The texts of libadead_profile are, byte for byte, those of the Rust crate for the same numbers: core/tests/profile.rs writes both.
 * In libadead's place stand functions that give these numbers.
 *   profile_text FOLDER */
#include <adead/profile.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../tests/profile/fixture.h"

const char *adead_version(void) { return version; }

adead_status adead_profile_report(const adead_profile *profile, adead_profile_summary *out) {
  if (!profile || !out) return ADEAD_INVALID_ARGUMENT;
  *out = summary;
  return ADEAD_OK;
}

#define AT(what)                                                                                                         \
  adead_status adead_profile_##what##_at(const adead_profile *profile, size_t index, adead_profile_##what *out) {        \
    if (!profile || index >= sizeof what##s / sizeof *what##s || out->struct_size != sizeof *out)                        \
      return ADEAD_INVALID_ARGUMENT;                                                                                     \
    *out = what##s[index];                                                                                               \
    return ADEAD_OK;                                                                                                     \
  }
AT(record)
AT(total)
AT(device)

static int differs(const char *folder, const char *name, adead_status (*write)(const adead_profile *, char **)) {
  static const char handle[1] = {0};
  char path[1024], *text = NULL, *expected;
  size_t length;
  FILE *file;
  int same;
  if (write(NULL, &text) != ADEAD_INVALID_ARGUMENT || text) return 1;
  if (write((const adead_profile *)handle, NULL) != ADEAD_INVALID_ARGUMENT) return 1;
  if (write((const adead_profile *)handle, &text) || !text) return 1;
  snprintf(path, sizeof path, "%s/%s", folder, name);
  file = fopen(path, "rb");
  if (!file) return 1;
  expected = malloc(1 << 20);
  length = expected ? fread(expected, 1, 1 << 20, file) : 0;
  fclose(file);
  same = length > 100 && length == strlen(text) && !memcmp(expected, text, length);
  if (!same) fprintf(stderr, "%s is not as in Rust:\n%s\n", name, text);
  adead_profile_text_destroy(text);
  free(expected);
  return !same;
}

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  adead_profile_text_destroy(NULL);
  if (differs(argv[1], "table.txt", adead_profile_table) | differs(argv[1], "report.json", adead_profile_json) |
      differs(argv[1], "trace.json", adead_profile_trace))
    return 1;
  printf("three texts as in Rust\n");
  return 0;
}
