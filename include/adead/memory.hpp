// Allocators that give the same offsets everywhere, and layouts of matrices.
#ifndef ADEAD_MEMORY_HPP
#define ADEAD_MEMORY_HPP

#include <adead/result.hpp>

namespace adead {
inline namespace ADEAD_HPP_MODE {

/// What an allocator has: block_size, capacity, used, available, largest_free, high_water, live.
using AllocatorStats = adead_allocator_stats;

/// Blocks in one region of host memory: the same calls give the same offsets, on every machine. One thread at a time.
class Allocator {
 public:
  Allocator() noexcept = default;
  explicit Allocator(adead_allocator *raw) noexcept : handle_(raw) {}

  /// `blocks` blocks of `block_size` bytes, a power of two; 0 is the core's default.
  static Returned<Allocator> create(std::size_t block_size = 0, std::size_t blocks = 0) {
    return detail::asked<Allocator>(adead_allocator_create, block_size, blocks);
  }

  /// The offset of at least `bytes` bytes.
  Returned<std::size_t> alloc(std::size_t bytes) { return detail::asked<std::size_t>(adead_allocator_alloc, get(), bytes); }

  /// Gives back the allocation at `offset`.
  Returned<void> free(std::size_t offset) { return detail::done(adead_allocator_free(get(), offset)); }

  /// Frees everything.
  Returned<void> reset() { return detail::done(adead_allocator_reset(get())); }

  /// The memory of the allocation at `offset`, until it is freed or the allocator reset or gone.
  Returned<Span<std::byte>> memory(std::size_t offset) {
    void *pointer = nullptr;
    std::size_t bytes = 0;
    adead_status status = adead_allocator_pointer(get(), offset, &pointer);
    if (!status) status = adead_allocator_size(get(), offset, &bytes);
    return detail::done(status, Span<std::byte>(static_cast<std::byte *>(pointer), bytes));
  }

  Returned<AllocatorStats> report() const { return detail::asked<AllocatorStats>(adead_allocator_report, get()); }

  adead_allocator *get() const noexcept { return handle_.get(); }
  explicit operator bool() const noexcept { return static_cast<bool>(handle_); }

 private:
  detail::Handle<adead_allocator, adead_allocator_destroy> handle_;
};

/// Scratch memory: an allocation advances a pointer, and everything is released together. One thread at a time.
class Arena {
 public:
  Arena() noexcept = default;
  explicit Arena(adead_arena *raw) noexcept : handle_(raw) {}

  /// `bytes` bytes, growing to `limit`; 0 is the core's default, and no limit.
  static Returned<Arena> create(std::size_t bytes = 0, std::size_t limit = 0) {
    return detail::asked<Arena>(adead_arena_create, bytes, limit);
  }

  /// Bytes on a multiple of `align`, until the arena is reset or gone.
  Returned<void *> alloc(std::size_t bytes, std::size_t align) {
    return detail::asked<void *>(adead_arena_alloc, get(), bytes, align);
  }

  /// Releases everything. The memory stays with the arena.
  Returned<void> reset() { return detail::done(adead_arena_reset(get())); }

  /// The bytes taken, padding included.
  Returned<std::size_t> used() const { return detail::asked<std::size_t>(adead_arena_used, get()); }

  /// The bytes that the arena has from the system.
  Returned<std::size_t> capacity() const { return detail::asked<std::size_t>(adead_arena_capacity, get()); }

  adead_arena *get() const noexcept { return handle_.get(); }
  explicit operator bool() const noexcept { return static_cast<bool>(handle_); }

 private:
  detail::Handle<adead_arena, adead_arena_destroy> handle_;
};

/// How the elements of a row-major matrix are arranged: `element` bytes each, 1, 2, 4 or 8. It never changes.
class Layout {
 public:
  Layout() noexcept = default;
  explicit Layout(adead_layout *raw) noexcept : handle_(raw) {}

  /// Tiles one after the other, each row-major within.
  static Returned<Layout> optimize_matrix(std::size_t element, std::size_t rows, std::size_t cols, std::size_t tile_size) {
    return detail::asked<Layout>(adead_layout_optimize_matrix, element, rows, cols, tile_size);
  }

  /// Rows that begin at multiples of `alignment` bytes.
  static Returned<Layout> align(std::size_t element, std::size_t rows, std::size_t cols, std::size_t alignment) {
    return detail::asked<Layout>(adead_layout_align, element, rows, cols, alignment);
  }

  /// Structures of `stride` fields become an array of each field.
  static Returned<Layout> coalesce(std::size_t element, std::size_t elements, std::size_t stride) {
    return detail::asked<Layout>(adead_layout_coalesce, element, elements, stride);
  }

  /// Morton (Z) order.
  static Returned<Layout> morton(std::size_t element, std::size_t rows, std::size_t cols) {
    return detail::asked<Layout>(adead_layout_morton, element, rows, cols);
  }

  /// Rows and columns as laid out, with the padding.
  Returned<std::array<std::size_t, 2>> dims() const {
    std::array<std::size_t, 2> out = {};
    adead_status status = adead_layout_dims(get(), &out[0], &out[1]);
    return detail::done(status, out);
  }

  /// Bytes of the plain matrix, and as laid out.
  Returned<std::array<std::size_t, 2>> bytes() const {
    std::array<std::size_t, 2> out = {};
    adead_status status = adead_layout_bytes(get(), &out[0], &out[1]);
    return detail::done(status, out);
  }

  /// A plain matrix, arranged. shape_mismatch if it has not as many bytes as bytes() says.
  template <class T>
  Returned<std::vector<T>> arrange(const std::vector<T> &plain) const {
    return apply(adead_layout_arrange, 1, plain);
  }

  /// The plain matrix of an arranged one.
  template <class T>
  Returned<std::vector<T>> restore(const std::vector<T> &arranged) const {
    return apply(adead_layout_restore, 0, arranged);
  }

  adead_layout *get() const noexcept { return handle_.get(); }
  explicit operator bool() const noexcept { return static_cast<bool>(handle_); }

 private:
  template <class F, class T>
  Returned<std::vector<T>> apply(F function, std::size_t which, const std::vector<T> &from) const {
    static_assert(std::is_trivially_copyable_v<T>, "a layout moves bytes");
    std::size_t bytes[2] = {};
    adead_status status = adead_layout_bytes(get(), &bytes[0], &bytes[1]);
    std::vector<T> to(bytes[which] / sizeof(T));
    if (!status) status = function(get(), from.data(), from.size() * sizeof(T), to.data(), to.size() * sizeof(T));
    return detail::done(status, std::move(to));
  }

  detail::Handle<adead_layout, adead_layout_destroy> handle_;
};

}  // namespace ADEAD_HPP_MODE
}  // namespace adead

#endif
