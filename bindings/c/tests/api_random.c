/* Random tensors: the draws of every language, and the errors. */
#include "check.h"

/* Writes a tensor's elements as the file has them. */
static void hex(const adead_tensor *tensor, char *to) {
  unsigned char bytes[256];
  size_t size = 0, i, count, at;
  adead_dtype dtype = ADEAD_DTYPE_F32;
  OK(adead_tensor_bytes(tensor, &size));
  CHECK(size <= sizeof bytes);
  OK(adead_tensor_read(tensor, bytes, size));
  OK(adead_tensor_dtype(tensor, &dtype));
  count = size / adead_dtype_size(dtype);
  for (i = 0; i < count; i++) {
    size_t width = adead_dtype_size(dtype);
    if (i > 0) *to++ = ' ';
    for (at = width; at > 0; at--) to += sprintf(to, "%02x", bytes[i * width + at - 1]);
  }
  *to = 0;
}

static void draws(const adead_context *context, const char *path) {
  const size_t two_three[] = {2, 3}, two_two[] = {2, 2}, four[] = {4}, five[] = {5}, six[] = {6};
  adead_random random = {7, 0};
  char line[512], found[512];
  size_t lines = 0;
  FILE *file = fopen(path, "rb");
  CHECK(file);
  while (fgets(line, sizeof line, file)) {
    adead_tensor *tensor = NULL;
    char *expected = strstr(line, ": ");
    if (line[0] == '#') continue;
    CHECK(expected);
    switch (lines++) {
      case 0: OK(adead_random_uniform(&random, context, 0, 1, two_three, 2, &tensor)); break;
      case 1: OK(adead_random_uniform(&random, context, -2.5, 4, five, 1, &tensor)); break;
      case 2: OK(adead_random_standard_normal(&random, context, two_two, 2, &tensor)); break;
      case 3: OK(adead_random_normal(&random, context, 3, 0.5f, four, 1, &tensor)); break;
      case 4: OK(adead_random_integers(&random, -10, 90, six, 1, &tensor)); break;
      default: OK(adead_random_permutation(&random, 8, &tensor)); break;
    }
    hex(tensor, found);
    adead_tensor_destroy(tensor);
    expected[strcspn(expected, "\r\n")] = 0;
    if (strcmp(found, expected + 2)) {
      fprintf(stderr, "%s\n  but drawn were %s\n", line, found);
      exit(1);
    }
  }
  fclose(file);
  CHECK(lines == 6 && random.draws == 6 && random.seed == 7);
}

static void errors(const adead_context *context) {
  const size_t one[] = {1}, many[] = {(size_t)1 << 40};
  adead_random random = {1, 3};
  adead_tensor *tensor = NULL;
  FAILS(adead_random_uniform(NULL, context, 0, 1, one, 1, &tensor), ADEAD_INVALID_ARGUMENT, "random is NULL");
  FAILS(adead_random_uniform(&random, NULL, 0, 1, one, 1, &tensor), ADEAD_INVALID_ARGUMENT, "context is NULL");
  FAILS(adead_random_uniform(&random, context, 0, 1, many, 1, &tensor), ADEAD_INVALID_ARGUMENT, "at most 17179869184");
  FAILS(adead_random_standard_normal(&random, context, one, 1, NULL), ADEAD_INVALID_ARGUMENT, "out is NULL");
  FAILS(adead_random_normal(&random, context, 0, -1, one, 1, &tensor), ADEAD_INVALID_ARGUMENT, "at least 0, not -1");
  FAILS(adead_random_integers(&random, 5, 5, one, 1, &tensor), ADEAD_INVALID_ARGUMENT, "above low, 5");
  FAILS(adead_random_integers(&random, INT64_MIN, INT64_MAX, one, 1, &tensor), ADEAD_INVALID_ARGUMENT, "above low, -92");
  FAILS(adead_random_permutation(&random, (size_t)-1, &tensor), ADEAD_INVALID_ARGUMENT, "at most 17179869184");
  CHECK(!tensor && random.draws == 3);
}

int main(int argc, char **argv) {
  adead_context *context = NULL;
  OK(adead_context_open("cpu", NULL, &context));
  /* The bundle for GPU machines has no file of draws. */
  if (argc == 2) draws(context, argv[1]);
  errors(context);
  adead_context_destroy(context);
  return 0;
}
