// A part of a program, compiled in one of the headers' modes: mixed.cpp calls it as PART.
#include "check.hpp"

std::size_t PART(const char *device);
std::size_t PART(const char *device) {
  adead::Context ctx = OK(adead::Context::open(device));
  adead::Tensor x = OK(ctx.tensor({2, 3}, {1.f, 2.f, 3.f, 4.f, 5.f, 6.f}));
  FAILS(ShapeMismatch, shape_mismatch, "[2, 3]", x + OK(ctx.zeros(adead::DType::f32, {4})));
  std::size_t sum = 0;
  // A shape lives as long as its tensor.
  adead::Tensor turned = OK(ctx.transpose(x));
  for (std::size_t dim : OK(turned.shape())) sum = 10 * sum + dim;
  return sum;
}
