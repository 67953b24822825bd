#include <adead.hpp>
#include <iostream>

int main() {
  adead::Context ctx;
  adead::Tensor x = ctx.tensor({{1.f, 2.f, 3.f}, {4.f, 5.f, 6.f}});
  adead::Tensor w = ctx.tensor({{0.5f, -1.f}, {0.25f, 2.f}, {-0.5f, 1.5f}});
  adead::Tensor y = (x.matmul(w) + ctx.tensor({0.1f, -0.1f})).softmax();
  for (float value : y.data<float>()) std::cout << value << '\n';
}
