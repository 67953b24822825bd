#include <adead.h>

#include <vector>

int main() {
  std::vector<float> x{-1, 0, 2, 3}, y(4);
  adead_matmul_options options = ADEAD_MATMUL_OPTIONS_INIT;
  options.activation = ADEAD_ACTIVATION_RELU;
  adead_context *context = nullptr;
  adead_tensor *a = nullptr, *b = nullptr;
  const size_t dims[] = {2, 2};
  bool good = !adead_context_open("cpu", nullptr, &context) &&
              !adead_tensor_create(ADEAD_DTYPE_F32, dims, 2, x.data(), 16, &a) &&
              !adead_tensor_matmul(context, a, a, &options, &b) && !adead_tensor_read(b, y.data(), 16) && y[0] == 1 &&
              y[1] == 0 && y[2] == 4 && y[3] == 9;
  adead_tensor_destroy(a);
  adead_tensor_destroy(b);
  adead_context_destroy(context);
  return good ? 0 : 1;
}
