/* The first papers: each call that they name does what its name says, with their program as they have it. Kernels run on the GPU that
 * ADEAD_TEST_DEVICE names, else on the best one through Vulkan; without one that part is skipped. */
#include "gpu.h"

#include <math.h>

enum { SIDE = 512, COUNT = SIDE * SIDE };

static int device_is(const adead_context *context, const char *beginning) {
  adead_device_info info;
  info.struct_size = sizeof info;
  OK(adead_context_device_info(context, &info));
  return !strncmp(info.id, beginning, strlen(beginning));
}

static void machine(const adead_context *cpu) {
  adead_hardware report;
  size_t device = 99;
  report.struct_size = sizeof report;
  OK(adead_hardware_report(&report));
  CHECK(report.recommended >= ADEAD_MODE_CPU && report.recommended <= ADEAD_MODE_GPU);
  CHECK(report.cpu_threads >= 1 && report.memory_total > 0);
  CHECK(device_is(cpu, "cpu"));
  OK(adead_select(cpu, 1024, &device));
  CHECK(device == 0);
}

static void simple(void) {
  float *x = NULL;
  OK(adead_init(ADEAD_BACKEND_CPU));
  OK(adead_alloc(4 * sizeof *x, (void **)&x));
  x[0] = -1, x[1] = 2, x[2] = 3, x[3] = 4;
  OK(adead_relu(x, x, 4));
  CHECK(x[0] == 0 && x[1] == 2);
  OK(adead_softmax(x, x, 2, 2));
  CHECK(fabsf(x[0] + x[1] - 1) < 1e-6f && x[1] > x[0]);
  OK(adead_free(x));
  OK(adead_shutdown());
}

static void chained(const adead_context *cpu) {
  const float values[2] = {1, -2}, eye[4] = {1, 0, 0, 1}, column[2] = {2, 3};
  adead_tensor *x = tensor(values, 2, 1, 2), *w1 = tensor(eye, 2, 2, 2), *w2 = tensor(column, 2, 2, 1), *y = NULL;
  const adead_tensor *operands[2];
  adead_explanation why;
  adead_chain *chain = NULL;
  adead_value v[2];
  const void *found = NULL;
  OK(adead_chain_create(cpu, &chain));
  OK(adead_chain_constant(chain, x, &v[0]));
  OK(adead_chain_constant(chain, w1, &v[1]));
  OK(adead_chain_op(chain, ADEAD_OP_MATMUL, v, 2, NULL, &v[0]));
  OK(adead_chain_op(chain, ADEAD_OP_RELU, v, 1, NULL, &v[0]));
  OK(adead_chain_constant(chain, w2, &v[1]));
  OK(adead_chain_op(chain, ADEAD_OP_MATMUL, v, 2, NULL, &v[0]));
  OK(adead_chain_execute(chain, &y, 1));
  OK(adead_tensor_data(y, &found));
  CHECK(*(const float *)found == 2);
  operands[0] = x, operands[1] = w1;
  why.struct_size = sizeof why;
  OK(adead_explain(cpu, ADEAD_OP_MATMUL, operands, 2, NULL, &why));
  CHECK(!strcmp(why.id, "cpu"));
  adead_chain_destroy(chain);
  adead_tensor_destroy(x);
  adead_tensor_destroy(w1);
  adead_tensor_destroy(w2);
  adead_tensor_destroy(y);
}

static void programs(const adead_context *cpu) {
  const char *path = KERNELS "/../programs/mlp.adead", *names[1] = {"x"};
  const size_t dims[2] = {2, 4};
  static unsigned char bytes[1 << 16];
  adead_program *loaded = NULL, *decoded = NULL;
  adead_outcome *outcome = NULL;
  adead_tensor *x = NULL;
  const adead_tensor *inputs[1];
  size_t length = 0, first = 0, second = 0, outputs = 0;
  FILE *file = fopen(path, "rb");
  CHECK(file);
  length = fread(bytes, 1, sizeof bytes, file);
  fclose(file);
  OK(adead_program_load(path, &loaded));
  OK(adead_program_decode(bytes, length, &decoded));
  OK(adead_program_length(loaded, &first));
  OK(adead_program_length(decoded, &second));
  CHECK(first == second && first > 0);
  OK(adead_tensor_zeros(ADEAD_DTYPE_F32, dims, 2, &x));
  inputs[0] = x;
  OK(adead_program_run(cpu, decoded, names, inputs, 1, NULL, &outcome));
  OK(adead_outcome_output_count(outcome, &outputs));
  CHECK(outputs == 2);
  adead_outcome_destroy(outcome);
  adead_tensor_destroy(x);
  adead_program_destroy(loaded);
  adead_program_destroy(decoded);
}

static void layouts(void) {
  float data[6] = {0, 1, 2, 3, 4, 5}, out[16];
  adead_layout *layout = NULL;
  OK(adead_layout_optimize_matrix(4, 2, 3, 2, &layout));
  OK(adead_layout_arrange(layout, data, sizeof data, out, 8 * sizeof *out));
  CHECK(out[0] == 0 && out[1] == 1 && out[2] == 3 && out[3] == 4 && out[4] == 2);
  OK(adead_layout_restore(layout, out, 8 * sizeof *out, data, sizeof data));
  CHECK(data[5] == 5);
  adead_layout_destroy(layout);
  OK(adead_layout_align(4, 1, 6, 64, &layout));
  OK(adead_layout_arrange(layout, data, sizeof data, out, sizeof out));
  CHECK(out[5] == 5 && out[6] == 0 && out[15] == 0);
  adead_layout_destroy(layout);
  OK(adead_layout_coalesce(4, 6, 2, &layout));
  OK(adead_layout_arrange(layout, data, sizeof data, out, sizeof data));
  CHECK(out[0] == 0 && out[1] == 2 && out[2] == 4 && out[3] == 1);
  adead_layout_destroy(layout);
}

/* Buffers, streams and events are there on every device. */
static void order(const adead_context *context) {
  const float values[2] = {-1, 2};
  const size_t dims[1] = {2};
  float found[2] = {9, 9};
  adead_buffer *x = buffer(context, NULL, sizeof values), *y = buffer(context, NULL, sizeof values);
  adead_operand from, to;
  adead_stream *stream = NULL, *other = NULL;
  adead_event *event = NULL, *fence = NULL;
  memset(&from, 0, sizeof from);
  from.buffer = x, from.dims = dims, from.rank = 1, from.dtype = ADEAD_DTYPE_F32;
  to = from;
  to.buffer = y;
  OK(adead_buffer_write(x, 0, values, sizeof values));
  OK(adead_stream_create(context, &stream));
  OK(adead_stream_create(context, &other));
  OK(adead_stream_run(stream, ADEAD_OP_RELU, &from, 1, NULL, &to));
  OK(adead_stream_event(stream, &event));
  OK(adead_stream_wait_event(other, event));
  OK(adead_event_wait(event, ADEAD_FOREVER));
  OK(adead_stream_sync(other));
  OK(adead_event_create(context, &fence));
  OK(adead_event_wait(fence, ADEAD_FOREVER));
  OK(adead_wait(context));
  OK(adead_buffer_read(y, 0, found, sizeof found));
  CHECK(found[0] == 0 && found[1] == 2);
  OK(adead_buffer_free(y));
  FAILS(adead_buffer_read(y, 0, found, sizeof found), ADEAD_INVALID_ARGUMENT, "freed");
  adead_event_destroy(event);
  adead_event_destroy(fence);
  adead_stream_destroy(stream);
  adead_stream_destroy(other);
  adead_buffer_destroy(x);
  adead_buffer_destroy(y);
}

static void check_product(const float *a, const float *b, const float *c) {
  size_t i, j, k;
  for (i = 0; i < SIDE; i++) {
    for (j = 0; j < SIDE; j++) {
      double exact = 0;
      for (k = 0; k < SIDE; k++) exact += (double)a[i * SIDE + k] * b[k * SIDE + j];
      CHECK(fabs(c[i * SIDE + j] - exact) < 1e-3);
    }
  }
}

static void their_program(const adead_context *gpu) {
  float *a = malloc(COUNT * sizeof *a), *b = malloc(COUNT * sizeof *b), *c = malloc(COUNT * sizeof *c);
  adead_buffer *A, *B, *C = NULL;
  adead_buffer *all[3];
  const uint32_t groups[3] = {32, 32, 1};
  adead_kernel *loaded = NULL, *matmul = NULL;
  size_t i, size = 0;
  CHECK(a && b && c);
  for (i = 0; i < COUNT; i++) {
    a[i] = (float)(i * 37 % 101) / 50.0f - 1.0f;
    b[i] = (float)(i * 59 % 101) / 50.0f - 1.0f;
  }
  if (device_is(gpu, "cuda")) {
    OK(adead_kernel_load_ptx(gpu, KERNELS "/matmul.ptx", &loaded));
  } else {
    OK(adead_kernel_load_spirv(gpu, KERNELS "/matmul.spv", &loaded));
  }
  OK(adead_pipeline_create(gpu, loaded, NULL, NULL, 0, &matmul));
  A = buffer(gpu, a, COUNT * sizeof *a);
  B = buffer(gpu, b, COUNT * sizeof *b);
  C = buffer(gpu, NULL, COUNT * sizeof *c);
  all[0] = A, all[1] = B, all[2] = C;
  OK(adead_dispatch(gpu, matmul, all, 3, groups));
  OK(adead_wait(gpu));
  OK(adead_buffer_size(C, &size));
  CHECK(size == COUNT * sizeof *c);
  OK(adead_buffer_read(C, 0, c, size));
  check_product(a, b, c);
  adead_buffer_destroy(A);
  adead_buffer_destroy(B);
  adead_buffer_destroy(C);
  adead_kernel_destroy(loaded);
  adead_kernel_destroy(matmul);
  free(a);
  free(b);
  free(c);
}

/* The same through the simple API, whose shaders are for Vulkan. */
static void simple_on_vulkan(void) {
  float *a, *b, *c;
  size_t i;
  OK(adead_vulkan_init());
  OK(adead_alloc(COUNT * sizeof *a, (void **)&a));
  OK(adead_alloc(COUNT * sizeof *b, (void **)&b));
  OK(adead_alloc(COUNT * sizeof *c, (void **)&c));
  for (i = 0; i < COUNT; i++) {
    a[i] = (float)(i * 37 % 101) / 50.0f - 1.0f;
    b[i] = (float)(i * 59 % 101) / 50.0f - 1.0f;
  }
  OK(adead_vulkan_compute(KERNELS "/matmul.spv", 32, 32, 1));
  check_product(a, b, c);
  OK(adead_matmul(a, b, c, SIDE, SIDE, SIDE));
  check_product(a, b, c);
  OK(adead_shutdown());
}

int main(void) {
  const char *device = getenv("ADEAD_TEST_DEVICE");
  adead_context *context = NULL;
  OK(adead_context_open("cpu", NULL, &context));
  machine(context);
  simple();
  chained(context);
  programs(context);
  layouts();
  order(context);
  adead_context_destroy(context);
  context = NULL;
  if (device) {
    OK(adead_context_open(device, NULL, &context));
  } else {
    context = open_gpu();
  }
  order(context);
  their_program(context);
  if (device_is(context, "vulkan")) simple_on_vulkan();
  adead_context_destroy(context);
  return 0;
}
