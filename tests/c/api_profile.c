/* Profiles: what was recorded, as text, and the errors. */
#include "check.h"

static size_t count(const char *text, const char *word) {
  size_t found = 0;
  for (text = strstr(text, word); text; text = strstr(text + 1, word)) found++;
  return found;
}

int main(void) {
  static const float values[6] = {1, 2, 3, 4, 5, 6};
  adead_context *context = NULL;
  adead_profile *profile = NULL, *second = NULL;
  adead_tensor *a = NULL, *b = NULL, *y = NULL;
  const char *table = NULL, *json = NULL, *trace = NULL, *again = NULL;
  int i;
  OK(adead_context_open("cpu", NULL, &context));
  a = tensor(values, 2, 2, 3);
  b = tensor(values, 2, 3, 2);
  OK(adead_profile_create(context, 0, &profile));
  FAILS(adead_profile_create(context, 0, &second), ADEAD_INVALID_ARGUMENT, "under way");
  CHECK(second == NULL);
  FAILS(adead_profile_table(profile, &table), ADEAD_INVALID_ARGUMENT, "finish it first");
  CHECK(table == NULL);
  for (i = 0; i < 3; i++) {
    OK(adead_tensor_matmul(context, a, b, NULL, &y));
    adead_tensor_destroy(y);
  }
  OK(adead_profile_finish(profile));
  FAILS(adead_profile_finish(profile), ADEAD_INVALID_ARGUMENT, "is finished");
  OK(adead_profile_table(profile, &table));
  OK(adead_profile_json(profile, &json));
  OK(adead_profile_trace(profile, &trace));
  CHECK(strncmp(table, "name ", 5) == 0 && count(table, "\nmatmul ") == 1);
  CHECK(json[0] == '{' && json[strlen(json) - 1] == '}');
  CHECK(count(json, "\"f32[2, 3], f32[3, 2] -> f32[2, 2]\"") == 3);
  CHECK(count(json, "\"flops\":24,") == 3 && count(json, "\"flops\":72,") == 1);
  CHECK(count(trace, "\"ph\":\"X\"") == 3);
  OK(adead_profile_json(profile, &again));
  CHECK(again == json);
  /* It outlives its context, and the next one may begin. */
  OK(adead_profile_create(context, 1, &second));
  for (i = 0; i < 3; i++) {
    OK(adead_tensor_relu(context, a, &y));
    adead_tensor_destroy(y);
  }
  adead_context_destroy(context);
  OK(adead_profile_finish(second));
  OK(adead_profile_json(second, &json));
  CHECK(count(json, "\"dropped\":2,") == 1);
  adead_profile_destroy(second);
  adead_profile_destroy(profile);
  adead_profile_destroy(NULL);
  FAILS(adead_profile_create(NULL, 0, &profile), ADEAD_INVALID_ARGUMENT, "context");
  FAILS(adead_profile_finish(NULL), ADEAD_INVALID_ARGUMENT, "profile");
  FAILS(adead_profile_json(NULL, &json), ADEAD_INVALID_ARGUMENT, "profile");
  adead_tensor_destroy(a);
  adead_tensor_destroy(b);
  return 0;
}
