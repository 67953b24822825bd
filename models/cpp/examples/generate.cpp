// generate MODEL PROMPT: prints the text piece by piece, and why it ended.
#include <adead/text.hpp>
#include <iostream>

int main(int argc, char **argv) {
  if (argc < 3) return 1;
  adead::TextGenerator model(argv[1]);
  adead::GenerateOptions options;
  options.max_tokens = 20;
  options.temperature = 0.8f;  // Sampled. A seed gives the same text on every device.
  options.seed = 7;
  adead::Generation answer = model.generate(argv[2], options, [](std::string_view piece) {
    std::cout << piece << std::flush;
    return true;  // false ends the text
  });
  std::cout << '\n' << answer.tokens.size() << " tokens, finish " << static_cast<int>(answer.finish) << '\n';
}
