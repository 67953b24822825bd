// What the kernels of products of fixed-point numbers share: their constants and parameters, and the last step of a product.
// Include after fixed.glsl and memory.glsl.

layout(constant_id = 11) const uint DIGITS = 3;
// Bits: there is a C; there is a bias; relu comes last; this dispatch starts at the first k; it ends at the last k. For
// cutting: the elements of a's lines are contiguous; those of b's lines are; b's scale is that of attention's values.
layout(constant_id = 12) const uint HAS = 0;

const bool HAS_C = (HAS & 1u) != 0u;
const bool HAS_BIAS = (HAS & 2u) != 0u;
const bool RELU = (HAS & 4u) != 0u;
const bool FIRST = (HAS & 8u) != 0u;
const bool LAST = (HAS & 16u) != 0u;
const bool A_ALONG = (HAS & 32u) != 0u;
const bool B_ALONG = (HAS & 64u) != 0u;
const bool GIVEN = (HAS & 128u) != 0u;

// Operands' digits lie in blocks of 128 lines and 64 of k. These are the 16-byte chunks of a plane in a block.
const uint PLANE = 512;

layout(push_constant) uniform Push {
    // Products: digits and scales of both operands. Cutting: both operands, then their digits.
    uvec2 p0, p1, p2, p3;
    // Cutting: the scales of both operands, then the largest magnitudes of their lines' parts.
    uvec2 c, bias;
    uvec2 y, totals;
    // For each batch axis but the outermost, innermost first: its length, and the steps along it in a and b (in
    // matrices) and c.
    uvec2 table;
    // Products: m, n, blocks of k in total, the first block here, the block behind the last here. Cutting: k, workgroups
    // for a, lines of a matrix of a, and of b, the length of a part.
    uint w0, w1, w2, w3, w4;
    // Products: steps of the batches. Cutting: a's distances between lines and along k, then b's.
    uint axes, a_step, b_step, c_step, c_row, c_column;
    float alpha, beta;
};

// Returns a batch's matrices of a and b, and its offset in c.
uvec3 origins(const uint batch) {
    uvec3 origin = uvec3(0);
    uint rest = batch;
    for (uint i = 0; i < axes; i++) {
        uint length = load_word(table, 4u * i);
        for (uint j = 0; j < 3; j++) {
            origin[j] += rest % length * load_word(table, 4u * i + j + 1u);
        }
        rest /= length;
    }
    return origin + rest * uvec3(a_step, b_step, c_step);
}

// Stores a total as a number of the result. s and r are the scales of its row and its column.
void finish(const Total t, const int s, const int r, const uint batch, const uint row, const uint column, const uvec3 origin) {
    precise float x = f(s == NOT_FINITE || r == NOT_FINITE ? NAN : rounded(t, -s - r));
    x = canonical(x * alpha);
    if (HAS_C) {
        x = x + beta * load(c, origin.z + row * c_row + column * c_column);
    }
    if (HAS_BIAS) {
        x = x + load(bias, column);
    }
    if (RELU) {
        x = floatBitsToInt(x) > 0 || is_nan(x) ? x : 0.0;
    }
    store(y, (batch * w0 + row) * w1 + column, x);
}
