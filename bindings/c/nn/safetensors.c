/* The header of a safetensors file: JSON, of just the form that such a header has. */
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
  const char *name;
  size_t size;
} dtypes[] = {{"BOOL", 1}, {"U8", 1}, {"I8", 1}, {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"U16", 2}, {"I16", 2}, {"F16", 2},
              {"BF16", 2}, {"U32", 4}, {"I32", 4}, {"F32", 4}, {"U64", 8}, {"I64", 8}, {"F64", 8}};

/* At the first thing that is wrong it says what, and takes nothing more: `at` is then the end. */
typedef struct {
  const char *begin, *at, *end;
  char why[96];
  bool no_memory;
  /* The last string. */
  char *text;
  size_t length, room;
} reader;

static void fail(reader *r, const char *what) {
  if (!*r->why) snprintf(r->why, sizeof r->why, "byte %zu of the header: %s", (size_t)(r->at - r->begin), what);
  r->at = r->end;
}

static bool good(const reader *r) { return !*r->why; }

static void no_memory(reader *r) {
  r->no_memory = true;
  fail(r, "out of memory");
}

/* Room for one element more in an array of so many. */
static bool grow(reader *r, void *array, size_t count, size_t *room, size_t size) {
  void **to = array, *grown;
  size_t more = *room ? *room * 2 : 8;
  if (count < *room) return true;
  grown = more > (size_t)-1 / 2 / size ? NULL : realloc(*to, more * size);
  if (!grown) return no_memory(r), false;
  *to = grown;
  *room = more;
  return true;
}

static void space(reader *r) {
  while (r->at != r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r')) r->at++;
}

static bool take(reader *r, char wanted) {
  space(r);
  if (r->at == r->end || *r->at != wanted) return false;
  r->at++;
  return true;
}

static void expect(reader *r, char wanted) {
  char what[] = "'?' is missing";
  what[1] = wanted;
  if (!take(r, wanted)) fail(r, what);
}

/* Whether another member of an object or a list comes; else its end is taken. */
static bool more(reader *r, bool *first, char end) {
  if (*first) {
    *first = false;
    return !take(r, end) && good(r);
  }
  if (take(r, ',')) return true;
  expect(r, end);
  return false;
}

static void put(reader *r, unsigned byte) {
  if (!grow(r, &r->text, r->length, &r->room, 1)) return;
  r->text[r->length++] = (char)(unsigned char)byte;
}

static void put_utf8(reader *r, unsigned long code) {
  if (code < 0x80) {
    put(r, (unsigned)code);
    return;
  }
  if (code < 0x800) {
    put(r, (unsigned)(0xc0 | code >> 6));
  } else {
    if (code < 0x10000) {
      put(r, (unsigned)(0xe0 | code >> 12));
    } else {
      put(r, (unsigned)(0xf0 | code >> 18));
      put(r, (unsigned)(0x80 | (code >> 12 & 63)));
    }
    put(r, (unsigned)(0x80 | (code >> 6 & 63)));
  }
  put(r, (unsigned)(0x80 | (code & 63)));
}

/* Four hexadecimal digits. */
static unsigned long unit(reader *r) {
  static const char digits[] = "0123456789abcdefABCDEF";
  unsigned long code = 0;
  int i;
  for (i = 0; i < 4; i++) {
    const char *digit = r->at == r->end || !*r->at ? NULL : strchr(digits, *r->at);
    if (!digit) return fail(r, "an escape has four hexadecimal digits"), 0;
    code = code * 16 + (unsigned long)(digit - digits > 15 ? digit - digits - 6 : digit - digits);
    r->at++;
  }
  return code;
}

static void escaped(reader *r) {
  static const char names[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
  char letter = r->at == r->end ? '\0' : *r->at++;
  const char *known = letter ? strchr(names, letter) : NULL;
  if (known) {
    put(r, (unsigned char)meant[known - names]);
  } else if (letter == 'u') {
    unsigned long code = unit(r);
    if (code >= 0xd800 && code < 0xdc00 && r->end - r->at >= 2 && r->at[0] == '\\' && r->at[1] == 'u') {
      unsigned long low;
      r->at += 2;
      low = unit(r);
      code = low >= 0xdc00 && low < 0xe000 ? 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00) : 0xd800;
    }
    if (code >= 0xd800 && code < 0xe000) fail(r, "half of a surrogate pair");
    else if (good(r) && !code) fail(r, "a NUL in a string");
    else if (good(r)) put_utf8(r, code);
  } else {
    fail(r, "there is no such escape");
  }
}

/* The bytes of a letter of UTF-8 that is more than ASCII; 0 if it is none. */
static size_t letter_bytes(const unsigned char *at, size_t left) {
  size_t bytes = *at >= 0xc2 && *at < 0xe0 ? 2 : *at >= 0xe0 && *at < 0xf0 ? 3 : *at >= 0xf0 && *at < 0xf5 ? 4 : 0, i;
  if (!bytes || left < bytes) return 0;
  for (i = 1; i < bytes; i++) {
    if (at[i] >> 6 != 2) return 0;
  }
  /* Longer than need be, a surrogate, or beyond Unicode. */
  if ((*at == 0xe0 && at[1] < 0xa0) || (*at == 0xed && at[1] >= 0xa0)) return 0;
  return (*at == 0xf0 && at[1] < 0x90) || (*at == 0xf4 && at[1] >= 0x90) ? 0 : bytes;
}

/* A string, which `text` is then, with a NUL behind it. */
static void string(reader *r) {
  r->length = 0;
  expect(r, '"');
  while (r->at != r->end && *r->at != '"') {
    const unsigned char *at = (const unsigned char *)r->at;
    size_t bytes = *at < 0x80 ? 1 : letter_bytes(at, (size_t)(r->end - r->at));
    if (*at < 0x20) {
      fail(r, "a control character in a string");
    } else if (!bytes) {
      fail(r, "a string is not UTF-8");
    } else if (*at == '\\') {
      r->at++;
      escaped(r);
    } else {
      for (r->at += bytes; bytes; bytes--) put(r, *at++);
    }
  }
  expect(r, '"');
  put(r, 0);
}

static size_t number(reader *r) {
  const char *first;
  size_t value = 0;
  space(r);
  for (first = r->at; r->at != r->end && *r->at >= '0' && *r->at <= '9'; r->at++) {
    size_t digit = (size_t)(*r->at - '0');
    if (value > ((size_t)-1 - digit) / 10) return fail(r, "the number is too large"), 0;
    value = value * 10 + digit;
  }
  if (r->at == first || (*first == '0' && r->at - first > 1)) fail(r, "a whole number is missing");
  return value;
}

/* A list of numbers, for free(). */
static size_t *numbers(reader *r, size_t *count) {
  size_t *all = NULL, room = 0;
  bool first = true;
  *count = 0;
  expect(r, '[');
  while (more(r, &first, ']')) {
    size_t value = number(r);
    if (!good(r) || !grow(r, &all, *count, &room, sizeof *all)) break;
    all[(*count)++] = value;
  }
  return all;
}

static const char *dtype_named(const char *name, size_t *size) {
  size_t i;
  for (i = 0; i < COUNT_OF(dtypes); i++) {
    if (strcmp(name, dtypes[i].name)) continue;
    *size = dtypes[i].size;
    return dtypes[i].name;
  }
  return NULL;
}

/* What describes a tensor. What it has of it is the caller's, whether it is right or not. */
static void entry(reader *r, nn_stored *tensor) {
  size_t *offsets = NULL, count = 0, size;
  unsigned seen = 0;
  bool first = true;
  expect(r, '{');
  while (more(r, &first, '}')) {
    unsigned one = 0;
    string(r);
    if (good(r)) one = !strcmp(r->text, "dtype") ? 1 : !strcmp(r->text, "shape") ? 2 : !strcmp(r->text, "data_offsets") ? 4 : 0;
    expect(r, ':');
    if (!one || (seen & one)) {
      fail(r, "a tensor has dtype, shape and data_offsets, each once");
      break;
    }
    seen |= one;
    if (one == 2) tensor->dims = numbers(r, &tensor->rank);
    if (one == 4) offsets = numbers(r, &count);
    if (one != 1) continue;
    string(r);
    if (!good(r)) break;
    tensor->dtype = dtype_named(r->text, &size);
    if (!tensor->dtype) fail(r, "there is no such dtype");
  }
  if (seen != 7 || count != 2) fail(r, "a tensor has dtype, shape and two data_offsets");
  if (good(r)) {
    tensor->begin = offsets[0];
    tensor->end = offsets[1];
  }
  free(offsets);
}

static void metadata(reader *r) {
  bool first = true;
  expect(r, '{');
  while (more(r, &first, '}')) {
    string(r);
    expect(r, ':');
    string(r);
  }
}

static nn_stored *tensors(reader *r, size_t *count) {
  nn_stored *all = NULL;
  size_t room = 0;
  bool first = true;
  expect(r, '{');
  while (more(r, &first, '}')) {
    nn_stored tensor = {0};
    string(r);
    expect(r, ':');
    if (!good(r)) break;
    if (!strcmp(r->text, "__metadata__")) {
      metadata(r);
      continue;
    }
    if (!grow(r, &all, *count, &room, sizeof *all)) break;
    /* The text's memory becomes the name. */
    tensor.name = r->text;
    r->text = NULL;
    r->room = 0;
    entry(r, &tensor);
    all[(*count)++] = tensor;
  }
  space(r);
  if (r->at != r->end) fail(r, "the header goes on behind its object");
  return all;
}

static int by_place(const void *left, const void *right) {
  const nn_stored *a = left, *b = right;
  if (a->begin != b->begin) return a->begin < b->begin ? -1 : 1;
  return (a->end > b->end) - (a->end < b->end);
}

static int by_name(const void *left, const void *right) {
  return strcmp(((const nn_stored *)left)->name, ((const nn_stored *)right)->name);
}

static const char no_file[] = "no safetensors file";

/* Whether these tensors are the bytes behind the header, without gaps and surplus. */
static adead_status placed(const char *path, nn_stored *all, size_t count, size_t bytes) {
  size_t next = 0, i, k;
  if (count) qsort(all, count, sizeof *all, by_place);
  for (i = 0; i < count; i++) {
    const nn_stored *one = all + i;
    size_t size = 0;
    dtype_named(one->dtype, &size);
    /* Saturated: no file has as much. */
    for (k = 0; k < one->rank; k++) {
      size = one->dims[k] && size > (size_t)-1 / one->dims[k] ? (size_t)-1 : size * one->dims[k];
    }
    if (one->begin != next || one->end < one->begin || one->end - one->begin != size) {
      return nn_fail(ADEAD_INVALID_ARGUMENT, "%s: %s: the tensor '%s' of %zu bytes has offsets [%zu, %zu]; %zu is the next",
                     path, no_file, one->name, size, one->begin, one->end, next);
    }
    next = one->end;
  }
  if (next != bytes) {
    return nn_fail(ADEAD_INVALID_ARGUMENT, "%s: %s: the tensors have %zu bytes and the file %zu for them", path, no_file, next,
                   bytes);
  }
  return ADEAD_OK;
}

/* Sorts by name. Equal names stand beside each other then. */
static adead_status named(const char *path, nn_stored *all, size_t count) {
  size_t i;
  if (count) qsort(all, count, sizeof *all, by_name);
  for (i = 1; i < count; i++) {
    if (by_name(all + i - 1, all + i)) continue;
    return nn_fail(ADEAD_INVALID_ARGUMENT, "%s: %s: the name '%s' is there twice", path, no_file, all[i].name);
  }
  return ADEAD_OK;
}

adead_status nn_header_read(const char *path, const char *text, size_t size, size_t bytes, nn_stored **out, size_t *count) {
  reader r = {0};
  adead_status status = ADEAD_OK;
  size_t found = 0;
  nn_stored *all;
  r.begin = r.at = text;
  r.end = text + size;
  all = tensors(&r, &found);
  if (r.no_memory) status = nn_out_of_memory();
  else if (!good(&r)) status = nn_fail(ADEAD_INVALID_ARGUMENT, "%s: %s: %s", path, no_file, r.why);
  free(r.text);
  /* First of all, as two of a name can't be placed either. */
  if (!status) status = named(path, all, found);
  if (!status) status = placed(path, all, found, bytes);
  if (!status) status = named(path, all, found);
  if (status) {
    nn_header_free(all, found);
    return status;
  }
  *out = all;
  *count = found;
  return ADEAD_OK;
}

void nn_header_free(nn_stored *tensors, size_t count) {
  size_t i;
  for (i = 0; i < count; i++) {
    free(tensors[i].name);
    free(tensors[i].dims);
  }
  free(tensors);
}
