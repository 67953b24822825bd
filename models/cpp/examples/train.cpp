// train [DEVICE]: a network learns whether two numbers have the same sign. Its hash is the same on every device.
#include <adead/train.hpp>
#include <iostream>

int main(int argc, char **argv) {
  // Points in a square, from a simple generator.
  std::vector<float> points;
  std::vector<std::int64_t> classes;
  std::uint64_t state = 1;
  for (int i = 0; i < 800; i++) {
    state = state * 16807 % 2147483647;
    points.push_back(static_cast<float>(static_cast<double>(state) / 1073741824 - 1));
  }
  for (int i = 0; i < 800; i += 2) classes.push_back((points[i] > 0) == (points[i + 1] > 0));

  adead::Trainer net(R"({
    "model": { "kind": "layers", "layers": [{ "linear": 32 }, "tanh", { "linear": 2 }] }, "input": [2],
    "optimizer": { "kind": "adam", "rate": 0.02 }, "batch": 40, "seed": 7
  })", argc > 1 ? argv[1] : nullptr);
  for (int part = 1; part < 5; part++) {
    const double loss = net.fit(points, classes, 10);
    std::cout << "epoch " << 10 * part << ": loss " << loss << '\n';
  }
  const adead::Measured found = net.evaluate(points, classes);
  std::cout << 100 * found.accuracy << " % right on " << net.device() << ", sha256 " << net.sha256() << '\n';
}
