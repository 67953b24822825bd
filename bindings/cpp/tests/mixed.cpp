// Parts of one program that were compiled in every mode of the headers: what has the same name in them must not be mixed up.
#include <cstddef>
#include <initializer_list>

std::size_t part_17(const char *device);
std::size_t part_20(const char *device);
std::size_t part_17_result(const char *device);
std::size_t part_20_result(const char *device);

int main() {
  for (auto part : {part_17, part_20, part_17_result, part_20_result}) {
    if (part("cpu") != 32) return 1;
  }
}
