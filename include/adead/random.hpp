// Random tensors: the same numbers in every language and on every device.
#ifndef ADEAD_RANDOM_HPP
#define ADEAD_RANDOM_HPP

#include <adead/tensor.hpp>

namespace adead {
inline namespace ADEAD_HPP_MODE {

/// Draws random tensors. Draws are numbered from 0. Each element depends only on the seed, the number of its draw and its position
/// (docs/contract.md, "Random tensors"). A generator with the same seed and number of draws therefore continues with the same
/// numbers. A draw that fails doesn't count.
class Random {
 public:
  /// Makes a generator that has drawn `draws` times.
  explicit Random(std::uint64_t seed, std::uint64_t draws = 0) noexcept : raw_{seed, draws} {}

  std::uint64_t seed() const noexcept { return raw_.seed; }
  /// Returns the number of draws so far.
  std::uint64_t draws() const noexcept { return raw_.draws; }

  /// Draws uniform numbers from `low` to below `high`, f32.
  template <class C>
  Returned<Tensor> uniform(const C &context, Array<std::size_t> dims, double low = 0, double high = 1) {
    return detail::made<Tensor>(context.shared(), adead_random_uniform, &raw_, context.get(), low, high, dims.data(), dims.size());
  }
  /// Draws normal numbers with mean 0 and deviation 1, f32.
  template <class C>
  Returned<Tensor> standard_normal(const C &context, Array<std::size_t> dims) {
    return detail::made<Tensor>(context.shared(), adead_random_standard_normal, &raw_, context.get(), dims.data(), dims.size());
  }
  /// Draws normal numbers, f32.
  template <class C>
  Returned<Tensor> normal(const C &context, Array<std::size_t> dims, float mean, float deviation) {
    return detail::made<Tensor>(context.shared(), adead_random_normal, &raw_, context.get(), mean, deviation, dims.data(), dims.size());
  }
  /// Draws integers from `low` to below `high`, at most 2^32 different ones, i64.
  template <class C>
  Returned<Tensor> integers(const C &context, Array<std::size_t> dims, std::int64_t low, std::int64_t high) {
    return detail::made<Tensor>(context.shared(), adead_random_integers, &raw_, low, high, dims.data(), dims.size());
  }
  /// Draws an order of the numbers below `count`, i64.
  template <class C>
  Returned<Tensor> permutation(const C &context, std::size_t count) {
    return detail::made<Tensor>(context.shared(), adead_random_permutation, &raw_, count);
  }

 private:
  adead_random raw_;
};

}  // namespace ADEAD_HPP_MODE
}  // namespace adead

#endif
