// quantize and convert, with libadead_models alone.
#include <adead/gguf.hpp>
#include <adead/text.hpp>

#include "check.hpp"

#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>

#include <unistd.h>

using namespace adead;

namespace {

std::vector<std::uint8_t> bytes(const std::string &hex) {
  std::vector<std::uint8_t> found;
  for (std::size_t i = 0; i < hex.size(); i += 2) found.push_back(static_cast<std::uint8_t>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return found;
}

BlockFormat format(const std::string &wanted) {
  for (int number = 0; number < 8; number++) {
    if (name(static_cast<BlockFormat>(number)) == wanted) return static_cast<BlockFormat>(number);
  }
  CHECK(false);
  return BlockFormat::q8_0;
}

/// The bytes are those of the oracle of tests/text.
void blocks() {
  std::ifstream lines(TEXT "/blocks.txt");
  std::string word, values, expected;
  std::size_t count = 0;
  for (; lines >> word >> values >> expected; count++) {
    const std::vector<std::uint8_t> raw = bytes(values);
    std::vector<float> floats(raw.size() / sizeof(float));
    std::memcpy(floats.data(), raw.data(), raw.size());
    CHECK(OK(quantize(floats, format(word))) == bytes(expected));
  }
  CHECK(count > 100);
  CHECK(OK(quantize({}, BlockFormat::q4_0)).empty());
  FAILS(ShapeMismatch, shape_mismatch, "33 values; q8_0 takes a multiple of 32", quantize(std::vector<float>(33), BlockFormat::q8_0));
  FAILS(InvalidArgument, invalid_argument, "format is 8", quantize(std::vector<float>(32), static_cast<BlockFormat>(8)));
  std::vector<float> one(64);
  one[40] = std::numeric_limits<float>::infinity();
  FAILS(InvalidArgument, invalid_argument, "value 40 is inf", quantize(one, BlockFormat::q8_0));
}

std::string contents(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream all;
  all << in.rdbuf();
  return all.str();
}

void files() {
  const std::string first = "cpp-" + std::to_string(getpid()) + ".gguf", second = "cpp-again-" + first;
  CHECK(OK(convert(TEXT "/llama-hf", first)).empty());
  CHECK(OK(OK(TextGenerator::open(first)).context_length()) == 256);
  ConvertOptions options;
  options.kind = "q4_k";
  std::uint64_t last = 0, of = 0;
  options.progress = [&](std::uint64_t written, std::uint64_t all) {
    CHECK(written > last && written <= all);
    last = written;
    of = all;
    return true;
  };
  // Rows of 64 values are no whole blocks.
  CHECK(!OK(convert(TEXT "/llama-hf", second, options)).empty() && last == of && last > 0);
  const std::string before = contents(second);
  options.progress = [](std::uint64_t, std::uint64_t) { return false; };
  FAILS(NotReady, not_ready, "progress ended the conversion", convert(first, second, options));
#ifndef ADEAD_NO_EXCEPTIONS
  options.progress = [](std::uint64_t, std::uint64_t) -> bool { throw 7; };
  try {
    convert(first, second, options);
    CHECK(false);
  } catch (int thrown) {
    CHECK(thrown == 7);
  }
#endif
  CHECK(contents(second) == before);
  FAILS(InvalidArgument, invalid_argument, "name one, such as q8_0", convert(first, second));
  options.kind = "q3_k";
  FAILS(InvalidArgument, invalid_argument, "no kind of values 'q3_k'", convert(first, second, options));
  FAILS(Io, io, "nowhere: no such file or folder", convert(TEXT "/nowhere", second));
  CHECK(!std::remove(first.c_str()) && !std::remove(second.c_str()));
}

}  // namespace

int main() {
  blocks();
  files();
  std::puts("gguf: the oracle's blocks");
  return 0;
}
