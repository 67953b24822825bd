// Element types.

// dtype::DType's numbers.
const uint F32 = 0u, F16 = 1u, BF16 = 2u, I32 = 3u, I64 = 4u, U32 = 5u, BOOL = 6u, U8 = 7u, F64 = 8u;

bool is_half(const uint dtype) {
    return dtype == F16 || dtype == BF16;
}

bool is_byte(const uint dtype) {
    return dtype == BOOL || dtype == U8;
}

// Of two words.
bool is_long(const uint dtype) {
    return dtype == I64 || dtype == F64;
}

// Integers and bools.
bool is_whole(const uint dtype) {
    return dtype >= I32 && dtype != F64;
}
