// Allocators that give the same offsets on every machine, and layouts of matrices.
#ifndef ADEAD_MEMORY_HPP
#define ADEAD_MEMORY_HPP

#include <adead/result.hpp>

namespace adead {
inline namespace ADEAD_HPP_MODE {

/// The state of an allocator: block_size, capacity, used, available, largest_free, high_water, live.
using AllocatorStats = adead_allocator_stats;

/// An allocator of blocks in one region of host memory. The same calls give the same offsets on every machine. One
/// thread at a time may use it.
class Allocator {
 public:
  Allocator() noexcept = default;
  explicit Allocator(adead_allocator *raw) noexcept : handle_(raw) {}

  /// Makes an allocator of `blocks` blocks of `block_size` bytes, a power of two. 0 is the core's default.
  static Returned<Allocator> create(std::size_t block_size = 0, std::size_t blocks = 0) {
    return detail::asked<Allocator>(adead_allocator_create, block_size, blocks);
  }

  /// Allocates at least `bytes` bytes and returns their offset.
  Returned<std::size_t> alloc(std::size_t bytes) { return detail::asked<std::size_t>(adead_allocator_alloc, get(), bytes); }

  /// Frees the allocation at `offset`.
  Returned<void> free(std::size_t offset) { return detail::done(adead_allocator_free(get(), offset)); }

  /// Frees everything.
  Returned<void> reset() { return detail::done(adead_allocator_reset(get())); }

  /// Returns the memory of the allocation at `offset`. It is valid until the allocation is freed or the allocator is
  /// reset or destroyed.
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

/// An arena of scratch memory: an allocation advances a pointer, and a reset releases everything together. One thread
/// at a time may use it.
class Arena {
 public:
  Arena() noexcept = default;
  explicit Arena(adead_arena *raw) noexcept : handle_(raw) {}

  /// Makes an arena of `bytes` bytes that grows to `limit`. 0 is the core's default, and no limit.
  static Returned<Arena> create(std::size_t bytes = 0, std::size_t limit = 0) {
    return detail::asked<Arena>(adead_arena_create, bytes, limit);
  }

  /// Allocates bytes at a multiple of `align`. They are valid until the arena is reset or destroyed.
  Returned<void *> alloc(std::size_t bytes, std::size_t align) {
    return detail::asked<void *>(adead_arena_alloc, get(), bytes, align);
  }

  /// Releases all allocations. The arena keeps the memory.
  Returned<void> reset() { return detail::done(adead_arena_reset(get())); }

  /// Returns the bytes in use, including padding.
  Returned<std::size_t> used() const { return detail::asked<std::size_t>(adead_arena_used, get()); }

  /// Returns the bytes that the arena has taken from the system.
  Returned<std::size_t> capacity() const { return detail::asked<std::size_t>(adead_arena_capacity, get()); }

  adead_arena *get() const noexcept { return handle_.get(); }
  explicit operator bool() const noexcept { return static_cast<bool>(handle_); }

 private:
  detail::Handle<adead_arena, adead_arena_destroy> handle_;
};

/// How the elements of a row-major matrix are arranged. An element has `element` bytes: 1, 2, 4 or 8. A layout never
/// changes.
class Layout {
 public:
  Layout() noexcept = default;
  explicit Layout(adead_layout *raw) noexcept : handle_(raw) {}

  /// Makes a layout of tiles that follow each other, each row-major inside.
  static Returned<Layout> optimize_matrix(std::size_t element, std::size_t rows, std::size_t cols, std::size_t tile_size) {
    return detail::asked<Layout>(adead_layout_optimize_matrix, element, rows, cols, tile_size);
  }

  /// Makes a layout whose rows begin at multiples of `alignment` bytes.
  static Returned<Layout> align(std::size_t element, std::size_t rows, std::size_t cols, std::size_t alignment) {
    return detail::asked<Layout>(adead_layout_align, element, rows, cols, alignment);
  }

  /// Makes a layout in which structures of `stride` fields become an array of each field.
  static Returned<Layout> coalesce(std::size_t element, std::size_t elements, std::size_t stride) {
    return detail::asked<Layout>(adead_layout_coalesce, element, elements, stride);
  }

  /// Makes a layout in Morton (Z) order.
  static Returned<Layout> morton(std::size_t element, std::size_t rows, std::size_t cols) {
    return detail::asked<Layout>(adead_layout_morton, element, rows, cols);
  }

  /// Returns the rows and columns of the arranged matrix, with padding.
  Returned<std::array<std::size_t, 2>> dims() const {
    std::array<std::size_t, 2> out = {};
    adead_status status = adead_layout_dims(get(), &out[0], &out[1]);
    return detail::done(status, out);
  }

  /// Returns the bytes of the plain matrix, and of the arranged one.
  Returned<std::array<std::size_t, 2>> bytes() const {
    std::array<std::size_t, 2> out = {};
    adead_status status = adead_layout_bytes(get(), &out[0], &out[1]);
    return detail::done(status, out);
  }

  /// Arranges a plain matrix. shape_mismatch unless it has as many bytes as bytes() says.
  template <class T>
  Returned<std::vector<T>> arrange(const std::vector<T> &plain) const {
    return apply(adead_layout_arrange, 1, plain);
  }

  /// Makes the plain matrix from an arranged one.
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
