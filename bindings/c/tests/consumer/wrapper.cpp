#include <adead.hpp>

int main() {
  adead::Context ctx("cpu");
  adead::Tensor x = ctx.tensor({2, 2}, {-1.f, 0.f, 2.f, 3.f});
  adead::Tensor y = ctx.matmul(x, x, {{}, {}, {}, {}, adead::Activation::relu});
  return y.to_vector<float>() == std::vector<float>{1, 0, 4, 9} ? 0 : 1;
}
