/* Prints what a context did, on which device and why, as numbers and as a table. docs/profile.md explains them. */
#include <adead.h>
#include <stdio.h>

static int failed(void) {
  fprintf(stderr, "%s\n", adead_last_error());
  return 1;
}

int main(void) {
  static float values[256 * 256];
  const size_t dims[2] = {256, 256};
  adead_context *context = NULL;
  adead_tensor *x = NULL;
  adead_profile *profile = NULL;
  adead_profile_total total;
  const char *table = NULL;
  int i;
  for (i = 0; i < 256 * 256; i++) values[i] = 0.5f;
  if (adead_context_open(NULL, NULL, &context) || adead_tensor_create(ADEAD_DTYPE_F32, dims, 2, values, sizeof values, &x) ||
      adead_profile_begin(context, 0, &profile))
    return failed();
  for (i = 0; i < 10; i++) {
    adead_tensor *y = NULL, *z = NULL;
    if (adead_tensor_matmul(context, x, x, NULL, &y) || adead_tensor_softmax(context, y, -1, &z)) return failed();
    adead_tensor_destroy(y);
    adead_tensor_destroy(z);
  }
  total.struct_size = sizeof total;
  if (adead_profile_finish(profile) || adead_profile_total_at(profile, 0, &total)) return failed();
  printf("most of the time: %s on %s (%s), %.0f us each\n", total.name, total.device_id, total.reason, total.mean_ns / 1e3);
  if (adead_profile_table(profile, &table)) return failed(); /* adead_profile_trace returns a trace for Perfetto */
  fputs(table, stdout);
  adead_profile_destroy(profile);
  adead_tensor_destroy(x);
  adead_context_destroy(context);
  return 0;
}
