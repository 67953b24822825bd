// Calls a kernel with parameters as they lie in memory: push constants, constants, the table.
template <class T> static T taken(const char *&from) {
    T value;
    size_t align = alignof(T) > 8 ? 8 : alignof(T);
    from = reinterpret_cast<const char *>((reinterpret_cast<uintptr_t>(from) + align - 1) / align * align);
    memcpy(&value, from, sizeof value);
    from += sizeof value;
    return value;
}
template <class... A> static void call(void (*f)(A...), const char *bytes, dim3u grid, dim3u block) {
    std::tuple<std::remove_const_t<A>...> arguments{taken<std::remove_const_t<A>>(bytes)...};
    launch(grid, block, [&] { std::apply(f, arguments); });
}
