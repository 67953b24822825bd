// The greatest elements of lines, the greatest first, of equals that with the lower index. An element is two words: its key, which is
// above 0, and its index with all bits flipped. Tiles are sorted; runs of what they give are merged by twos.
//
// rank: elements of a tile, a power of two up to 1024. blocks: tiles or runs of a line. x_row, p_row: elements of a run at x and at y.
// FINISH: what becomes of a run: 0 it stays one; else it is all of its line: 1 elements, 2 indices, 3 indices in two words.
const bool SORTS = FUNCTION == TOPK_SORT;
shared uvec2 slots[SORTS ? 1024 : 1];

bool comes_before(const uvec2 a, const uvec2 b) {
    return a.x > b.x || (a.x == b.x && a.y > b.y);
}

void put(const uint run, const uint place, const uvec2 element) {
    if (FINISH == 0u) {
        Word2(at(y, run * p_row + place, 3u)).v = element;
        return;
    }
    uint outer_ = run / inner, i = (outer_ * p_row + place) * inner + (run - outer_ * inner);
    if (FINISH == 1u) {
        store(y, i, max_of_key(int(element.x ^ SIGN)));
    } else if (FINISH == 2u) {
        store_word(y, i, ~element.y);
    } else {
        Word2(at(y, i, 3u)).v = uvec2(~element.y, 0u);
    }
}

// A workgroup sorts 1024 elements: of one tile or of several short ones. What is behind a line's end comes last.
void sort_tiles() {
    uint t = gl_LocalInvocationIndex, first = gl_WorkGroupID.x * (1024u / rank);
    for (uint s = t; s < 1024u; s += 256u) {
        uint unit = first + s / rank, line = unit / blocks, i = (unit - line * blocks) * rank + s % rank;
        slots[s] = uvec2(0u);
        if (unit < units && i < n) {
            uint outer_ = line / inner;
            slots[s] = uvec2(uint(max_key(load(x, (outer_ * n + i) * inner + (line - outer_ * inner)))) ^ SIGN, ~i);
        }
    }
    for (uint size = 2u; size <= rank; size *= 2u) {
        for (uint apart = size / 2u; apart > 0u; apart /= 2u) {
            barrier();
            for (uint j = t; j < 512u; j += 256u) {
                uint low = 2u * (j & ~(apart - 1u)) | (j & (apart - 1u)), high = low + apart;
                uvec2 a = slots[low], b = slots[high];
                // Every other part the other way round, but for whole tiles.
                if (comes_before(b, a) == ((low & size & (rank - 1u)) == 0u)) {
                    slots[low] = b;
                    slots[high] = a;
                }
            }
        }
    }
    barrier();
    for (uint s = t; s < 1024u / rank * p_row; s += 256u) {
        uint tile = s / p_row, place = s - tile * p_row;
        if (first + tile < units) {
            put(first + tile, place, slots[tile * rank + place]);
        }
    }
}

// An invocation takes an element of one of two runs. Its place is its own in its run, and as many behind as come before it in the other.
void merge_runs() {
    uint e = gl_WorkGroupID.x * 256u + gl_LocalInvocationIndex;
    if (e >= units) {
        return;
    }
    uint pairs = (blocks + 1u) / 2u, run = e / (2u * x_row), r = e - run * 2u * x_row;
    uint line = run / pairs, pair = run - line * pairs, base = (line * blocks + 2u * pair) * x_row;
    bool second = r >= x_row, both = 2u * pair + 1u < blocks;
    uvec2 element = uvec2(0u);
    // Of a run that is not there, its elements come last.
    uint place = r, low = 0u, high = both ? x_row : 0u;
    if (both || !second) {
        element = Word2(at(x, base + r, 3u)).v;
        place = second ? r - x_row : r;
    }
    uint other = second ? base : base + x_row;
    while (low < high) {
        uint middle = (low + high) / 2u;
        uvec2 o = Word2(at(x, other + middle, 3u)).v;
        // Of equals, those of the first run.
        if (second ? !comes_before(element, o) : comes_before(o, element)) {
            low = middle + 1u;
        } else {
            high = middle;
        }
    }
    if (place + low < p_row) {
        put(run, place + low, element);
    }
}
