// embed MODEL: prints the cosine of two sentences, then embeds the lines of stdin.
#include <adead/models.hpp>
#include <iostream>

int main(int argc, char **argv) {
  if (argc < 2) return 1;
  adead::SentenceEncoder encoder(argv[1]);
  adead::Embeddings rows = encoder.encode({"The ferry came in.", "A boat arrived."});
  float cosine = 0;
  for (std::size_t i = 0; i < rows.width(); i++) cosine += rows.row(0)[i] * rows.row(1)[i];
  std::cout << rows.width() << " values, cosine " << cosine << '\n';

  auto next = []() -> std::optional<std::string> {
    std::string line;
    if (!std::getline(std::cin, line)) return std::nullopt;
    return line;
  };
  encoder.batch_embed(next, [](std::uint64_t first, const adead::Embeddings &some) {
    std::cout << "rows " << first << " to " << first + some.rows() << '\n';
  });
}
