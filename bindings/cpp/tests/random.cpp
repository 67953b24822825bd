// Random tensors: the draws of every language, and the errors.
#include "check.hpp"

#include <fstream>
#include <string>

using namespace adead;

namespace {

/// Returns a tensor's elements as the file has them.
std::string hex(const Tensor &tensor) {
  std::string text;
  char part[24];
  if (OK(tensor.dtype()) == DType::i64) {
    for (std::int64_t number : OK(tensor.to_vector<std::int64_t>())) {
      std::snprintf(part, sizeof part, "%016llx ", static_cast<unsigned long long>(number));
      text += part;
    }
  } else {
    for (float number : OK(tensor.to_vector<float>())) {
      std::uint32_t bits;
      std::memcpy(&bits, &number, sizeof bits);
      std::snprintf(part, sizeof part, "%08x ", static_cast<unsigned>(bits));
      text += part;
    }
  }
  if (!text.empty()) text.pop_back();
  return text;
}

}  // namespace

int main(int argc, char **argv) {
  CHECK(argc == 2);
  auto context = OK(Context::open("cpu"));
  Random random(7);
  std::ifstream file(argv[1]);
  std::string line;
  int lines = 0;
  while (std::getline(file, line)) {
    if (line[0] == '#') continue;
    Tensor drawn;
    switch (lines++) {
      case 0: drawn = OK(random.uniform(context, {2, 3})); break;
      case 1: drawn = OK(random.uniform(context, {5}, -2.5, 4)); break;
      case 2: drawn = OK(random.standard_normal(context, {2, 2})); break;
      case 3: drawn = OK(random.normal(context, {4}, 3, 0.5f)); break;
      case 4: drawn = OK(random.integers(context, {6}, -10, 90)); break;
      default: drawn = OK(random.permutation(context, 8)); break;
    }
    std::string expected = line.substr(line.find(": ") + 2);
    if (hex(drawn) != expected) stop(__FILE__, __LINE__, line.c_str(), hex(drawn).c_str());
  }
  CHECK(lines == 6 && random.draws() == 6 && random.seed() == 7);

  FAILS(InvalidArgument, invalid_argument, "at least 0, not -1", random.normal(context, {1}, 0, -1));
  FAILS(InvalidArgument, invalid_argument, "above low, 5", random.integers(context, {1}, 5, 5));
  CHECK(random.draws() == 6);
  return 0;
}
