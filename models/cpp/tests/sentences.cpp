// SentenceEncoder on the small model of tests/sentences, with libadead_models alone.
#include <adead/models.hpp>

#include "check.hpp"

extern "C" {
#include "sha256.h"
}

#include <fstream>
#include <thread>

using namespace adead;

namespace {

const std::string model = SENTENCES "/tiny";

std::vector<std::string> lines(const std::string &name) {
  std::ifstream file(SENTENCES "/" + name, std::ios::binary);
  std::vector<std::string> all;
  for (std::string line; std::getline(file, line);) all.push_back(line);
  CHECK(!all.empty());
  return all;
}

SentenceEncoder open(std::size_t threads) { return OK(SentenceEncoder::open(model, "cpu", {{}, threads})); }

/// Sentences of a vector again and again, so many.
struct Source {
  const std::vector<std::string> &all;
  std::uint64_t most, given = 0;
  std::optional<std::string_view> operator()() {
    if (given == most) return std::nullopt;
    return all[given++ % all.size()];
  }
};

void encoders(const SentenceEncoder &encoder) {
  CHECK(encoder && OK(encoder.width()) == 32 && OK(encoder.max_tokens()) == 24 && OK(encoder.device()) == "cpu");
  FAILS(Io, io, "nowhere", SentenceEncoder::open(SENTENCES "/nowhere", "cpu"));
  FAILS(InvalidArgument, invalid_argument, "folder is NULL", SentenceEncoder::open(nullptr, "cpu"));
  FAILS(InvalidArgument, invalid_argument, "mmx", SentenceEncoder::open(model, "cpu", {"mmx", {}}));
  SentenceEncoder first = open(1), second = std::move(first);
  CHECK(!first && second);
  FAILS(InvalidArgument, invalid_argument, "encoder is NULL", first.width());
  FAILS(InvalidArgument, invalid_argument, "encoder is NULL", first.encode({"a"}));
  FAILS(InvalidArgument, invalid_argument, "encoder is NULL", first.batch_embed(Source{lines("tiny.txt"), 1}, [](auto &&...) {}));
  first = std::move(second);
  CHECK(OK(first.encode({"a"})).rows() == 1);
}

void embeddings(const SentenceEncoder &encoder, const std::vector<std::string> &sentences, const Embeddings &expected) {
  char hex[65];
  sha256_hex(expected.values().data(), expected.values().size() * sizeof(float), hex);
  CHECK(lines("tiny.sha256")[0] == hex);
  CHECK(expected.rows() == sentences.size() && expected.width() == 32 && expected.truncated().size() == 3);
  std::vector<std::string_view> views(sentences.begin(), sentences.end());
  for (std::size_t batch : {1u, 3u, 100u}) {
    for (bool padded : {false, true}) {
      CHECK(OK(encoder.encode(views, {batch, padded})).values() == expected.values());
    }
  }
  Span<const std::string_view> some(views.data() + 3, 2);
  Embeddings two = OK(encoder.encode(some));
  CHECK(two.rows() == 2 && two.truncated().empty());
  CHECK(!std::memcmp(two.row(1).data(), expected.row(4).data(), two.row(1).size() * sizeof(float)));
  CHECK(OK(encoder.encode({sentences[3], sentences[4]})).values() == two.values());
  CHECK(OK(encoder.encode(std::vector<std::string>())).rows() == 0 && Embeddings().rows() == 0);
  FAILS(InvalidArgument, invalid_argument, "at least 1 sentence, not 0", encoder.encode({"a"}, {0, {}}));
  FAILS(InvalidArgument, invalid_argument, "sentence 1 is not UTF-8", encoder.encode({"a", "\xff"}));
  std::vector<float> taken = std::move(two).values();
  CHECK(taken.size() == 64);
}

void streams(const SentenceEncoder &encoder, const std::vector<std::string> &sentences, const Embeddings &expected) {
  for (std::uint64_t count : {0u, 1u, 500u}) {
    std::vector<float> values;
    std::uint64_t computed = 0;
    std::size_t cut = 0;
    auto take = [&](std::uint64_t first, const Embeddings &rows) {
      CHECK(first * 32 == values.size() && rows.width() == 32);
      values.insert(values.end(), rows.values().begin(), rows.values().end());
      for (std::size_t row : rows.truncated()) CHECK(row < rows.rows());
      cut += rows.truncated().size();
    };
    auto progress = [&](std::uint64_t so_many) { computed = so_many; };
    CHECK(OK(encoder.batch_embed(Source{sentences, count}, take, {7, {}}, progress)) == count);
    CHECK(values.size() == count * 32 && computed == count && (cut > 0) == (count == 500));
    for (std::size_t i = 0; i < count; i++) {
      CHECK(!std::memcmp(&values[i * 32], expected.row(i % expected.rows()).data(), 32 * sizeof(float)));
    }
  }
  // Who takes rows ends it; sentences may be strings of one's own.
  std::uint64_t n = 0;
  auto endless = [&] { return std::optional<std::string>("ferry " + std::to_string(n++)); };
  CHECK(OK(encoder.batch_embed(endless, [](std::uint64_t first, const Embeddings &) { return first < 300; })) >= 300);
  FAILS(InvalidArgument, invalid_argument, "sentence 0 is not UTF-8",
        encoder.batch_embed([] { return std::optional<std::string>("\xff"); }, [](auto &&...) {}));
}

#ifdef ADEAD_NO_EXCEPTIONS

void stream_errors(const SentenceEncoder &encoder, const std::vector<std::string> &sentences) {
  using Next = Result<std::optional<std::string>>;
  int n = 0;
  auto failing = [&] { return n++ < 100 ? Next(std::optional<std::string>("a")) : Next(Io("the disk is gone")); };
  FAILS(Io, io, "the disk is gone", encoder.batch_embed(failing, [](auto &&...) {}));
  auto full = [](std::uint64_t first, const Embeddings &) { return first ? Result<void>(OutOfMemory("full")) : Result<void>(); };
  FAILS(OutOfMemory, out_of_memory, "full", encoder.batch_embed(Source{sentences, 1000}, full));
}

#else

void stream_errors(const SentenceEncoder &encoder, const std::vector<std::string> &sentences) {
  struct Own {
    int number;
  };
  auto caught = [&](auto next, auto take, const std::function<void(std::uint64_t)> &progress = {}) {
    try {
      encoder.batch_embed(next, take, {}, progress);
    } catch (const Own &own) {
      return own.number;
    }
    return 0;
  };
  int n = 0;
  auto failing = [&]() -> std::optional<std::string> { return n++ < 100 ? "a" : throw Own{1}; };
  CHECK(caught(failing, [](auto &&...) {}) == 1);
  CHECK(caught(Source{sentences, 1000}, [](std::uint64_t, const Embeddings &) { throw Own{2}; }) == 2);
  CHECK(caught(Source{sentences, 1000}, [](auto &&...) {}, [](std::uint64_t) { throw Own{3}; }) == 3);
}

#endif

}  // namespace

int main() {
  SentenceEncoder encoder = open(2);
  const std::vector<std::string> sentences = lines("tiny.txt");
  const Embeddings expected = OK(encoder.encode(sentences));
  encoders(encoder);
  embeddings(encoder, sentences, expected);
  streams(encoder, sentences, expected);
  stream_errors(encoder, sentences);
  std::vector<std::thread> threads;
  for (std::size_t batch = 1; batch <= 4; batch++) {
    threads.emplace_back([&, batch] { CHECK(OK(encoder.encode(sentences, {batch, {}})).values() == expected.values()); });
  }
  for (std::thread &thread : threads) thread.join();
}
