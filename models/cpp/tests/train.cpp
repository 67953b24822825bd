// Trainer and train(), with libadead_models alone: the hash that every language has, files, ranks, errors.
#include <adead/train.hpp>

#include "check.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <condition_variable>
#include <fstream>
#include <mutex>
#include <sstream>
#include <thread>
#include <unistd.h>

using namespace adead;

namespace {

/// tests/train/trainer.json: the description, and the hash after 20 epochs of 240 samples.
struct Shared {
  std::string description, sha256;

  Shared() {
    std::ifstream in(TRAINING);
    std::ostringstream all;
    all << in.rdbuf();
    const std::string text = all.str(), before = "\"description\": ", behind = "\"sha256\": \"";
    auto from = text.find(before) + before.size();
    description = text.substr(from, text.find("\"samples\"") - from);
    description = description.substr(0, description.rfind('}') + 1);
    sha256 = text.substr(text.find(behind) + behind.size(), 64);
    CHECK(text.find("\"samples\": 240,\n  \"epochs\": 20,") != text.npos && sha256.find('"') == sha256.npos);
  }
};

struct Data {
  std::vector<float> x;
  std::vector<std::int64_t> classes;

  explicit Data(std::size_t count) {
    for (std::size_t k = 0; k < count * 6; k++) x.push_back(static_cast<float>(static_cast<double>(k * 7919 % 1009) / 504.5 - 1));
    for (std::size_t i = 0; i < count; i++) classes.push_back((x[6 * i] > 0) + (x[6 * i + 1] > 0.3f));
  }
};

Trainer create(const Shared &shared, std::size_t threads = 2) {
  ContextOptions options;
  options.threads = threads;
  return OK(Trainer::create(shared.description, "cpu", options));
}

void one_hash(const Shared &shared) {
  const Data data(240);
  Trainer trainer = create(shared);
  CHECK(trainer.batch() == 24 && trainer.output_size() == 3 && trainer.device() == "cpu");
  const Measured before = OK(trainer.evaluate(data.x, data.classes));
  std::uint64_t last = 0;
  const double loss = OK(trainer.fit(data.x, data.classes, 20, [&](std::uint32_t epoch, std::uint64_t step, float of_step) {
    CHECK(step == last + 1 && epoch == last / 10 + 1 && std::isfinite(of_step));
    last = step;
    return true;
  }));
  const Measured after = OK(trainer.evaluate(data.x, data.classes));
  CHECK(last == 200 && OK(trainer.steps()) == 200 && loss < before.loss && after.loss < before.loss && after.accuracy > 0.9);
  CHECK(OK(trainer.sha256()) == shared.sha256);
  const std::vector<float> outputs = OK(trainer.predict(data.x));
  CHECK(outputs.size() == 720);
  std::size_t right = 0, values = 0;
  for (std::size_t i = 0; i < 240; i++) {
    const float *row = &outputs[3 * i];
    right += std::max_element(row, row + 3) - row == data.classes[i];
  }
  CHECK(static_cast<double>(right) / 240 == after.accuracy);
  for (const TrainedParameter &parameter : OK(trainer.parameters())) {
    std::size_t size = 1;
    for (std::size_t dim : parameter.dims) size *= dim;
    CHECK(!parameter.name.empty() && size == parameter.values.size());
    values += size;
  }
  CHECK(values == 6 * 32 + 32 + 32 * 3 + 3);
}

void goes_on(const Shared &shared) {
  const Data data(96);
  const std::string file = "cpp-trainer-" + std::to_string(getpid()) + ".safetensors";
  Trainer whole = create(shared), first = create(shared), second = create(shared, 1);
  (void)OK(whole.fit(data.x, data.classes, 3));
  (void)OK(first.fit(data.x, data.classes, 1));
  OK(first.save(file));
  OK(second.load(file));
  CHECK(!std::remove(file.c_str()) && OK(second.steps()) == 4);
  (void)OK(second.fit(data.x, data.classes, 2));
  CHECK(OK(second.sha256()) == OK(whole.sha256()));
  FAILS(Io, io, "missing", second.load("missing"));
}

void ranks(const Shared &shared) {
  const Data data(240);
  // A port that was free a moment ago.
  const std::string at = "@127.0.0.1:" + std::to_string(20000 + getpid() % 20000);
  std::array<std::string, 2> hashes;
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < 2; rank++) {
    threads.emplace_back([&, rank] {
      Trainer trainer = create(shared, 1);
      OK(trainer.join(std::to_string(rank) + "/2" + at, 60));
      (void)OK(trainer.fit(data.x, data.classes, 20));
      hashes[rank] = OK(trainer.sha256());
    });
  }
  for (std::thread &thread : threads) thread.join();
  CHECK(hashes[0] == shared.sha256 && hashes[1] == shared.sha256);
}

/// Ranks in threads of this process, which write to one another's boxes.
struct Post {
  explicit Post(std::size_t ranks) : size(ranks), boxes(ranks * ranks), full(ranks * ranks) {}

  std::size_t size;
  std::mutex mutex;
  std::condition_variable news;
  /// By the receiver and the sender.
  std::vector<std::string> boxes;
  std::vector<bool> full;
};

class Threads : public Transport {
 public:
  Threads(Post &post, std::size_t rank, int left = -1) : post_(post), rank_(rank), left_(left) {}
  std::size_t rank() const noexcept override { return rank_; }
  std::size_t size() const noexcept override { return post_.size; }
  std::optional<std::vector<std::string>> exchange(const std::vector<std::string_view> &parts) override {
    if (left_-- == 0) return std::nullopt;
    std::unique_lock<std::mutex> lock(post_.mutex);
    const std::size_t size = post_.size;
    for (std::size_t to = 0; to < size; to++) {
      if (to == rank_) continue;
      const std::size_t box = to * size + rank_;
      post_.news.wait(lock, [&] { return !post_.full[box]; });
      post_.boxes[box] = std::string(parts[to]);
      post_.full[box] = true;
    }
    post_.news.notify_all();
    std::vector<std::string> found(size);
    for (std::size_t from = 0; from < size; from++) {
      if (from == rank_) continue;
      const std::size_t box = rank_ * size + from;
      post_.news.wait(lock, [&] { return post_.full[box]; });
      found[from] = std::move(post_.boxes[box]);
      post_.full[box] = false;
    }
    post_.news.notify_all();
    return found;
  }

 private:
  Post &post_;
  std::size_t rank_;
  /// After so many exchanges it fails.
  int left_;
};

void own_transport(const Shared &shared) {
  const Data data(240);
  for (std::size_t size : {std::size_t{2}, std::size_t{3}}) {
    Post post(size);
    std::vector<std::string> hashes(size);
    std::vector<std::thread> threads;
    for (std::size_t rank = 0; rank < size; rank++) {
      threads.emplace_back([&, rank] {
        Trainer trainer = create(shared, 1);
        OK(trainer.join(std::make_shared<Threads>(post, rank)));
        (void)OK(trainer.fit(data.x, data.classes, 20));
        hashes[rank] = OK(trainer.sha256());
      });
    }
    for (std::thread &thread : threads) thread.join();
    for (const std::string &hash : hashes) CHECK(hash == shared.sha256);
  }
  // Alone, so the second exchange after the join's two fails.
  Post post(1);
  Trainer trainer = create(shared);
  FAILS(InvalidArgument, invalid_argument, "ranks is null", trainer.join(std::shared_ptr<Transport>()));
  FAILS(InvalidArgument, invalid_argument, "rank 1 of 1", trainer.join(std::make_shared<Threads>(post, 1)));
  FAILS(Io, io, "exchange failed with 1", trainer.join(std::make_shared<Threads>(post, 0, 0)));
  OK(trainer.join(std::make_shared<Threads>(post, 0, 3)));
  const Data batch(24);
  FAILS(Io, io, "exchange failed with 1", trainer.step(batch.x, batch.classes));
  FAILS(Io, io, "can't be used any longer", trainer.step(batch.x, batch.classes));
  CHECK(OK(trainer.steps()) == 0);
}

void refused(const Shared &shared) {
  const Data data(24);
  Trainer trainer = create(shared);
  FAILS(ShapeMismatch, shape_mismatch, "more or fewer", trainer.step(data.x, std::vector<std::int64_t>(23)));
  FAILS(ShapeMismatch, shape_mismatch, "no whole samples", trainer.predict(std::vector<float>(7)));
  FAILS(ShapeMismatch, shape_mismatch, "another type", trainer.step(data.classes, data.classes));
  FAILS(InvalidArgument, invalid_argument, "element 0 of targets is 5", trainer.step(data.x, std::vector<std::int64_t>(24, 5)));
  FAILS(InvalidArgument, invalid_argument, "the loss is NaN", trainer.step(std::vector<float>(144, NAN), data.classes));
  FAILS(InvalidArgument, invalid_argument, "no place of a rank", trainer.join("here"));
  FAILS(InvalidArgument, invalid_argument, "patience is -1", trainer.join("0/1@a:1", -1));
  FAILS(NotReady, not_ready, "progress ended the training at step 1", trainer.fit(data.x, data.classes, 2, [](auto...) { return false; }));
  CHECK(OK(trainer.steps()) == 1);
  FAILS(InvalidArgument, invalid_argument, "the training's description", Trainer::create("{", "cpu"));
#ifndef ADEAD_NO_EXCEPTIONS
  bool passed = false;
  try {
    trainer.fit(data.x, data.classes, 2, [](auto...) -> bool { throw 7; });
  } catch (int thrown) {
    passed = thrown == 7;
  }
  CHECK(passed && trainer.steps() == 2);
#endif
}

void jobs() {
  const std::string id = std::to_string(getpid()), text = "cpp-text-" + id, job = "cpp-job-" + id + ".toml", state = "cpp-state-" + id;
  {
    std::ofstream out(text), file(job);
    for (int i = 0; i < 40; i++) out << "a ferry came in, and nobody noticed. ";
    file << "batch = 8\nepochs = 2\ndata = { kind = \"text\", files = [\"" << text << "\"] }\n"
         << "model = { kind = \"gpt\", layers = 1, heads = 1, width = 8, context = 16 }\n"
         << "optimizer = { kind = \"adam\", rate = 0.01 }\ncheckpoint = { file = \"" << state << "\" }\n";
  }
  TrainOptions options;
  std::uint64_t epochs = 0, step = 0;
  options.progress = [&](const TrainEvent &event) {
    epochs += event.epoch_is_over;
    step = event.step;
    return event.epoch_is_over ? event.accuracy >= 0 : std::isnan(event.accuracy);
  };
  const TrainOutcome whole = OK(train(job, "cpu", options));
  CHECK(epochs == 2 && whole.steps == step && whole.sha256.size() == 64 && whole.device == "cpu" && whole.held_out_loss > 0);
  options = {};
  options.epochs = 1;
  CHECK(!std::remove(state.c_str()) && OK(train(job, "cpu", options)).steps == step / 2);
  options = {};
  options.resume = true;
  CHECK(OK(train(job, "cpu", options)).sha256 == whole.sha256);
  options.progress = [](const TrainEvent &) { return false; };
  options.resume = false;
  FAILS(NotReady, not_ready, "progress ended the job at step 1", train(job, "cpu", options));
  CHECK(!std::remove(state.c_str()) && !std::remove(job.c_str()) && !std::remove(text.c_str()));
  FAILS(Io, io, "none.toml", train("none.toml"));
}

}  // namespace

int main() {
  const Shared shared;
  one_hash(shared);
  goes_on(shared);
  ranks(shared);
  own_transport(shared);
  refused(shared);
  jobs();
}
