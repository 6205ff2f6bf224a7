// Compares initializers with their distributions; tests that values depend on seed, name and element alone.
#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "core/graph/passes/initialize.h"
#include "test/catch.h"

namespace trainctl::initialize_test {
namespace {

std::vector<float> draw(const std::string& initializer, Shape shape = {300, 500}, std::uint64_t seed = 7,
                        const std::string& name = "fc/kernel") {
  GraphParameter parameter;
  parameter.initializer.name = initializer;
  parameter.initializer.value = 0.25;
  parameter.initializer.mean = 0.5;
  parameter.initializer.stddev = 2;
  parameter.initializer.minimum = -3;
  parameter.initializer.maximum = 1;
  parameter.initializer.fan_in = 300;
  parameter.initializer.fan_out = 500;
  Tensor tensor;
  tensor.name = name;
  tensor.type.shape = shape;
  std::vector<float> values(static_cast<std::size_t>(shape.count()), NAN);
  initialize(parameter, tensor, seed, values.data());
  return values;
}

double mean(const std::vector<float>& values) {
  double sum = 0;
  for (float value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double variance(const std::vector<float>& values) {
  const double m = mean(values);
  double sum = 0;
  for (float value : values) sum += (value - m) * (value - m);
  return sum / static_cast<double>(values.size());
}

// The largest distance between the empirical and the given distribution function (Kolmogorov and Smirnov).
double distance(std::vector<float> values, const std::function<double(double)>& distribution) {
  std::sort(values.begin(), values.end());
  double largest = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double expected = distribution(values[i]);
    const double n = static_cast<double>(values.size());
    largest = std::max({largest, std::abs(static_cast<double>(i) / n - expected),
                        std::abs(static_cast<double>(i + 1) / n - expected)});
  }
  return largest;
}

double normal_distribution(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

// Exceeded by chance once in a hundred thousand samples; the values are fixed, so that the result is always the same.
constexpr double tolerance = 2.5 / 387.3;  // 2.5 / sqrt(150000)

}  // namespace

TEST_CASE("uniform initializers are uniform within Keras' limits") {
  const std::pair<const char*, double> cases[] = {{"glorot_uniform", std::sqrt(6.0 / 800)},
                                                  {"he_uniform", std::sqrt(6.0 / 300)},
                                                  {"lecun_uniform", std::sqrt(3.0 / 300)}};
  for (const auto& [name, limit] : cases) {
    CAPTURE(name);
    const auto values = draw(name);
    CHECK(*std::max_element(values.begin(), values.end()) == Approx(limit).epsilon(1e-3));
    CHECK(*std::min_element(values.begin(), values.end()) == Approx(-limit).epsilon(1e-3));
    CHECK(distance(values, [limit = limit](double x) { return (x / limit + 1) / 2; }) < tolerance);
  }
  CHECK(distance(draw("uniform"), [](double x) { return (x + 3) / 4; }) < tolerance);
}

TEST_CASE("normal initializers have Keras' variance and are cut off at two deviations") {
  const std::pair<const char*, double> cases[] = {
      {"glorot_normal", 2.0 / 800}, {"he_normal", 2.0 / 300}, {"lecun_normal", 1.0 / 300}};
  for (const auto& [name, expected] : cases) {
    CAPTURE(name);
    const auto values = draw(name);
    CHECK(std::abs(mean(values)) < 4 * std::sqrt(expected / 150000));
    CHECK(variance(values) == Approx(expected).epsilon(0.01));
    const double stddev = std::sqrt(expected) / 0.8796256610342398;
    CHECK(*std::max_element(values.begin(), values.end()) <= 2 * stddev * (1 + 1e-6));
    CHECK(*std::max_element(values.begin(), values.end()) > 1.99 * stddev);
    CHECK(*std::min_element(values.begin(), values.end()) >= -2 * stddev * (1 + 1e-6));
    const double tail = normal_distribution(-2);
    CHECK(distance(values, [&](double x) { return (normal_distribution(x / stddev) - tail) / (1 - 2 * tail); }) <
          tolerance);
  }
}

TEST_CASE("the plain normal initializer is normal") {
  const auto values = draw("normal");
  CHECK(distance(values, [](double x) { return normal_distribution((x - 0.5) / 2); }) < tolerance);
  CHECK(*std::max_element(values.begin(), values.end()) > 0.5 + 2 * 3.5);
}

TEST_CASE("the plain truncated normal initializer ends two deviations from its mean") {
  const auto values = draw("truncated_normal");  // mean 0.5, deviation 2 before values are cut off
  CHECK(mean(values) == Approx(0.5).margin(0.02));
  CHECK(std::sqrt(variance(values)) == Approx(2 * 0.8796256610342398).epsilon(0.01));
  CHECK(*std::max_element(values.begin(), values.end()) <= 4.5 * (1 + 1e-6));
  CHECK(*std::min_element(values.begin(), values.end()) >= -3.5 * (1 + 1e-6));
}

TEST_CASE("the orthogonal initializer has orthonormal columns, or rows if there are fewer rows") {
  for (const Shape& shape : {Shape{70, 70}, Shape{3, 5, 4, 31}, Shape{20, 3, 90}}) {
    const auto values = draw("orthogonal", shape);
    const std::int64_t columns = shape.back(), rows = shape.count() / columns;
    const bool tall = rows >= columns;
    const auto at = [&](std::int64_t vector, std::int64_t k) {
      const std::int64_t index = tall ? k * columns + vector : vector * columns + k;
      return static_cast<double>(values[static_cast<std::size_t>(index)]);
    };
    double worst = 0, spread = 0;
    for (std::int64_t a = 0; a < std::min(rows, columns); ++a) {
      for (std::int64_t b = 0; b <= a; ++b) {
        double product = 0;
        for (std::int64_t k = 0; k < std::max(rows, columns); ++k) product += at(a, k) * at(b, k);
        worst = std::max(worst, std::abs(product - (a == b ? 1 : 0)));
      }
      spread += std::abs(at(a, 0)) + std::abs(at(a, 1));
    }
    CAPTURE(to_string(shape));
    CHECK(worst < 1e-6);
    CHECK(spread > 1);  // not just unit vectors
  }
}

TEST_CASE("constant initializers have their fixed values") {
  CHECK(draw("identity", {2, 3}) == std::vector<float>{1, 0, 0, 0, 1, 0});
  CHECK(draw("zeros", {5}) == std::vector<float>(5, 0.0f));
  CHECK(draw("ones", {5}) == std::vector<float>(5, 1.0f));
  CHECK(draw("constant", {5}) == std::vector<float>(5, 0.25f));
  CHECK_THROWS_AS(draw("glorot"), Error);
}

TEST_CASE("initial values are a function of seed, name and element") {
  for (const char* name : {"glorot_uniform", "he_normal", "normal"}) {
    CAPTURE(name);
    const auto all = draw(name);
    CHECK(draw(name) == all);
    // A shorter tensor holds the first values of a longer one, whatever its length modulo the block and the chunk.
    for (std::int64_t length : {1, 3, 6, 65537}) {
      const auto part = draw(name, Shape{length});
      CHECK(std::equal(part.begin(), part.end(), all.begin()));
    }
    for (const auto& other : {draw(name, {300, 500}, 8), draw(name, {300, 500}, 7, "fc2/kernel")}) {
      std::size_t equal = 0;
      for (std::size_t i = 0; i < all.size(); ++i) equal += all[i] == other[i];
      CHECK(equal < 5);
    }
  }
}

}  // namespace trainctl::initialize_test
