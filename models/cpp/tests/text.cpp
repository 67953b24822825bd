// TextGenerator on the small models of tests/text, with libadead_models alone.
#include <adead/text.hpp>

#include "check.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <thread>

using namespace adead;

namespace {

std::string file(const std::string &name) { return TEXT "/" + name; }

std::string contents(const std::string &name) {
  std::ifstream in(file(name), std::ios::binary);
  std::ostringstream all;
  all << in.rdbuf();
  CHECK(!all.str().empty());
  return all.str();
}

/// What every language must generate.
Generation expected() {
  Generation all;
  all.text = contents("answer.txt");
  std::istringstream tokens(contents("answer.tokens"));
  for (std::uint32_t token; tokens >> token;) all.tokens.push_back(token);
  CHECK(all.tokens.size() == 60);
  return all;
}

GenerateOptions warm() {
  GenerateOptions options;
  options.max_tokens = 60;
  options.ignore_end = true;
  options.temperature = 1.5f;
  options.top_k = 60;
  options.top_p = 0.98f;
  options.min_p = 0.001f;
  options.repeat_penalty = 1.1f;
  options.repeat_last = 16;
  options.seed = 42;
  return options;
}

TextGenerator open(const std::string &name, const TextOptions &options) { return OK(TextGenerator::open(file(name), options)); }

TextOptions cpu(std::size_t threads, std::size_t chunk = 512) {
  TextOptions options;
  options.device = "cpu";
  options.threads = threads;
  options.chunk = chunk;
  return options;
}

void generators(const TextGenerator &model) {
  CHECK(model && OK(model.context_length()) == 256 && OK(model.vocabulary()) == 281 && OK(model.width()) == 64);
  CHECK(OK(model.has_chat_template()) && OK(model.device()) == "cpu");
  FAILS(Io, io, "nowhere", TextGenerator::open(file("nowhere")));
  FAILS(InvalidArgument, invalid_argument, "make_tiny.py", TextGenerator::open(file("make_tiny.py")));
  TextOptions long_one = cpu(1);
  long_one.context_length = 300;
  FAILS(InvalidArgument, invalid_argument, "a context length of 300", TextGenerator::open(file("llama.gguf"), long_one));
  TextGenerator first = open("llama.gguf", cpu(1)), second = std::move(first);
  CHECK(!first && second);
  FAILS(InvalidArgument, invalid_argument, "generator is NULL", first.generate("a"));
  FAILS(InvalidArgument, invalid_argument, "generator is NULL", first.tokenize("a"));
}

void texts(const TextGenerator &model) {
  const Generation whole = expected();
  for (const TextOptions &options : {cpu(1), cpu(3, 7), cpu(2, 1)}) {
    const Generation found = OK(open("llama.gguf", options).generate("the ferry", warm()));
    CHECK(found.text == whole.text && found.tokens == whole.tokens);
    CHECK(found.finish == Finish::max_tokens && found.prompt_tokens == OK(model.tokenize("the ferry")).size());
  }
  // In pieces, of a stream and for a function, which may end the text.
  std::string pieces;
  TextStream stream = OK(model.stream("the ferry", warm()));
  CHECK(OK(stream.generation()).finish == Finish::none);
  for (;;) {
    std::optional<std::string> piece = OK(stream.next());
    if (!piece) break;
    CHECK(!piece->empty());
    pieces += *piece;
    CHECK(OK(stream.generation()).text == pieces);
  }
  CHECK(pieces == whole.text && OK(stream.generation()).tokens == whole.tokens && !OK(stream.next()));
  pieces.clear();
  CHECK(OK(model.generate("the ferry", warm(), [&](std::string_view piece) { return pieces += piece, true; })).text == pieces);
  CHECK(pieces == whole.text);
  const Generation cut = OK(model.generate("the ferry", warm(), [](std::string_view) { return false; }));
  CHECK(cut.finish == Finish::none && !cut.text.empty() && whole.text.rfind(cut.text, 0) == 0);
  // A stream outlives its generator, and may end before its text does.
  TextStream left = OK(open("llama.gguf", cpu(1)).stream("the ferry", warm()));
  CHECK(OK(left.next()));

  // Three bytes that are characters.
  const auto is_ascii = [](char c) { return static_cast<unsigned char>(c) < 128; };
  std::size_t at = 12;
  while (!std::all_of(whole.text.begin() + std::ptrdiff_t(at), whole.text.begin() + std::ptrdiff_t(at + 3), is_ascii)) at++;
  GenerateOptions ending = warm();
  ending.stop = {"no such text", whole.text.substr(at, 3)};
  const Generation stopped = OK(model.generate("the ferry", ending));
  CHECK(stopped.finish == Finish::stop && stopped.text == whole.text.substr(0, whole.text.find(ending.stop[1])));
  GenerateOptions json = warm();
  json.json_schema = R"({"const": {"a": [1, null]}})";
  const Generation only = OK(model.generate("the ferry", json));
  CHECK(only.finish == Finish::end && only.text == R"({"a": [1, null]})");
  GenerateOptions none;
  none.max_tokens = 0;
  CHECK(OK(model.generate("the ferry", none)).tokens.empty());
  FAILS(InvalidArgument, invalid_argument, "the prompt has no tokens", model.generate(""));
  FAILS(InvalidArgument, invalid_argument, "prompt is NULL", model.generate(nullptr));
  none.temperature = -1.f;
  FAILS(InvalidArgument, invalid_argument, "temperature is -1", model.stream("a", none));
#ifndef ADEAD_NO_EXCEPTIONS
  try {
    model.generate("the ferry", warm(), [](std::string_view) -> bool { throw 7; });
    CHECK(false);
  } catch (int thrown) {
    CHECK(thrown == 7);
  }
#endif
}

void chats(const TextGenerator &model) {
  const std::vector<Message> messages{{"system", "be brief"}, {"user", "the ferry came in"}};
  const std::string prompt =
      "<|im_start|>system\nbe brief<|im_end|>\n<|im_start|>user\nthe ferry came in<|im_end|>\n<|im_start|>assistant\n";
  const Generation found = OK(model.chat(messages, warm()));
  CHECK(found.tokens == OK(model.generate(prompt, warm())).tokens);
  TextStream stream = OK(model.chat_stream(messages, warm()));
  std::string text;
  while (std::optional<std::string> piece = OK(stream.next())) text += *piece;
  CHECK(text == found.text);
  TextGenerator other = open("qwen3.gguf", cpu(1));
  FAILS(Unsupported, unsupported, "no chat template", other.chat(messages));
}

void batches(const TextGenerator &model) {
  const std::vector<std::string> prompts{"the ferry", "came in", "a rather longer prompt than the others"};
  GenerateOptions options = warm();
  const std::vector<Generation> together = OK(model.generate_batch(prompts, options));
  CHECK(together.size() == prompts.size() && together[0].text == expected().text);
  for (std::size_t i = 0; i < prompts.size(); i++) {
    options.sequence = i;
    const Generation alone = OK(model.generate(prompts[i], options));
    CHECK(together[i].text == alone.text && together[i].tokens == alone.tokens && together[i].finish == alone.finish);
    CHECK(together[i].prompt_tokens == alone.prompt_tokens);
  }
  CHECK(OK(model.generate_batch({})).empty());
  FAILS(InvalidArgument, invalid_argument, "no tokens", model.generate_batch({"a", ""}));
}

void scores(const TextGenerator &model) {
  const std::string ferry = "the ferry came in";
  const std::vector<std::uint32_t> tokens = OK(model.tokenize(ferry));
  CHECK(OK(model.detokenize(tokens)) == ferry && OK(model.detokenize({})).empty() && OK(model.tokenize("")).empty());
  const std::vector<float> logprobs = OK(model.logprobs(tokens));
  CHECK(logprobs.size() == tokens.size() - 1);
  double sum = 0;
  for (float one : logprobs) sum += double(one);
  const double perplexity = std::exp(-sum / double(logprobs.size()));
  CHECK(std::abs(OK(model.perplexity(ferry)) - perplexity) < 1e-9 * perplexity);
  const std::vector<float> embedding = OK(model.embed(ferry));
  CHECK(embedding.size() == 64 && embedding != std::vector<float>(64));
  FAILS(InvalidArgument, invalid_argument, "needs at least 2", model.perplexity(""));
  FAILS(InvalidArgument, invalid_argument, "token 999", model.logprobs({1, 999}));
}

void progress() {
  std::vector<std::size_t> seen;
  TextOptions options = cpu(1, 10);
  options.progress = [&](std::size_t computed, std::size_t all) {
    CHECK(all == 30);
    seen.push_back(computed);
  };
  GenerateOptions one;
  one.max_tokens = 1;
  CHECK(OK(open("llama.gguf", options).generate(std::string(30, 'x'), one)).tokens.size() == 1);
  CHECK((seen == std::vector<std::size_t>{10, 20, 30}));
#ifndef ADEAD_NO_EXCEPTIONS
  bool throws = true;
  options.progress = [&](std::size_t, std::size_t) {
    if (throws) throw 7;
  };
  TextGenerator model = open("llama.gguf", options);
  const auto caught = [&](auto work) {
    try {
      work();
    } catch (int thrown) {
      return thrown == 7;
    }
    return false;
  };
  CHECK(caught([&] { model.generate(std::string(30, 'x'), one); }));
  throws = false;
  CHECK(model.generate("x", one).tokens.size() == 1);
#endif
}

void threads(const TextGenerator &model) {
  const std::string whole = expected().text;
  std::vector<std::thread> all;
  for (int i = 0; i < 4; i++) {
    all.emplace_back([&] { CHECK(OK(model.generate("the ferry", warm())).text == whole); });
  }
  for (std::thread &one : all) one.join();
}

}  // namespace

int main() {
  const TextGenerator model = open("llama.gguf", cpu(2));
  generators(model);
  texts(model);
  chats(model);
  batches(model);
  scores(model);
  progress();
  threads(model);
  std::puts("text: every language has this answer");
  return 0;
}
