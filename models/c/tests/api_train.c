/* adead_trainer_* and adead_train_job: what C alone can get wrong. models/cpp/tests/train.cpp compares hashes. */
#define LAST_ERROR adead_models_last_error
#include <adead/models.h>

#include "check.h"

#include <math.h>

static const char *const DESCRIPTION =
    "{ \"model\": { \"kind\": \"layers\", \"layers\": [{ \"linear\": 2 }] }, \"input\": [3], \"batch\": 2,"
    " \"optimizer\": { \"kind\": \"sgd\", \"rate\": 0.1 } }";

/* Ends the training after its second step, which is the third of all. */
static int32_t counts(void *user, uint32_t epoch, uint64_t step, float loss) {
  int *steps = user;
  CHECK(epoch == 1 && step == (uint64_t)*steps + 2 && isfinite(loss));
  return ++*steps == 2;
}

int main(void) {
  const float x[12] = {1, 2, 3, -1, -2, -3, 0, 1, 0, 1, 0, 1};
  const int64_t classes[4] = {0, 1, 0, 1}, wrong[4] = {0, 2, 0, 1};
  adead_trainer *trainer = NULL;
  adead_trainer_info info = {sizeof info, 0, 0, 0, 0, 0, 0, 0, {0}};
  adead_trained_parameter parameter = {sizeof parameter, NULL, 0, {0}, 0};
  adead_train_outcome outcome = {0};
  adead_train_options options = ADEAD_TRAIN_OPTIONS_INIT;
  float loss = 7, out[8] = {7, 7, 7, 7, 7, 7, 7, 7}, values[6];
  double mean = 7, accuracy = 7;
  char hash[65], again[65];
  size_t count = 0;
  int steps = 0;
  OK(adead_trainer_create(DESCRIPTION, "cpu", NULL, &trainer));
  OK(adead_trainer_inspect(trainer, &info));
  CHECK(info.sample_type == ADEAD_DTYPE_F32 && info.target_type == ADEAD_DTYPE_I64 && info.sample_size == 3);
  CHECK(info.target_size == 1 && info.output_size == 2 && info.batch == 2 && info.steps == 0 && !strcmp(info.device, "cpu"));
  OK(adead_trainer_sha256(trainer, hash, sizeof hash));
  CHECK(strlen(hash) == 64 && strspn(hash, "0123456789abcdef") == 64);

  /* Failures leave the outputs and the network as they were. */
  FAILS(adead_trainer_step(trainer, x, classes, 3, &loss), ADEAD_SHAPE_MISMATCH, "3 samples; a step takes a batch of 2");
  FAILS(adead_trainer_step(trainer, NULL, classes, 2, &loss), ADEAD_INVALID_ARGUMENT, "x is NULL");
  FAILS(adead_trainer_step(trainer, x, NULL, 2, &loss), ADEAD_INVALID_ARGUMENT, "targets is NULL");
  FAILS(adead_trainer_step(trainer, x, classes, 2, NULL), ADEAD_INVALID_ARGUMENT, "loss is NULL");
  FAILS(adead_trainer_step(NULL, x, classes, 2, &loss), ADEAD_INVALID_ARGUMENT, "trainer is NULL");
  FAILS(adead_trainer_step(trainer, x, wrong, 2, &loss), ADEAD_INVALID_ARGUMENT, "element 1 of targets is 2");
  FAILS(adead_trainer_predict(trainer, x, SIZE_MAX / 2, out, 8), ADEAD_INVALID_ARGUMENT, "out has room for 8 values");
  FAILS(adead_trainer_evaluate(trainer, x, classes, SIZE_MAX / 2, &mean, &accuracy), ADEAD_INVALID_ARGUMENT, "more than memory can hold");
  FAILS(adead_trainer_sha256(trainer, again, 64), ADEAD_INVALID_ARGUMENT, "a hash takes 65");
  FAILS(adead_trainer_parameter(trainer, 2, &parameter, NULL, 0), ADEAD_INVALID_ARGUMENT, "there is no parameter 2; there are 2");
  FAILS(adead_trainer_parameter(trainer, 0, &parameter, values, 1), ADEAD_INVALID_ARGUMENT, "values has room for 1 values");
  FAILS(adead_trainer_join(trainer, "0/2@127.0.0.1:1", NAN), ADEAD_INVALID_ARGUMENT, "patience is NaN");
  CHECK(loss == 7 && mean == 7 && accuracy == 7 && out[0] == 7);
  OK(adead_trainer_sha256(trainer, again, sizeof again));
  CHECK(!strcmp(hash, again));

  OK(adead_trainer_step(trainer, x, classes, 2, &loss));
  CHECK(loss > 0 && loss < 7);
  FAILS(adead_trainer_fit(trainer, x, classes, 4, 1, counts, &steps, &mean), ADEAD_NOT_READY, "ended the training at step 3");
  CHECK(steps == 2);
  OK(adead_trainer_fit(trainer, x, classes, 4, 1, NULL, NULL, &mean));
  OK(adead_trainer_predict(trainer, x, 3, out, 8));
  CHECK(out[0] != 7 && out[5] != 7 && out[6] == 7);
  OK(adead_trainer_evaluate(trainer, x, classes, 4, &mean, &accuracy));
  CHECK(mean > 0 && accuracy >= 0 && accuracy <= 1);
  OK(adead_trainer_parameter_count(trainer, &count));
  CHECK(count == 2);
  OK(adead_trainer_parameter(trainer, 1, &parameter, values, 6));
  CHECK(parameter.rank >= 1 && parameter.size <= 6 && *parameter.name);
  adead_trainer_destroy(trainer);
  adead_trainer_destroy(NULL);

  trainer = NULL;
  FAILS(adead_trainer_create("[]", "cpu", NULL, &trainer), ADEAD_INVALID_ARGUMENT, "the training's description");
  FAILS(adead_trainer_create(NULL, "cpu", NULL, &trainer), ADEAD_INVALID_ARGUMENT, "description is NULL");
  CHECK(!trainer);
  outcome.struct_size = sizeof outcome;
  FAILS(adead_train_job("none.toml", "cpu", NULL, NULL, &outcome), ADEAD_IO, "none.toml");
  options.resume = 2;
  FAILS(adead_train_job("none.toml", "cpu", NULL, &options, &outcome), ADEAD_INVALID_ARGUMENT, "resume is 2");
  options.resume = 0;
  options.patience = 0;
  FAILS(adead_train_job("none.toml", "cpu", NULL, &options, &outcome), ADEAD_INVALID_ARGUMENT, "patience is 0");
  return 0;
}
