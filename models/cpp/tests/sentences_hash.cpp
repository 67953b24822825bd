// The SHA-256 of the embeddings of a file's lines: sentences_hash MODEL FILE DEVICE.
#include <adead/models.hpp>

extern "C" {
#include "sha256.h"
}

#include <fstream>
#include <iostream>

int main(int count, char **arguments) {
  if (count != 4) return 1;
  std::ifstream file(arguments[2], std::ios::binary);
  std::vector<float> values;
  auto next = [&]() -> std::optional<std::string> {
    std::string line;
    if (!std::getline(file, line)) return std::nullopt;
    return line;
  };
  auto take = [&](std::uint64_t, const adead::Embeddings &rows) {
    values.insert(values.end(), rows.values().begin(), rows.values().end());
  };
  adead::SentenceEncoder(arguments[1], arguments[3]).batch_embed(next, take);
  char hex[65];
  sha256_hex(values.data(), values.size() * sizeof(float), hex);
  std::cout << hex << '\n';
}
