// Multiplies a matrix with itself on the CPU.
#include <adead.hpp>
#include <iostream>
#include <vector>

int main() {
  adead::Context ctx("cpu");
  adead::Tensor x = ctx.tensor({{-1.f, 0.f}, {2.f, 3.f}});
  std::vector<float> values = x.matmul(x).relu().to_vector<float>();
  std::cout << "adead in C++:";
  for (float value : values) std::cout << ' ' << value;
  std::cout << '\n';
  return values == std::vector<float>{1, 0, 4, 9} ? 0 : 1;
}
