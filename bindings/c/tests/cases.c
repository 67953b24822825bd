#define _POSIX_C_SOURCE 200809L
#include "cases.h"

#include "sha256.h"

#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t failures;

void fatal(const char *where, const char *what) {
  fprintf(stderr, "%s: %s\n", where ? where : "conformance", what);
  exit(2);
}

static void *allocate(size_t bytes) {
  void *memory = malloc(bytes ? bytes : 1);
  if (!memory) fatal(NULL, "out of memory");
  return memory;
}

/* --- values ----------------------------------------------------------------------------------------------------- */

static adead_dtype dtype_from_name(const char *name) {
  adead_dtype dtype = 0;
  for (; adead_dtype_name(dtype); dtype++) {
    if (!strcmp(adead_dtype_name(dtype), name)) return dtype;
  }
  fatal(name, "no such dtype");
  return 0;
}

size_t read_shape(const char *text, size_t dims[ADEAD_MAX_RANK]) {
  size_t rank = 0;
  char *end;
  if (!strcmp(text, "-")) return 0;
  for (;; text = end + 1) {
    if (rank == ADEAD_MAX_RANK) fatal(text, "more than eight dimensions");
    dims[rank++] = (size_t)strtoull(text, &end, 10);
    if (*end != ',') return rank;
  }
}

static void put(void *to, size_t i, size_t size, uint64_t bits) {
  /* Native byte order, as tensors have it. */
  uint16_t half = (uint16_t)bits;
  uint32_t word = (uint32_t)bits;
  memcpy((char *)to + i * size, size == 2 ? (void *)&half : size == 4 ? (void *)&word : (void *)&bits, size);
}

static uint64_t splitmix(uint64_t seed, uint64_t i) {
  uint64_t z = seed + (i + 1) * UINT64_C(0x9E3779B97F4A7C15);
  z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
  z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
  return z ^ z >> 31;
}

static uint32_t float_bits(float x) {
  uint32_t bits;
  memcpy(&bits, &x, 4);
  return bits;
}

static uint64_t random_bits(adead_dtype dtype, uint64_t z, int exponent) {
  uint32_t bits;
  switch (dtype) {
    case ADEAD_DTYPE_F32:
      return float_bits(ldexpf((float)((int32_t)(z >> 40) - (1 << 23)), exponent - 23));
    case ADEAD_DTYPE_BF16:
      return float_bits(ldexpf((float)((int32_t)(z >> 56) - (1 << 7)), exponent - 7)) >> 16;
    case ADEAD_DTYPE_F64: fatal("rand", "f64 is given by bits or fill"); return 0;
    default: /* f16: exact and normal or zero, so its fields are binary32's, rebased. */
      bits = float_bits(ldexpf((float)((int32_t)(z >> 53) - (1 << 10)), exponent - 10));
      return bits ? (bits >> 16 & 0x8000) | ((bits >> 23 & 255) - 112) << 10 | (bits >> 13 & 1023) : 0;
  }
}

static uint64_t wild_bits(adead_dtype dtype, uint64_t z) {
  static const uint32_t f32[16] = {0x00000000, 0x80000000, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000,
                                   0x7fc00000, 0xffc12345, 0x7f800001, 0x00000001, 0x80000001, 0x007fffff,
                                   0x00800000, 0x80800000, 0x7f7fffff, 0xff7fffff};
  static const uint32_t f16[16] = {0x0000, 0x8000, 0x3c00, 0xbc00, 0x7c00, 0xfc00, 0x7e00, 0xfe01,
                                   0x7c01, 0x0001, 0x8001, 0x03ff, 0x0400, 0x8400, 0x7bff, 0xfbff};
  static const uint32_t bf16[16] = {0x0000, 0x8000, 0x3f80, 0xbf80, 0x7f80, 0xff80, 0x7fc0, 0xffc1,
                                    0x7f81, 0x0001, 0x8001, 0x007f, 0x0080, 0x8080, 0x7f7f, 0xff7f};
  if (dtype == ADEAD_DTYPE_F64) fatal("wild", "f64 is given by bits or fill");
  if (z & 3) return dtype == ADEAD_DTYPE_F32 ? z >> 32 : z >> 48;
  return (dtype == ADEAD_DTYPE_F32 ? f32 : dtype == ADEAD_DTYPE_F16 ? f16 : bf16)[z >> 2 & 15];
}

/* The elements that a case's text describes. */
static void fill(void *to, adead_dtype dtype, size_t count, const char *data) {
  size_t i, size = adead_dtype_size(dtype);
  const char *text = strchr(data, ':');
  char *end;
  uint64_t first;
  int64_t second;
  if (!text++) fatal(data, "no data");
  first = strtoull(text, &end, *data == 'f' ? 16 : 10);
  second = *end == ':' ? strtoll(end + 1, NULL, 10) : 0;
  if (*data == 'b' && strlen(text) != 2 * size * count) fatal(data, "wrong number of digits");
  for (i = 0; i < count; i++) {
    uint64_t bits = 0, z = splitmix(first, i);
    char digits[17] = {0};
    switch (*data) { /* bits, fill, rand, wild, ids */
      case 'b':
        memcpy(digits, text + 2 * size * i, 2 * size);
        bits = strtoull(digits, NULL, 16);
        break;
      case 'f': bits = first; break;
      case 'r': bits = random_bits(dtype, z, (int)second); break;
      case 'w': bits = wild_bits(dtype, z); break;
      case 'i': bits = (z >> 32) * (uint64_t)second >> 32; break;
      default: fatal(data, "unknown data");
    }
    put(to, i, size, bits);
  }
}

elements read_value(const value *v) {
  elements e;
  size_t count = 1, i;
  e.rank = read_shape(v->shape, e.dims);
  e.dtype = dtype_from_name(v->dtype);
  for (i = 0; i < e.rank; i++) count *= e.dims[i];
  e.bytes = count * adead_dtype_size(e.dtype);
  e.data = allocate(e.bytes);
  fill(e.data, e.dtype, count, v->data);
  return e;
}

/* --- results --------------------------------------------------------------------------------------------------------- */

void fail(const char *id, const char *expected, const char *got) {
  printf("FAIL %s: expected %.200s, got %.200s\n", id, expected, got);
  failures++;
}

/* An element as FORMAT.md writes it. */
static const char *hex(char digits[17], const unsigned char *element, size_t size) {
  uint64_t bits = 0;
  uint32_t word;
  uint16_t half;
  if (size == 2) memcpy(&half, element, 2), bits = half;
  if (size == 4) memcpy(&word, element, 4), bits = word;
  if (size == 8) memcpy(&bits, element, 8);
  sprintf(digits, "%0*" PRIx64, (int)(2 * size), bits);
  return digits;
}

void check_result(const char *id, const value *out, adead_dtype dtype, const size_t *result_dims, size_t result_rank,
                  const void *data, size_t bytes) {
  size_t dims[ADEAD_MAX_RANK], rank = read_shape(out->shape, dims), i;
  char text[400], *at = text;
  if (strcmp(adead_dtype_name(dtype), out->dtype) || rank != result_rank ||
      memcmp(dims, result_dims, rank * sizeof *dims)) {
    at += sprintf(at, "%s ", adead_dtype_name(dtype));
    for (i = 0; i < result_rank; i++) at += sprintf(at, "%s%lu", i ? "," : "", (unsigned long)result_dims[i]);
    fail(id, out->shape, text);
  } else if (!strncmp(out->data, "sha256:", 7)) {
    sha256_hex(data, bytes, text);
    if (strcmp(text, out->data + 7)) fail(id, out->data + 7, text);
  } else {
    size_t size = adead_dtype_size(dtype);
    unsigned char *expected = allocate(bytes);
    fill(expected, dtype, bytes / size, out->data);
    for (i = 0; i < bytes && expected[i] == ((const unsigned char *)data)[i]; i++) continue;
    if (i < bytes) {
      char digits[17];
      i -= i % size;
      sprintf(text, "%s at element %lu", hex(digits, (const unsigned char *)data + i, size), (unsigned long)(i / size));
      fail(id, hex(digits, expected + i, size), text);
    }
    free(expected);
  }
}

/* --- files ----------------------------------------------------------------------------------------------------------- */

static int wanted(const char *id, char **prefixes) {
  if (!*prefixes) return 1;
  for (; *prefixes; prefixes++) {
    if (!strncmp(id, *prefixes, strlen(*prefixes))) return 1;
  }
  return 0;
}

/* The next word of a line, which it ends; NULL after the last. */
static char *word(char **line) {
  char *start = *line, *end = start + strcspn(start, " ");
  *line = *end ? end + 1 : end;
  *end = 0;
  return *start ? start : NULL;
}

static value parse_value(char **line) {
  value v = {word(line), NULL, NULL};
  v.shape = word(line);
  v.data = word(line);
  return v;
}

/* NAME=VALUE, which it cuts. */
static int parse_attr(char *text, const char *attr[2]) {
  char *equals = strchr(text, '=');
  if (!equals) return 0;
  *equals = 0;
  attr[0] = text;
  attr[1] = equals + 1;
  return 1;
}

/* An earlier value's number. */
static int parse_number(const pipeline_case *p, const char *text) {
  char *end;
  unsigned long number = strtoul(text, &end, 10);
  if (*end || number >= p->value_count) fatal(text, "no value");
  return (int)number;
}

static recorded_value *next_value(pipeline_case *p, int source) {
  recorded_value *v = &p->values[p->value_count];
  if (p->value_count == MAX_VALUES) fatal(NULL, "too many values");
  memset(v, 0, sizeof *v);
  v->source = source;
  return v;
}

/* Reads a line of a pipeline; whether there is such a one. */
static int pipeline_line(pipeline_case *p, const char *key, char *line) {
  pipeline_run *run = &p->runs[p->run_count - 1];
  recorded_value *v;
  char *text;
  if (!strcmp(key, "in") && run->input_count < MAX_OPERANDS) {
    value given = run->inputs[run->input_count++] = parse_value(&line);
    if (p->run_count == 1) next_value(p, VALUE_INPUT)->given = given, p->value_count++;
  } else if (!strcmp(key, "const")) {
    next_value(p, VALUE_CONSTANT)->given = parse_value(&line), p->value_count++;
  } else if (!strcmp(key, "reshape")) {
    v = next_value(p, VALUE_RESHAPE);
    v->operands[v->operand_count++] = parse_number(p, word(&line));
    v->given.shape = line;
    p->value_count++;
  } else if (!strcmp(key, "do")) {
    v = next_value(p, VALUE_OPERATION);
    v->op = word(&line);
    while ((text = word(&line))) {
      if (v->attr_count == MAX_ATTRS || v->operand_count == 8) fatal(text, "too much");
      if (parse_attr(text, v->attrs[v->attr_count])) v->attr_count++;
      else v->operands[v->operand_count++] = strcmp(text, "-") ? parse_number(p, text) : -1;
    }
    p->value_count++;
  } else if (!strcmp(key, "give") && p->give_count < MAX_OUTPUTS) {
    p->gives[p->give_count++] = (size_t)parse_number(p, line);
  } else if (!strcmp(key, "out") && run->output_count < MAX_OUTPUTS) {
    run->outputs[run->output_count++] = parse_value(&line);
  } else if (!strcmp(key, "error")) {
    run->error = line;
  } else if (!strcmp(key, "again") && p->run_count < MAX_RUNS) {
    memset(&p->runs[p->run_count++], 0, sizeof *p->runs);
  } else {
    return 0;
  }
  return 1;
}

/* Reads a line of a case of gradients: its operation, and behind it the loss, SUM(y*g), become the pipeline. */
static int gradient_line(pipeline_case *p, int *numbers, const test_case *c, const char *key, char *line) {
  pipeline_run *run = &p->runs[0];
  recorded_value *v;
  if (!strcmp(key, "g")) {
    const int y = (int)p->value_count;
    v = next_value(p, VALUE_OPERATION);
    v->op = c->op;
    memcpy(v->attrs, c->attrs, sizeof v->attrs);
    v->attr_count = c->attr_count;
    v->operand_count = c->operand_count;
    if (v->operand_count > sizeof v->operands / sizeof *v->operands) fatal(c->id, "too many operands");
    memcpy(v->operands, numbers, v->operand_count * sizeof *numbers);
    p->value_count++;
    next_value(p, VALUE_CONSTANT)->given = parse_value(&line), p->value_count++;
    v = next_value(p, VALUE_OPERATION);
    v->op = "mul", v->operands[0] = y, v->operands[1] = y + 1, v->operand_count = 2;
    p->value_count++;
    v = next_value(p, VALUE_OPERATION);
    v->op = "sum", v->operands[0] = y + 2, v->operand_count = 1;
    v->attrs[0][0] = "axis", v->attrs[0][1] = "all", v->attr_count = 1;
    p->value_count++;
  } else if (!strcmp(key, "by") && p->by_count < MAX_OUTPUTS) {
    const size_t number = strtoul(word(&line), NULL, 10);
    if (number >= c->operand_count || numbers[number] < 0) fatal(c->id, "no such operand");
    p->by[p->by_count++] = (size_t)numbers[number];
    run->outputs[run->output_count++] = parse_value(&line);
  } else {
    return 0;
  }
  return 1;
}

/* Ends the process where a run that is to succeed has not an expectation for each output. */
static void check_pipeline(const char *id, const pipeline_case *p) {
  size_t i, outputs = p->by_count + p->give_count;
  outputs = outputs ? outputs : 1;
  for (i = 0; i < p->run_count; i++) {
    if (!p->runs[i].error && p->runs[i].output_count != outputs) fatal(id, "another number of outputs is expected than given");
  }
}

int fits_recording(const pipeline_case *p, const pipeline_run *run) {
  const pipeline_run *first = &p->runs[0];
  size_t i;
  for (i = 0; i < run->input_count && i < first->input_count; i++) {
    if (strcmp(run->inputs[i].dtype, first->inputs[i].dtype) || strcmp(run->inputs[i].shape, first->inputs[i].shape)) return 0;
  }
  return run->input_count == first->input_count;
}

static void run_text(char *text, char **prefixes, void (*run)(const test_case *)) {
  static pipeline_case p;
  test_case c;
  char *line, *next, *key;
  int gradients = 0, numbers[MAX_OPERANDS];
  for (line = text; *line; line = next) {
    next = line + strcspn(line, "\n");
    if (*next) *next++ = 0;
    if (*line == '#' || !(key = word(&line))) continue;
    if (!strcmp(key, "format")) {
      gradients = !strcmp(line, "1 adead-gradients");
      if (!gradients && strcmp(line, "1 adead-contract-2")) fatal(line, "another format");
    } else if (!strcmp(key, "case")) {
      memset(&c, 0, sizeof c);
      c.id = line;
    } else if (!strcmp(key, "requires")) {
      /* The CPU, the one device of this version, has every capability; a minimal library lacks these two. */
      c.integers |= !strcmp(line, "integers");
      c.quantized |= !strcmp(line, "quantized");
    } else if (!strcmp(key, "end")) {
      if (c.pipeline) check_pipeline(c.id, c.pipeline);
      if (wanted(c.id, prefixes)) run(&c);
    } else if (!strcmp(key, "op")) {
      c.op = line;
      if (!gradients && strcmp(line, "pipeline")) continue;
      memset(&p, 0, sizeof p);
      p.run_count = 1;
      c.pipeline = &p;
    } else if (c.pipeline && !gradients) {
      if (!pipeline_line(&p, key, line)) fatal(c.id, key);
    } else if (!strcmp(key, "attr") && c.attr_count < MAX_ATTRS) {
      c.attrs[c.attr_count][0] = word(&line);
      c.attrs[c.attr_count++][1] = line;
    } else if (!strcmp(key, "in") && gradients && c.operand_count < MAX_OPERANDS) {
      const int given = strcmp(line, "none") != 0;
      numbers[c.operand_count++] = given ? (int)p.value_count : -1;
      if (given && !pipeline_line(&p, key, line)) fatal(c.id, key);
    } else if (gradients && gradient_line(&p, numbers, &c, key, line)) {
      continue;
    } else if (!strcmp(key, "in") && c.operand_count < MAX_OPERANDS) {
      c.operands[c.operand_count++] = parse_value(&line);
    } else if (!strcmp(key, "out")) {
      c.out = parse_value(&line);
    } else if (!strcmp(key, "error")) {
      c.error = line;
    } else {
      fatal(c.id, key);
    }
  }
}

static char *read_file(const char *path) {
  FILE *file = fopen(path, "rb");
  long size;
  char *text;
  if (!file || fseek(file, 0, SEEK_END) || (size = ftell(file)) < 0) fatal(path, "can't be read");
  rewind(file);
  text = allocate((size_t)size + 1);
  if (fread(text, 1, (size_t)size, file) != (size_t)size) fatal(path, "can't be read");
  fclose(file);
  text[size] = 0;
  return text;
}

static int is_case_file(const struct dirent *entry) {
  const char *dot = strrchr(entry->d_name, '.');
  return dot && !strcmp(dot, ".txt");
}

static int by_name(const struct dirent **a, const struct dirent **b) { return strcmp((*a)->d_name, (*b)->d_name); }

static void run_file(const char *path, char **prefixes, void (*run)(const test_case *)) {
  char *text = read_file(path);
  run_text(text, prefixes, run);
  free(text);
}

void each_case(const char *place, char **prefixes, void (*run)(const test_case *)) {
  const size_t length = strlen(place);
  struct dirent **entries;
  int files, i;
  if (length > 4 && !strcmp(place + length - 4, ".txt")) {
    run_file(place, prefixes, run);
    return;
  }
  files = scandir(place, &entries, is_case_file, by_name);
  if (files <= 0) fatal(place, "no case files");
  for (i = 0; i < files; i++) {
    char *path = allocate(length + strlen(entries[i]->d_name) + 2);
    sprintf(path, "%s/%s", place, entries[i]->d_name);
    run_file(path, prefixes, run);
    free(path);
    free(entries[i]);
  }
  free(entries);
}
