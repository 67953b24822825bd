// Operands that are broadcast to a result. The table at `outer` has for each of `rank` axes, from the last to the first, its size and the
// elements between neighbours of three operands.

// Which elements of the operands make element i.
uvec3 sources(uint i) {
    uvec3 from = uvec3(0u);
    for (uint d = 0u; d < rank; d++) {
        uint size = load_word(outer, 4u * d), rest = i / size;
        uvec3 apart = uvec3(load_word(outer, 4u * d + 1u), load_word(outer, 4u * d + 2u), load_word(outer, 4u * d + 3u));
        from += (i - rest * size) * apart;
        i = rest;
    }
    return from;
}
