/* Layouts: there, back, described, and the errors. */
#include "check.h"

enum { ROWS = 3, COLS = 5 };

/* Arranges values and compares them; restores them. */
static void check(adead_layout *layout, const float *plain, const float *expected, size_t rows, size_t cols) {
  float arranged[64], back[ROWS * COLS];
  size_t r = 0, c = 0, before = 0, after = 0, i;
  OK(adead_layout_dims(layout, &r, &c));
  CHECK(r == rows && c == cols);
  OK(adead_layout_bytes(layout, &before, &after));
  CHECK(before == sizeof back && after == rows * cols * sizeof(float) && after <= sizeof arranged);
  memset(arranged, 0x55, sizeof arranged);
  OK(adead_layout_arrange(layout, plain, before, arranged, after));
  for (i = 0; i < rows * cols; i++) {
    CHECK(arranged[i] == expected[i]);
  }
  memset(back, 0x55, sizeof back);
  OK(adead_layout_restore(layout, arranged, after, back, before));
  CHECK(!memcmp(back, plain, sizeof back));
  adead_layout_destroy(layout);
}

static void errors(const float *plain) {
  float out[24];
  size_t rows = 7, cols = 7;
  adead_layout *layout = NULL;
  FAILS(adead_layout_optimize_matrix(4, ROWS, COLS, 0, &layout), ADEAD_INVALID_ARGUMENT, "tiles of 0");
  FAILS(adead_layout_optimize_matrix(3, ROWS, COLS, 2, &layout), ADEAD_INVALID_ARGUMENT, "element is 3");
  FAILS(adead_layout_optimize_matrix(4, (size_t)-1, COLS, 2, &layout), ADEAD_INVALID_ARGUMENT, "elements");
  FAILS(adead_layout_optimize_matrix(4, ROWS, COLS, 2, NULL), ADEAD_INVALID_ARGUMENT, "out is NULL");
  FAILS(adead_layout_align(4, ROWS, COLS, 6, &layout), ADEAD_INVALID_ARGUMENT, "alignment of 6 bytes");
  FAILS(adead_layout_align(4, ROWS, COLS, 16, NULL), ADEAD_INVALID_ARGUMENT, "out is NULL");
  FAILS(adead_layout_coalesce(4, 15, 4, &layout), ADEAD_INVALID_ARGUMENT, "15 elements");
  FAILS(adead_layout_coalesce(4, 15, 5, NULL), ADEAD_INVALID_ARGUMENT, "out is NULL");
  FAILS(adead_layout_morton(0, ROWS, COLS, &layout), ADEAD_INVALID_ARGUMENT, "element is 0");
  FAILS(adead_layout_morton(4, ROWS, COLS, NULL), ADEAD_INVALID_ARGUMENT, "out is NULL");
  CHECK(!layout);

  OK(adead_layout_optimize_matrix(4, ROWS, COLS, 2, &layout));
  memset(out, 0x55, sizeof out);
  FAILS(adead_layout_dims(NULL, &rows, &cols), ADEAD_INVALID_ARGUMENT, "layout is NULL");
  FAILS(adead_layout_dims(layout, NULL, &cols), ADEAD_INVALID_ARGUMENT, "out_rows is NULL");
  FAILS(adead_layout_dims(layout, &rows, NULL), ADEAD_INVALID_ARGUMENT, "out_cols is NULL");
  FAILS(adead_layout_bytes(NULL, &rows, &cols), ADEAD_INVALID_ARGUMENT, "layout is NULL");
  FAILS(adead_layout_bytes(layout, NULL, &cols), ADEAD_INVALID_ARGUMENT, "out_plain is NULL");
  FAILS(adead_layout_bytes(layout, &rows, NULL), ADEAD_INVALID_ARGUMENT, "out_arranged is NULL");
  CHECK(rows == 7 && cols == 7);
  FAILS(adead_layout_arrange(NULL, plain, 60, out, 96), ADEAD_INVALID_ARGUMENT, "layout is NULL");
  FAILS(adead_layout_arrange(layout, NULL, 60, out, 96), ADEAD_INVALID_ARGUMENT, "data is NULL");
  FAILS(adead_layout_arrange(layout, plain, 60, NULL, 96), ADEAD_INVALID_ARGUMENT, "out is NULL");
  FAILS(adead_layout_arrange(layout, plain, 56, out, 96), ADEAD_SHAPE_MISMATCH, "it needs 60 and 96");
  FAILS(adead_layout_arrange(layout, plain, 60, out, 92), ADEAD_SHAPE_MISMATCH, "it needs 60 and 96");
  FAILS(adead_layout_arrange(layout, out + 1, 60, out, 96), ADEAD_INVALID_ARGUMENT, "overlap");
  FAILS(adead_layout_restore(layout, plain, 60, out, 96), ADEAD_SHAPE_MISMATCH, "it needs 60 and 96");
  FAILS(adead_layout_restore(NULL, plain, 96, out, 60), ADEAD_INVALID_ARGUMENT, "layout is NULL");
  CHECK(((unsigned char *)out)[0] == 0x55 && ((unsigned char *)out)[95] == 0x55);
  adead_layout_destroy(layout);
  adead_layout_destroy(NULL);

  /* Nothing to move. */
  OK(adead_layout_morton(8, 0, 5, &layout));
  OK(adead_layout_arrange(layout, NULL, 0, NULL, 0));
  adead_layout_destroy(layout);
}

int main(void) {
  static const float tiles[] = {1, 2, 6, 7, 3, 4, 8, 9, 5, 0, 10, 0, 11, 12, 0, 0, 13, 14, 0, 0, 15, 0, 0, 0};
  static const float aligned[] = {1, 2, 3, 4, 5, 0, 0, 0, 6, 7, 8, 9, 10, 0, 0, 0, 11, 12, 13, 14, 15, 0, 0, 0};
  static const float fields[] = {1, 4, 7, 10, 13, 2, 5, 8, 11, 14, 3, 6, 9, 12, 15};
  static const float z[] = {1, 2, 6, 7, 3, 4, 8, 9, 11, 12, 0, 0, 13, 14, 0, 0,
                            5, 0, 10, 0, 0, 0, 0, 0, 15, 0, 0, 0, 0, 0, 0, 0};
  float plain[ROWS * COLS];
  adead_layout *layout = NULL;
  int i;
  for (i = 0; i < ROWS * COLS; i++) {
    plain[i] = (float)(i + 1);
  }
  OK(adead_layout_optimize_matrix(sizeof(float), ROWS, COLS, 2, &layout));
  check(layout, plain, tiles, 4, 6);
  OK(adead_layout_align(sizeof(float), ROWS, COLS, 32, &layout));
  check(layout, plain, aligned, 3, 8);
  OK(adead_layout_coalesce(sizeof(float), ROWS * COLS, 3, &layout));
  check(layout, plain, fields, 3, 5);
  OK(adead_layout_morton(sizeof(float), ROWS, COLS, &layout));
  check(layout, plain, z, 4, 8);
  errors(plain);
  return 0;
}
