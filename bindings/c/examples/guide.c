/* The excerpts of docs/c-api.md, docs/profile.md and docs/logging.md, run one after another. `ci/guide` copies what stands between
 * [guide: NAME] and [end] there. Run it in the folder of matmul.spv and vecadd.spv. */
#include <adead.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum { SIDE = 512, COUNT = 4, ROW = 1000 };

static void check(int right, const char *what) {
  if (!right) fprintf(stderr, "%s is wrong: %s\n", what, adead_last_error()), exit(1);
}

static void fill(float *x, float *y) {
  size_t i;
  for (i = 0; i < SIDE * SIDE; i++) x[i] = i % (SIDE + 1) ? 0.0f : 2.0f, y[i] = (float)(i % 5);
}

static void simple_api(void) {
  const size_t bytes = SIDE * SIDE * sizeof(float);
  if (adead_vulkan_init()) {
    puts("no Vulkan GPU: the shaders are left out");
    return;
  }
  /* [guide: shader] */
  float *x, *y, *z;                                 /* the shader reads their lengths */
  adead_alloc(bytes, (void **)&x);                  /* binding 0 */
  adead_alloc(bytes, (void **)&y);                  /* binding 1 */
  adead_alloc(bytes, (void **)&z);                  /* binding 2 */
  fill(x, y);
  if (adead_vulkan_compute("matmul.spv", 32, 32, 1)) fprintf(stderr, "%s\n", adead_last_error());
  /* [end] */
  check(z[3] == 6 && z[SIDE] == 2 * y[SIDE], "the product of the shader");
  adead_shutdown();
}

static void own_kernel(void) {
  static float a[1000], b[1000], c[1000];
  adead_context *gpu = NULL;
  size_t i;
  if (adead_context_open("vulkan", NULL, &gpu)) return;
  for (i = 0; i < 1000; i++) a[i] = (float)i, b[i] = 1;
  /* [guide: kernel] */
  const uint32_t n = 1000, groups[3] = {4, 1, 1};
  adead_kernel *kernel = NULL;
  adead_buffer *buffers[3] = {NULL, NULL, NULL};
  if (adead_kernel_load_spirv(gpu, "vecadd.spv", &kernel) || adead_buffer_create(gpu, a, 4 * n, &buffers[0]) ||
      adead_buffer_create(gpu, b, 4 * n, &buffers[1]) || adead_buffer_create(gpu, NULL, 4 * n, &buffers[2]) ||
      adead_dispatch_with(gpu, kernel, buffers, 3, &n, sizeof n, groups) || adead_buffer_read(buffers[2], 0, c, 4 * n))
    fprintf(stderr, "%s\n", adead_last_error());
  /* [end] */
  check(c[0] == 1 && c[999] == 1000, "the sum of the kernel");
  for (i = 0; i < 3; i++) adead_buffer_destroy(buffers[i]);
  adead_kernel_destroy(kernel);
  adead_context_destroy(gpu);
}

static adead_tensor *tensor(size_t rows, size_t columns) {
  static float values[SIDE];
  const size_t dims[2] = {rows, columns};
  adead_tensor *made = NULL;
  size_t i;
  for (i = 0; i < SIDE; i++) values[i] = (float)(i % 3) - 1;
  check(!adead_tensor_create(ADEAD_DTYPE_F32, columns ? dims : dims + 1, 2, values, rows * columns * sizeof *values, &made), "a tensor");
  return made;
}

static adead_tensor *vector(size_t length) {
  adead_tensor *matrix = tensor(1, length), *made = NULL;
  check(!adead_tensor_reshape(matrix, &length, 1, &made), "a vector");
  adead_tensor_destroy(matrix);
  return made;
}

static float first(const adead_tensor *tensor) {
  const void *data = NULL;
  return tensor && !adead_tensor_data(tensor, &data) ? *(const float *)data : 9;
}

static void products(const adead_context *context) {
  adead_tensor *x = tensor(3, 8), *weights = tensor(4, 8), *bias = vector(4), *y = NULL, *rows[2], *results[2] = {NULL, NULL};
  const size_t count = 2;
  rows[0] = tensor(3, 8), rows[1] = tensor(1, 8);
  /* [guide: matmul] */
  adead_matmul_options options = ADEAD_MATMUL_OPTIONS_INIT;
  options.trans_b = 1;
  options.bias = bias;
  options.activation = ADEAD_ACTIVATION_GELU_ERF;
  if (adead_tensor_matmul(context, x, weights, &options, &y)) fprintf(stderr, "%s\n", adead_last_error());
  /* [end] */
  /* [guide: packed] */
  adead_packed *packed = NULL;
  if (adead_packed_create(context, weights, 1, &packed)) fprintf(stderr, "%s\n", adead_last_error());
  options.trans_b = 0; /* adead_packed_create already transposed */
  for (size_t i = 0; i < count; i++) adead_packed_matmul(context, rows[i], packed, &options, &results[i]);
  adead_packed_destroy(packed);
  /* [end] */
  check(y && results[0] && first(y) == first(results[0]), "the packed product");
  adead_tensor_destroy(rows[0]), adead_tensor_destroy(rows[1]), adead_tensor_destroy(results[0]), adead_tensor_destroy(results[1]);
  adead_tensor_destroy(x), adead_tensor_destroy(weights), adead_tensor_destroy(bias), adead_tensor_destroy(y);
}

/* [guide: signal] */
static adead_interrupt *stop;

static void on_signal(int number) {
  (void)number;
  adead_interrupt_set(stop, 1);
}
/* [end] */

static void interrupts(const adead_context *context) {
  adead_tensor *x = tensor(4, 8), *weights = tensor(8, 4), *y = NULL;
  /* [guide: signal] */
  if (adead_interrupt_create(&stop)) fprintf(stderr, "%s\n", adead_last_error());
  signal(SIGINT, on_signal);
  const adead_interrupt *before = adead_interrupt_watch(stop);
  if (adead_tensor_matmul(context, x, weights, NULL, &y) == ADEAD_NOT_READY) fprintf(stderr, "%s\n", adead_last_error());
  adead_interrupt_watch(before);
  adead_interrupt_destroy(stop);
  /* [end] */
  signal(SIGINT, SIG_DFL);
  check(y != NULL, "the product that nothing interrupted");
  adead_tensor_destroy(x), adead_tensor_destroy(weights), adead_tensor_destroy(y);
}

static void integers(void) {
  const float values[6] = {1, 2, 3, 4, 5, 6};
  float result[4] = {0};
  /* [guide: flat] */
  int32_t gpu;
  adead_flat_handle a, b, product;
  adead_flat_gpu_available(&gpu);
  if (adead_flat_alloc_upload(values, 2, 3, gpu, 0, &a) || adead_flat_alloc_ones(3, 2, gpu, 0, &b) ||
      adead_flat_matmul(a, b, 0, &product) || adead_flat_download(product, result, 4))
    fprintf(stderr, "%s\n", adead_last_error());
  /* [end] */
  check(result[0] == 6 && result[3] == 15, "the product of handles");
}

struct state {
  size_t made;
  float last[COUNT];
};

static adead_status read_batch(float *memory, size_t number) {
  size_t i;
  for (i = 0; i < ROW; i++) memory[i] = (float)number - 1;
  return ADEAD_OK;
}

static adead_status enqueue(adead_stream *stream, adead_buffer *x, adead_buffer *y) {
  static const size_t row[] = {ROW};
  adead_operand from = {NULL, 0, NULL, 1, ADEAD_DTYPE_F32, 0}, to;
  from.dims = row;
  to = from;
  from.buffer = x;
  to.buffer = y;
  return adead_stream_run(stream, ADEAD_OP_RELU, &from, 1, NULL, &to);
}

/* [guide: batches] */
static adead_status next(adead_batch *batch, void *user) {
  struct state *all = user;
  void *memory;
  if (all->made == COUNT) return ADEAD_OK; /* no batch: the end */
  if (adead_batch_memory(batch, ROW * sizeof(float), &memory)) return ADEAD_OUT_OF_MEMORY;
  return read_batch(memory, all->made++);
}

static adead_status work(adead_stage *stage, void *user) {
  adead_buffer *out;
  adead_status status = adead_stage_buffer(stage, ROW * sizeof(float), &out); /* the lane reuses this buffer */
  (void)user;
  if (!status) status = enqueue(adead_stage_stream(stage), adead_stage_input(stage), out);
  return status ? status : adead_stage_result(stage, out, 0, ROW * sizeof(float));
}

static adead_status take(size_t index, const void *data, size_t bytes, void *user) {
  struct state *all = user;
  all->last[index] = ((const float *)data)[bytes / sizeof(float) - 1];
  return ADEAD_OK;
}
/* [end] */

static void batches(const adead_context *context) {
  struct state state = {0, {9, 9, 9, 9}};
  /* [guide: batches] */
  if (adead_overlap(context, 3, next, work, take, &state)) fprintf(stderr, "%s\n", adead_last_error());
  /* [end] */
  check(state.last[0] == 0 && state.last[3] == 2, "a batch");
}

static int computes(const adead_context *context) {
  adead_tensor *x = tensor(4, 8), *y = NULL;
  int failed = adead_tensor_softmax(context, x, -1, &y) != ADEAD_OK;
  adead_tensor_destroy(x), adead_tensor_destroy(y);
  return failed;
}

static void profiles(const adead_context *context) {
  /* [guide: profile] */
  adead_profile *profile = NULL;
  adead_profile_total total;
  const char *table = NULL; /* adead_profile_json and adead_profile_trace return the other formats */
  total.struct_size = sizeof total;
  if (adead_profile_begin(context, 0, &profile) || computes(context) || adead_profile_finish(profile) ||
      adead_profile_total_at(profile, 0, &total) || adead_profile_table(profile, &table))
    fprintf(stderr, "%s\n", adead_last_error());
  printf("most of the time: %s on %s, %.0f us each\n%s", total.name, total.device_id, total.mean_ns / 1e3, table);
  adead_profile_destroy(profile);
  /* [end] */
}

/* [guide: log] */
static void tell(adead_log_level level, const char *target, const char *text, void *user) {
  fprintf(user, "%d %s %s\n", (int)level, target, text); /* both texts are valid only during the call */
}
/* [end] */

int main(void) {
  adead_context *context = NULL;
  /* [guide: log] */
  adead_log_set(ADEAD_LOG_INFO, tell, stderr); /* 3 adead.devices opened cpu: ... */
  /* [end] */
  check(!adead_context_open("cpu", NULL, &context), "the context");
  /* [guide: log] */
  adead_log_set(0, NULL, NULL); /* remove the function; ADEAD_LOG controls printing again */
  /* [end] */
  simple_api();
  own_kernel();
  products(context);
  interrupts(context);
  integers();
  batches(context);
  profiles(context);
  adead_context_destroy(context);
  return 0;
}
