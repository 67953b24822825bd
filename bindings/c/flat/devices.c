/* The devices that were used, each opened once. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

static flat_device *devices;
static size_t count;

adead_status flat_gpus(int32_t *out) {
  size_t gpus;
  TRY_ADEAD(adead_gpu_count(&gpus));
  *out = (int32_t)gpus;
  return ADEAD_OK;
}

adead_status flat_id(flat_place place, char id[32]) {
  adead_device_info info = {0};
  int32_t gpus;
  info.struct_size = sizeof info;
  if (!place.use_gpu) {
    if (place.device)
      return flat_fail(ADEAD_INVALID_ARGUMENT, "device %d of the CPU: there is one, number 0", (int)place.device);
    memcpy(id, "cpu", sizeof "cpu");
    return ADEAD_OK;
  }
  TRY(flat_gpus(&gpus));
  if (place.device < 0) return flat_fail(ADEAD_INVALID_ARGUMENT, "GPU %d: they are numbered from 0", (int)place.device);
  if (place.device >= gpus)
    return flat_fail(ADEAD_BACKEND_UNAVAILABLE, "GPU %d of %d, which are numbered from 0", (int)place.device, (int)gpus);
  TRY_ADEAD(adead_gpu_info((size_t)place.device, &info));
  memcpy(id, info.id, sizeof info.id);
  return ADEAD_OK;
}

adead_status flat_open(flat_place place, flat_device **out) {
  flat_device new = {0}, *larger;
  adead_status status;
  size_t i;
  new.place.use_gpu = place.use_gpu != 0;
  new.place.device = place.device;
  for (i = 0; i < count; i++) {
    *out = &devices[i];
    if (devices[i].place.use_gpu == new.place.use_gpu && devices[i].place.device == new.place.device) return ADEAD_OK;
  }
  TRY(flat_id(new.place, new.id));
  larger = realloc(devices, (count + 1) * sizeof *devices);
  if (!larger) return flat_fail(ADEAD_OUT_OF_MEMORY, "no memory for %zu devices", count + 1);
  devices = larger;
  TRY_ADEAD(adead_context_open(new.id, NULL, &new.context));
  status = flat_check(adead_stream_create(new.context, &new.stream));
  if (status) {
    adead_context_destroy(new.context);
    return status;
  }
  *out = &devices[count];
  devices[count++] = new;
  return ADEAD_OK;
}

void flat_close_devices(void) {
  size_t i;
  for (i = 0; i < count; i++) {
    adead_stream_destroy(devices[i].stream);
    adead_context_destroy(devices[i].context);
  }
  free(devices);
  devices = NULL;
  count = 0;
}
