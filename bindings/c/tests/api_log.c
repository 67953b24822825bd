/* Messages: what a callback gets, who else may call it, and what is printed where there is none.
 *   api_log            opens a context with callbacks
 *   api_log printed    opens one without: the test looks at what ADEAD_LOG lets it print
 *   api_log refused    opens one and expects that ADEAD_LOG is a word that there is not */
#include "check.h"
#include <pthread.h>

static int user, calls, details, nested, found;
static adead_status status_there;

static void keep(adead_log_level level, const char *target, const char *text, void *with) {
  CHECK(with == &user && !strncmp(target, "adead.", 6) && strlen(target) > 6 && *text);
  CHECK(level >= ADEAD_LOG_ERROR && level <= ADEAD_LOG_TRACE);
  calls++;
  if (level > ADEAD_LOG_INFO) details++;
  if (level == ADEAD_LOG_INFO && !strcmp(target, "adead.devices") && !strncmp(text, "opened cpu: ", 12)) found++;
}

static void other(adead_log_level level, const char *target, const char *text, void *with) {
  (void)level, (void)target, (void)text;
  ++*(int *)with;
}

/* A callback that asks for another one. */
static void nest(adead_log_level level, const char *target, const char *text, void *with) {
  (void)level, (void)target, (void)text, (void)with;
  nested++;
  status_there = adead_log_set(ADEAD_LOG_INFO, keep, &user);
}

static void open_one(void) {
  adead_context *context = NULL;
  OK(adead_context_open("cpu", NULL, &context));
  adead_context_destroy(context);
}

static void *in_a_thread(void *unused) {
  open_one();
  return unused;
}

static void messages(void) {
  int last = 0, i;
  pthread_t threads[4];
  /* From a level on. */
  OK(adead_log_set(ADEAD_LOG_INFO, keep, &user));
  open_one();
  CHECK(found == 1 && calls >= 1 && details == 0);
  OK(adead_log_set(ADEAD_LOG_DEBUG, keep, &user));
  open_one();
  CHECK(found == 2 && details > 0);
  /* Any thread calls it, one at a time: nothing is lost of what they count. */
  found = 0;
  for (i = 0; i < 4; i++) CHECK(!pthread_create(&threads[i], NULL, in_a_thread, NULL));
  for (i = 0; i < 4; i++) CHECK(!pthread_join(threads[i], NULL));
  CHECK(found == 4);
  /* The last one that was given, alone; none. */
  calls = 0;
  OK(adead_log_set(ADEAD_LOG_INFO, other, &last));
  open_one();
  CHECK(last >= 1 && calls == 0);
  OK(adead_log_set(ADEAD_LOG_OFF, keep, &user));
  open_one();
  OK(adead_log_set(ADEAD_LOG_TRACE, NULL, NULL));
  open_one();
  CHECK(calls == 0);
  /* A level that there is not leaves what there was. */
  OK(adead_log_set(ADEAD_LOG_INFO, keep, &user));
  FAILS(adead_log_set(6, other, &last), ADEAD_INVALID_ARGUMENT, "level is 6; it must be 0 to 5");
  FAILS(adead_log_set(-1, other, &last), ADEAD_INVALID_ARGUMENT, "level is -1; it must be 0 to 5");
  last = 0;
  open_one();
  CHECK(calls >= 1 && last == 0);
  /* A callback can't give another one. */
  OK(adead_log_set(ADEAD_LOG_INFO, nest, NULL));
  calls = 0;
  open_one();
  CHECK(nested >= 1 && status_there == ADEAD_INVALID_ARGUMENT && calls == 0);
  CHECK(strstr(adead_last_error(), "a log callback must not call adead_log_set"));
  OK(adead_log_set(0, NULL, NULL));
}

int main(int argc, char **argv) {
  if (argc > 1 && !strcmp(argv[1], "printed")) {
    open_one();
  } else if (argc > 1) {
    adead_context *context = NULL;
    FAILS(adead_context_open("cpu", NULL, &context), ADEAD_INVALID_ARGUMENT, "ADEAD_LOG is 'loud'");
    CHECK(!context);
  } else {
    messages();
  }
  printf("messages as they should be\n");
  return 0;
}
