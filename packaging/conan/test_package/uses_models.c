/* Opens a model that does not exist, and prints why it can't. */
#include <adead/models.h>
#include <stdio.h>

int main(void) {
  adead_text_generator *generator = NULL;
  adead_status status = adead_text_generator_open("no-such-model.gguf", NULL, &generator);
  printf("adead's models in C: status %d, %s\n", (int)status, adead_models_last_error());
  return status != ADEAD_IO || generator != NULL;
}
