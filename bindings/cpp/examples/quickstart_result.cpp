#define ADEAD_NO_EXCEPTIONS
#include <adead.hpp>
#include <iostream>

int main() {
  adead::Result<adead::Context> ctx = adead::Context::open();
  if (!ctx) return std::cerr << ctx.message() << '\n', 1;
  adead::Result<adead::Tensor> y =
      ctx->tensor({2, 2}, {1.f, 2.f, 3.f, 4.f}).and_then([&](adead::Tensor x) { return ctx->softmax(x); });
  if (!y) return std::cerr << y.message() << '\n', 1;
  for (float value : *y->data<float>()) std::cout << value << '\n';
}
