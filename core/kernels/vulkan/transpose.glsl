// Exchanges two axes, in squares of 32 × 32 through shared memory: y[i][j] = x[j][i], for each index of the other axes.

const uint WORDS = BYTES == 8u ? 2u : 1u;
shared uint square[WORDS][32 * 33];

void transpose() {
    uint column = gl_LocalInvocationIndex & 31u, row = gl_LocalInvocationIndex >> 5;
    uint rest = gl_WorkGroupID.x / n_squares;
    uint j0 = (gl_WorkGroupID.x - rest * n_squares) * 32u;
    uint other = rest / m_squares;
    uint i0 = (rest - other * m_squares) * 32u;
    uint of_x = 0u, of_y = 0u;
    for (uint d = 0u; d < rank; d++) {
        uint size = load_word(outer, 3u * d), next = other / size;
        of_x += (other - next * size) * load_word(outer, 3u * d + 1u);
        of_y += (other - next * size) * load_word(outer, 3u * d + 2u);
        other = next;
    }
    of_x += i0 + column;
    for (uint k = 0u; k < 4u; k++) {
        uint j = row + 8u * k;
        if (i0 + column < m && j0 + j < n) {
            uint from = of_x + (j0 + j) * x_row, to = j * 33u + column;
            if (BYTES == 2u) {
                square[0][to] = load_half(x, from);
            } else if (BYTES == 4u) {
                square[0][to] = load_word(x, from);
            } else {
                uvec2 v = Word2(at(x, from, 3u)).v;
                square[0][to] = v.x;
                square[WORDS - 1u][to] = v.y;
            }
        }
    }
    barrier();
    for (uint k = 0u; k < 4u; k++) {
        uint i = row + 8u * k;
        if (i0 + i < m && j0 + column < n) {
            uint from = column * 33u + i, to = of_y + (i0 + i) * y_row + j0 + column;
            if (BYTES == 2u) {
                if (KIND == 0u) {
                    store_half(y, to, square[0][from]);
                } else if ((column & 1u) == 0u) {
                    Word(at(y, to, 1u)).v = square[0][from] | square[0][from + 33u] << 16;
                }
            } else if (BYTES == 4u) {
                store_word(y, to, square[0][from]);
            } else {
                Word2(at(y, to, 3u)).v = uvec2(square[0][from], square[WORDS - 1u][from]);
            }
        }
    }
}
