// Tests metrics that are named like losses in whole runs: their definitions with sample weights, on any number of
// ranks.
#include <algorithm>
#include <cmath>
#include <random>

#include "core/base/format.h"
#include "test/catch.h"
#include "test/support/command.h"
#include "test/support/files.h"

namespace trainctl::test::loss_metrics_test {
namespace {

constexpr std::size_t samples = 22, classes = 4;

// Logits, targets that are probabilities, and weights of random samples.
struct Data {
  std::vector<float> x, y, weights;

  explicit Data(const Folder& folder) {
    std::mt19937 random(7);
    const auto number = [&](double low, double high) {
      return static_cast<float>(low + (high - low) * static_cast<double>(random()) / 4294967296.0);
    };
    for (std::size_t i = 0; i < samples; ++i) {
      float sum = 0;
      for (std::size_t k = 0; k < classes; ++k) {
        x.push_back(number(-3, 3));
        y.push_back(number(0, 1));
        sum += y.back();
      }
      for (std::size_t k = 0; k < classes; ++k) y[i * classes + k] /= sum;
      weights.push_back(i == 5 ? 0 : number(0.25, 2));
    }
    folder.write("x.npy", npy("<f4", format("({}, {})", samples, classes), raw(x)));
    folder.write("y.npy", npy("<f4", format("({}, {})", samples, classes), raw(y)));
    folder.write("w.npy", npy("<f4", format("({},)", samples), raw(weights)));
  }

  // The weighted mean over the samples of a function of probabilities and targets.
  template <class Value>
  double mean(const Value& value) const {
    double sum = 0, weight = 0;
    for (std::size_t i = 0; i < samples; ++i) {
      std::vector<double> p(classes), t(y.begin() + static_cast<std::ptrdiff_t>(i * classes),
                                        y.begin() + static_cast<std::ptrdiff_t>((i + 1) * classes));
      double whole = 0;
      for (std::size_t k = 0; k < classes; ++k) whole += p[k] = std::exp(static_cast<double>(x[i * classes + k]));
      for (double& share : p) share /= whole;
      sum += weights[i] * value(p, t);
      weight += weights[i];
    }
    return sum / weight;
  }
};

using Row = std::vector<double>;

double crossentropy(const Row& p, const Row& t) {
  double sum = 0;
  for (std::size_t k = 0; k < classes; ++k) sum -= (0.75 * t[k] + 0.25 / classes) * std::log(p[k]);
  return sum;
}
double divergence(const Row& p, const Row& t) {
  double sum = 0;
  for (std::size_t k = 0; k < classes; ++k) sum += t[k] * std::log(t[k] / p[k]);
  return sum;
}
double answers(const Row& p, const Row& t) {
  double sum = 0;
  for (std::size_t k = 0; k < classes; ++k) sum -= t[k] * std::log(p[k]) + (1 - t[k]) * std::log(1 - p[k]);
  return sum / classes;
}
double hinge(const Row& p, const Row& t) {
  double own = 0, others = -1e9;
  for (std::size_t k = 0; k < classes; ++k) own += t[k] * p[k], others = std::max(others, (1 - t[k]) * p[k]);
  return std::max(0.0, 1 + others - own);
}
double huber(const Row& p, const Row& t) {
  double sum = 0;
  for (std::size_t k = 0; k < classes; ++k) {
    const double far = std::abs(p[k] - t[k]);
    sum += far <= 0.125 ? far * far / 2 : 0.125 * (far - 0.0625);
  }
  return sum / classes;
}

}  // namespace

TEST_CASE("metrics named like losses follow their definitions, of logits and of probabilities, on 1 and 2 ranks") {
  const Folder folder;
  const Data data(folder);
  // The first loss has the softmax as its own; with the second one, the metrics read its probabilities.
  for (const char* loss : {"categorical_crossentropy", "mean_squared_error"}) {
    const std::string config =
        folder.write("m.yaml", format(R"(data: {{dataset: npy, x: x.npy, y: y.npy, weights: w.npy}}
model: {{layers: [{{dense: {{units: {}, activation: softmax, kernel_initializer: identity}}}}]}}
train:
  batch_size: 8
  epochs: 1
  loss: {}
  metrics:
    - {{name: categorical_crossentropy, label_smoothing: 0.25}}
    - kl_divergence
    - binary_crossentropy
    - categorical_hinge
    - {{name: huber, delta: 0.125}}
  optimizer: {{name: sgd, learning_rate: 1e-30}}
)",
                                      classes, loss));
    for (const char* ranks : {"1", "2"}) {
      CAPTURE(loss, ranks);
      const std::string directory = format("{}-{}", loss, ranks);
      const Finished run = trainctl(folder, {"run", config, "--ranks", ranks, "--run-dir", directory});
      INFO(tail(run.errors));
      REQUIRE(run.code == 0);
      const Json train = events(folder / directory, "epoch").back()["train"];
      CHECK(train["categorical_crossentropy"].get<double>() == Approx(data.mean(crossentropy)).epsilon(1e-5));
      CHECK(train["kl_divergence"].get<double>() == Approx(data.mean(divergence)).epsilon(1e-5));
      CHECK(train["binary_crossentropy"].get<double>() == Approx(data.mean(answers)).epsilon(1e-5));
      CHECK(train["categorical_hinge"].get<double>() == Approx(data.mean(hinge)).epsilon(1e-5));
      CHECK(train["huber"].get<double>() == Approx(data.mean(huber)).epsilon(1e-5));
    }
  }
}

}  // namespace trainctl::test::loss_metrics_test
