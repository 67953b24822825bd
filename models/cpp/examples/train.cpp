// train [DEVICE]: a network learns which of two spirals a point is on. The hash of its weights is the same on every device.
#include <adead/train.hpp>
#include <cmath>
#include <iostream>

int main(int argc, char **argv) {
  std::vector<float> points;
  std::vector<std::int64_t> classes;
  for (int side : {1, -1}) {
    for (int i = 0; i < 200; i++) {
      const double angle = std::sqrt(i / 200.0) * 9.42, radius = side * angle / 9;
      points.insert(points.end(), {static_cast<float>(radius * std::cos(angle)), static_cast<float>(radius * std::sin(angle))});
      classes.push_back(side > 0);
    }
  }
  adead::Trainer net(R"({
    "model": { "kind": "layers", "layers": [{ "linear": 64 }, "tanh", { "linear": 64 }, "tanh", { "linear": 2 }] },
    "optimizer": { "kind": "adam", "rate": 0.01 }, "input": [2], "batch": 50, "seed": 7
  })", argc > 1 ? argv[1] : nullptr);
  for (int part = 0; part < 10; part++) {
    const double loss = net.fit(points, classes, 10);
    std::cout << net.steps() << " steps, loss " << loss << '\n';
  }
  const adead::Measured found = net.evaluate(points, classes);
  std::cout << 100 * found.accuracy << " % right on " << net.device() << ", sha256 " << net.sha256().substr(0, 16) << '\n';
}
