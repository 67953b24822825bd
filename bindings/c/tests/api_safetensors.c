/* Files of weights: what is right although it is odd, and what is malformed, which is refused. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"

#include <unistd.h>

static const char *const model = SENTENCES "/tiny/model.safetensors";
static char path[] = "nn-XXXXXX";

static void write_file(const void *bytes, size_t size) {
  FILE *file = fopen(path, "wb");
  CHECK(file && fwrite(bytes, 1, size, file) == size && !fclose(file));
}

/* A header's length, a header, and so many bytes behind it. */
static void write_header(const char *header, size_t length, size_t bytes) {
  char *all = calloc(1, 8 + length + bytes);
  size_t i;
  CHECK(all);
  for (i = 0; i < 8; i++) all[i] = (char)(length >> 8 * i);
  memcpy(all + 8, header, length);
  write_file(all, 8 + length + bytes);
  free(all);
}

static void refused(const char *words) {
  adead_safetensors *weights = NULL;
  FAILS(adead_safetensors_open(path, &weights), ADEAD_INVALID_ARGUMENT, words);
  FAILS(adead_safetensors_open(path, &weights), ADEAD_INVALID_ARGUMENT, ": not a safetensors file: ");
  CHECK(!weights);
}

#define ENTRY(dtype, shape, offsets) "{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"
#define ONE ENTRY("F32", "[2]", "[0,8]")
#define HUGE_DIM "9223372036854775807"
#define FORM "a tensor has dtype, shape and"

static void right(void) {
  static const char odd[] = "{ \"__metadata__\" : {\"a\":\"\\\"\\\\\"}, \"\\u00e9\\ud83c\\udf0a\\u6e2f\\n\":" ENTRY(
      "U8", "[1]", "[0,1]") ",\n\"b\":" ENTRY("F32", "[ 2 ]", "[1, 9]") ",\"c\":" ENTRY("F32", "[]", "[9,13]") ",\"d\":" ENTRY(
      "F32", "[0,3]", "[13,13]") "}  ";
  static const char *const names[] = {"b", "c", "d", "\xc3\xa9\xf0\x9f\x8c\x8a\xe6\xb8\xaf\n"};
  adead_safetensors *weights = NULL;
  adead_tensor *tensor = NULL;
  const size_t *dims = NULL;
  const char *name = NULL;
  size_t count = 0, rank = 0, i;
  write_header(odd, sizeof odd - 1, 13);
  OK(adead_safetensors_open(path, &weights));
  OK(adead_safetensors_count(weights, &count));
  CHECK(count == 4);
  for (i = 0; i < 4; i++) {
    OK(adead_safetensors_name(weights, i, &name));
    CHECK(!strcmp(name, names[i]));
    OK(adead_safetensors_dims(weights, name, &dims, &rank));
    if (i == 3) break;
    OK(adead_safetensors_tensor(weights, name, dims, rank, &tensor));
    OK(adead_tensor_rank(tensor, &count));
    CHECK(rank == count && rank == (i == 0 ? 1 : i == 1 ? 0 : 2));
    adead_tensor_destroy(tensor);
  }
  FAILS(adead_safetensors_tensor(weights, name, dims, rank, &tensor), ADEAD_DTYPE_MISMATCH,
        "has elements of U8; F32, F16, BF16 and F64 are taken");
  FAILS(adead_safetensors_name(weights, 4, &name), ADEAD_INVALID_ARGUMENT, "index is 4; there are 4 tensors");
  adead_safetensors_close(weights);
  write_header("{}", 2, 0);
  OK(adead_safetensors_open(path, &weights));
  OK(adead_safetensors_count(weights, &count));
  CHECK(count == 0);
  FAILS(adead_safetensors_tensor(weights, "a", NULL, 0, &tensor), ADEAD_INVALID_ARGUMENT, "the file's 0 tensors");
  adead_safetensors_close(weights);
}

static void of_the_model(void) {
  static const char bias[] = "embeddings.LayerNorm.bias";
  static const size_t other[] = {4, 8};
  adead_safetensors *weights = NULL;
  adead_tensor *tensor = NULL;
  const size_t *dims = NULL;
  const char *name = NULL, *before = "";
  const void *data = NULL;
  size_t count = 0, rank = 0, i;
  int32_t there = 7;
  OK(adead_safetensors_open(model, &weights));
  OK(adead_safetensors_count(weights, &count));
  CHECK(count == 37);
  for (i = 0; i < count; i++, before = name) {
    adead_dtype dtype = ADEAD_DTYPE_I32;
    OK(adead_safetensors_name(weights, i, &name));
    CHECK(strcmp(before, name) < 0);
    OK(adead_safetensors_dims(weights, name, &dims, &rank));
    OK(adead_safetensors_tensor(weights, name, dims, rank, &tensor));
    OK(adead_tensor_dtype(tensor, &dtype));
    CHECK(dtype == ADEAD_DTYPE_F32);
    adead_tensor_destroy(tensor);
  }
  OK(adead_safetensors_contains(weights, bias, &there));
  CHECK(there == 1);
  OK(adead_safetensors_contains(weights, "nothing", &there));
  CHECK(there == 0);
  OK(adead_safetensors_dims(weights, "encoder.layer.0.intermediate.dense.weight", &dims, &rank));
  CHECK(rank == 2 && dims[0] == 48 && dims[1] == 32);
  /* bf16 is the upper half of f32. */
  OK(adead_safetensors_tensor(weights, "embeddings.word_embeddings.weight", (const size_t[]){92, 32}, 2, &tensor));
  OK(adead_tensor_data(tensor, &data));
  for (i = 0; i < (size_t)92 * 32; i++) {
    uint32_t raw;
    memcpy(&raw, (const char *)data + i * 4, 4);
    CHECK(!(raw & 0xffff));
  }
  adead_tensor_destroy(tensor);
  tensor = NULL;
  FAILS(adead_safetensors_tensor(weights, bias, other, 2, &tensor), ADEAD_SHAPE_MISMATCH,
        "tiny/model.safetensors: the tensor 'embeddings.LayerNorm.bias' is [32]; it must be [4, 8]");
  FAILS(adead_safetensors_dims(weights, "nothing", &dims, &rank), ADEAD_INVALID_ARGUMENT,
        "the tensor 'nothing' is not among the file's 37 tensors");
  FAILS(adead_safetensors_dims(weights, NULL, &dims, &rank), ADEAD_INVALID_ARGUMENT, "name is NULL");
  FAILS(adead_safetensors_tensor(weights, bias, NULL, 2, &tensor), ADEAD_INVALID_ARGUMENT, "dims is NULL");
  FAILS(adead_safetensors_count(NULL, &count), ADEAD_INVALID_ARGUMENT, "file is NULL");
  CHECK(!tensor);
  adead_safetensors_close(weights);
  weights = NULL;
  FAILS(adead_safetensors_open(SENTENCES "/nowhere", &weights), ADEAD_IO, "nowhere: No such file");
  FAILS(adead_safetensors_open(SENTENCES, &weights), ADEAD_IO, "irectory");
  FAILS(adead_safetensors_open(NULL, &weights), ADEAD_INVALID_ARGUMENT, "path is NULL");
  FAILS(adead_safetensors_open(model, NULL), ADEAD_INVALID_ARGUMENT, "out is NULL");
  CHECK(!weights);
}

static void malformed(void) {
  static const struct {
    const char *header;
    size_t length, bytes;
    const char *why;
  } cases[] = {
#define CASE(header, bytes, why) {header, sizeof(header) - 1, bytes, why}
      CASE("", 0, "byte 0 of the header: '{' is missing"),
      CASE("{", 0, "'\"' is missing"),
      CASE("[]", 0, "'{' is missing"),
      CASE("{}x", 0, "continues after"),
      CASE("{}\0", 0, "continues after"),
      CASE("{\"a\":3}", 0, "'{' is missing"),
      CASE("{\"a\":{}}", 0, FORM),
      CASE("{\"a\":" ONE ",}", 8, "'\"' is missing"),
      CASE("{\"a\"" ONE "}", 8, "':' is missing"),
      CASE("{\"a\":" ONE ",\"a\":" ONE "}", 8, "the name occurs twice"),
      CASE("{\"a\":" ONE ",\"\\u0061\":" ONE "}", 8, "the name occurs twice"),
      CASE("{\"a", 0, "'\"' is missing"),
      CASE("{\"a\\", 0, "no such escape"),
      CASE("{\"a\\x\":3}", 0, "no such escape"),
      CASE("{\"\\u12g4\":3}", 0, "hexadecimal"),
      CASE("{\"\\u12", 0, "hexadecimal"),
      CASE("{\"\\ud800\":3}", 0, "surrogate"),
      CASE("{\"\\ud800\\u0041\":3}", 0, "surrogate"),
      CASE("{\"\\udc00\":3}", 0, "surrogate"),
      CASE("{\"a\0\":3}", 0, "control character"),
      CASE("{\"a\nb\":3}", 0, "control character"),
      CASE("{\"a\xff\":3}", 0, "not UTF-8"),
      CASE("{\"a\xc0\x80\":3}", 0, "not UTF-8"),
      CASE("{\"a\xe0\x9f\xbf\":3}", 0, "not UTF-8"),
      CASE("{\"a\xed\xa0\x80\":3}", 0, "not UTF-8"),
      CASE("{\"a\xf4\x90\x80\x80\":3}", 0, "not UTF-8"),
      CASE("{\"a\xe2\x82", 0, "not UTF-8"),
      CASE("{\"__metadata__\":3}", 0, "'{' is missing"),
      CASE("{\"__metadata__\":{\"a\":3}}", 0, "'\"' is missing"),
      CASE("{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\"}}", 0, "each once"),
      CASE("{\"a\":{\"shape\":[1],\"shape\":[1]}}", 0, "each once"),
      CASE("{\"a\":{\"data_offsets\":[0,8],\"shape\":[2]}}", 8, FORM),
      CASE("{\"a\":{\"kind\":\"F32\"}}", 0, "each once"),
      CASE("{\"a\":" ENTRY("F7", "[2]", "[0,8]") "}", 8, "no such dtype"),
      CASE("{\"a\":" ENTRY("F32", "[-2]", "[0,8]") "}", 8, "a whole number is missing"),
      CASE("{\"a\":" ENTRY("F32", "[2.0]", "[0,8]") "}", 8, "']' is missing"),
      CASE("{\"a\":" ENTRY("F32", "[02]", "[0,8]") "}", 8, "a whole number is missing"),
      CASE("{\"a\":" ENTRY("F32", "[2,]", "[0,8]") "}", 8, "a whole number is missing"),
      CASE("{\"a\":" ENTRY("F32", "[18446744073709551616]", "[0,8]") "}", 8, "too large"),
      CASE("{\"a\":" ENTRY("F32", "[2]", "[0,8,9]") "}", 8, "two data_offsets"),
      CASE("{\"a\":" ENTRY("F32", "[2]", "[8,0]") "}", 8, "offsets [8, 0]; 0 is the next"),
      CASE("{\"a\":" ENTRY("F32", "[2]", "[0,12]") "}", 12, "the tensor 'a' of 8 bytes has offsets [0, 12]"),
      CASE("{\"a\":" ENTRY("F32", "[2]", "[4,12]") "}", 12, "0 is the next"),
      CASE("{\"a\":" ONE ",\"b\":" ONE "}", 8, "8 is the next"),
      CASE("{\"a\":" ENTRY("F32", "[" HUGE_DIM "," HUGE_DIM "]", "[0,8]") "}", 8, "offsets"),
      CASE("{\"a\":" ENTRY("F32", "[2]", "[0," HUGE_DIM "]") "}", 8, "offsets"),
      CASE("{\"a\":" ONE "}", 7, "the tensors have 8 bytes and the file 7 for them"),
      CASE("{\"a\":" ONE "}", 9, "the tensors have 8 bytes and the file 9 for them"),
  };
  size_t i;
  for (i = 0; i < sizeof cases / sizeof *cases; i++) {
    write_header(cases[i].header, cases[i].length, cases[i].bytes);
    refused(cases[i].why);
  }
  write_file("", 0);
  refused("0 bytes");
  write_file("\xff\xff\xff\xff\xff\xff\xff", 7);
  refused("7 bytes");
  write_file("\xff\xff\xff\xff\xff\xff\xff\xff{}", 10);
  refused("a header of 18446744073709551615 bytes in a file of 10");
}

/* A file that gets shorter after it was opened is an error, and no fault. */
static void shorter(void) {
  adead_safetensors *weights = NULL;
  adead_tensor *tensor = NULL;
  write_header("{\"a\":" ONE "}", sizeof("{\"a\":" ONE "}") - 1, 8);
  OK(adead_safetensors_open(path, &weights));
  write_file("", 0);
  FAILS(adead_safetensors_tensor(weights, "a", (const size_t[]){2}, 1, &tensor), ADEAD_IO, "has become shorter");
  CHECK(!tensor);
  adead_safetensors_close(weights);
}

/* A file that was cut anywhere, and one of which any byte of the header is another. */
static void damaged(void) {
  FILE *file = fopen(model, "rb");
  char *whole = malloc(1 << 20);
  size_t size, header = 8, i;
  CHECK(file && whole);
  size = fread(whole, 1, 1 << 20, file);
  fclose(file);
  for (i = 0; i < 8; i++) header += (size_t)(unsigned char)whole[i] << 8 * i;
  CHECK(header < size && size < 1 << 20);
  for (i = 0; i < size; i += i < header ? 37 : 9973) {
    write_file(whole, i);
    refused("");
  }
  /* None of these has the right number of bytes behind it, so what is read is refused, too. */
  for (i = 8; i < header; i++) {
    whole[i] = (char)(whole[i] ^ (1 << i % 7));
    write_header(whole + 8, header - 8, 1);
    refused("");
    whole[i] = (char)(whole[i] ^ (1 << i % 7));
  }
  free(whole);
}

int main(void) {
  int file = mkstemp(path);
  CHECK(file >= 0);
  close(file);
  right();
  of_the_model();
  malformed();
  shorter();
  damaged();
  unlink(path);
  return 0;
}
