// Compares losses with their definitions in float64.
#include "core/graph/ops/losses/losses.h"

#include <algorithm>
#include <cmath>

#include "core/graph/ops/metrics/metrics.h"
#include "core/graph/ops/reshaping/shaping.h"
#include "test/catch.h"
#include "test/core/backend/run_op.h"

namespace trainctl::test::losses_test {
namespace {

constexpr std::int64_t samples = 23, values = 11;
using Row = std::vector<double>;

double cross_entropy(const Row& x, const Row& target, double smoothing) {
  double total = 0, loss = 0;
  for (double v : x) total += std::exp(v);
  for (std::size_t k = 0; k < x.size(); ++k) {
    const double t = target[k] * (1 - smoothing) + smoothing / static_cast<double>(x.size());
    loss -= t * std::log(std::exp(x[k]) / total);
  }
  return loss;
}

double binary(const Row& x, const Row& target, double smoothing) {
  double loss = 0;
  for (std::size_t k = 0; k < x.size(); ++k) {
    const double t = target[k] * (1 - smoothing) + smoothing / 2, p = 1 / (1 + std::exp(-x[k]));
    loss -= (t * std::log(p) + (1 - t) * std::log(1 - p)) / static_cast<double>(x.size());
  }
  return loss;
}

double huber(const Row& x, const Row& target, double) {
  constexpr double delta = 1.5;
  double loss = 0;
  for (std::size_t k = 0; k < x.size(); ++k) {
    const double far = std::abs(x[k] - target[k]);
    loss += (far < delta ? far * far / 2 : delta * far - delta * delta / 2) / static_cast<double>(x.size());
  }
  return loss;
}

double squared(const Row& x, const Row& target, double) {
  double loss = 0;
  for (std::size_t k = 0; k < x.size(); ++k) loss += std::pow(x[k] - target[k], 2) / static_cast<double>(x.size());
  return loss;
}

double absolute(const Row& x, const Row& target, double) {
  double loss = 0;
  for (std::size_t k = 0; k < x.size(); ++k) loss += std::abs(x[k] - target[k]) / static_cast<double>(x.size());
  return loss;
}

double percentage(const Row& x, const Row& target, double) {
  double loss = 0;
  for (std::size_t k = 0; k < x.size(); ++k) {
    loss += 100 * std::abs(x[k] - target[k]) / std::max(std::abs(target[k]), 1e-7) / static_cast<double>(x.size());
  }
  return loss;
}

double log_cosh(const Row& x, const Row& target, double) {
  double loss = 0;
  for (std::size_t k = 0; k < x.size(); ++k) {
    loss += std::log(std::cosh(x[k] - target[k])) / static_cast<double>(x.size());
  }
  return loss;
}

double categorical_hinge(const Row& x, const Row& target, double) {
  double right = 0, others = -1e9;
  for (std::size_t k = 0; k < x.size(); ++k) {
    right += target[k] * x[k];
    others = std::max(others, (1 - target[k]) * x[k]);
  }
  return std::max(0.0, others - right + 1);
}

double hinge(const Row& x, const Row& target, double) {
  double loss = 0;
  for (std::size_t k = 0; k < x.size(); ++k) {
    loss += std::max(0.0, 1 - target[k] * x[k]) / static_cast<double>(x.size());
  }
  return loss;
}

double squared_hinge(const Row& x, const Row& target, double) {
  double loss = 0;
  for (std::size_t k = 0; k < x.size(); ++k) {
    loss += std::pow(std::max(0.0, 1 - target[k] * x[k]), 2) / static_cast<double>(x.size());
  }
  return loss;
}

double poisson(const Row& x, const Row& target, double) {
  double loss = 0;
  for (std::size_t k = 0; k < x.size(); ++k) {
    loss += (x[k] - target[k] * std::log(x[k] + 1e-7)) / static_cast<double>(x.size());
  }
  return loss;
}

double squared_logarithmic(const Row& x, const Row& target, double) {
  double loss = 0;
  for (std::size_t k = 0; k < x.size(); ++k) {
    const double difference = std::log(1 + std::max(x[k], 1e-7)) - std::log(1 + std::max(target[k], 1e-7));
    loss += difference * difference / static_cast<double>(x.size());
  }
  return loss;
}

double cosine(const Row& x, const Row& target, double) {
  double product = 0, predicted = 0, wanted = 0;
  for (std::size_t k = 0; k < x.size(); ++k) {
    product += x[k] * target[k];
    predicted += x[k] * x[k];
    wanted += target[k] * target[k];
  }
  return -product / std::sqrt(predicted * wanted);
}

double divergence(const Row& x, const Row& target, double) {
  double total = 0, loss = 0;
  for (double v : x) total += std::exp(v);
  for (std::size_t k = 0; k < x.size(); ++k) {
    const double t = std::clamp(target[k], 1e-7, 1.0);
    loss += t * std::log(t / (std::exp(x[k]) / total));
  }
  return loss;
}

double binary_focal(const Row& x, const Row& target, double smoothing) {
  double loss = 0;
  for (std::size_t k = 0; k < x.size(); ++k) {
    const double t = target[k] * (1 - smoothing) + smoothing / 2, p = 1 / (1 + std::exp(-x[k]));
    const double wrong = 1 - (t * p + (1 - t) * (1 - p)), weight = 0.25 * t + 0.75 * (1 - t);
    loss -=
        weight * std::pow(wrong, 1.5) * (t * std::log(p) + (1 - t) * std::log(1 - p)) / static_cast<double>(x.size());
  }
  return loss;
}

double focal(const Row& x, const Row& target, double smoothing) {
  double total = 0, loss = 0;
  for (double v : x) total += std::exp(v);
  for (std::size_t k = 0; k < x.size(); ++k) {
    const double t = target[k] * (1 - smoothing) + smoothing / static_cast<double>(x.size()),
                 p = std::exp(x[k]) / total;
    loss -= 0.25 * std::pow(1 - p, 2) * t * std::log(p);
  }
  return loss;
}

double dice(const Row& x, const Row& target, double) {
  double both = 0, all = 1e-7;
  for (std::size_t k = 0; k < x.size(); ++k) {
    const double p = 1 / (1 + std::exp(-x[k]));
    both += p * target[k];
    all += p + target[k];
  }
  return 1 - 2 * both / all;
}

double mean_of_values(const Row& x, const Row&, double) {
  double sum = 0;
  for (const double v : x) sum += v;
  return sum / static_cast<double>(x.size());
}

Row one_hot(double label, std::int64_t count) {
  Row row(static_cast<std::size_t>(count));
  row[static_cast<std::size_t>(label)] = 1;
  return row;
}

Value weights() {
  Value w = random_value({samples}, DType::float32, 9, 0.5, 2);
  w.values[3] = 0;
  return w;
}

// Checks that the op computes the same bits if its gradient has the memory of the predictions.
void check_in_place(Backend& backend, const std::shared_ptr<const OpDef>& op, const std::vector<Value>& inputs,
                    const std::vector<Value>& initial, const std::vector<Value>& expected) {
  const auto got = run_op(backend, op, inputs, initial, nullptr, nullptr, OutputPlaces::in_place);
  for (std::size_t i = 0; i < expected.size(); ++i) CHECK(got[i].values == expected[i].values);
}

}  // namespace

TEST_CASE("losses and their gradients have the values of definitions and central differences") {
  const auto backend = backend_under_test({.threads = 2});
  const DType dtype = GENERATE(DType::float32, DType::bfloat16);
  const float smoothing = GENERATE(0.0f, 0.1f);
  struct Definition {
    LossRule rule;
    double (*of_row)(const Row& x, const Row& target, double smoothing);
  };
  const std::vector<Definition> losses{{SparseCategoricalCrossentropy{{smoothing}}, cross_entropy},
                                       {CategoricalCrossentropy{{smoothing}}, cross_entropy},
                                       {BinaryCrossentropy{smoothing}, binary},
                                       {MeanSquaredError{}, squared},
                                       {Huber{1.5f}, huber},
                                       {MeanAbsoluteErrorLoss{}, absolute},
                                       {MeanAbsolutePercentageErrorLoss{}, percentage},
                                       {LogCosh{}, log_cosh},
                                       {CategoricalHinge{}, categorical_hinge},
                                       {Hinge{}, hinge},
                                       {SquaredHinge{}, squared_hinge},
                                       {Poisson{}, poisson},
                                       {MeanSquaredLogarithmicError{}, squared_logarithmic},
                                       {CosineSimilarityLoss{}, cosine},
                                       {KlDivergence{}, divergence},
                                       {BinaryFocalCrossentropy{true, 0.25f, 1.5f, smoothing}, binary_focal},
                                       {SparseCategoricalFocalCrossentropy{{0.25f, 2.0f, smoothing}}, focal},
                                       {CategoricalFocalCrossentropy{{0.25f, 2.0f, smoothing}}, focal},
                                       {Dice{}, dice},
                                       {ExpressionLoss{}, mean_of_values}};
  static constexpr std::size_t all = std::variant_size_v<LossRule> - 1;  // without ctc, which ctc_test.cpp tests
  const auto& [rule, loss_of] = losses[GENERATE(range(std::size_t{0}, all))];
  const bool accumulate = GENERATE(false, true);
  const std::int64_t values = accumulate ? 16 : 11;  // kernels may move the values of such rows in packs
  CAPTURE(name_of(dtype), name_of(rule), smoothing, accumulate);
  const bool sparse = targets_of(rule) == LossTargets::class_numbers;
  const double lowest = std::holds_alternative<Poisson>(rule) ? 0.5 : -4;  // Poisson's loss needs positive outputs
  const Value x = random_value({samples, values}, dtype, 1, lowest, 4), w = weights();
  const Value targets = sparse ? random_integers({samples}, DType::int32, 2, values)
                               : random_value({samples, values}, DType::float32, 2, 0, 1);
  double sum = accumulate ? 5 : 0, count = accumulate ? 3 : 0;
  Row gradient;
  for (std::size_t i = 0; i < samples; ++i) {
    const Row target = sparse ? one_hot(targets.values[i], values) : row_of(targets, i);
    Row row = row_of(x, i);
    sum += w.values[i] * loss_of(row, target, static_cast<double>(smoothing));
    count += w.values[i];
    for (double& v : row) {
      constexpr double step = 1e-5;
      const double middle = v;
      v = middle + step;
      const double above = loss_of(row, target, static_cast<double>(smoothing));
      v = middle - step;
      gradient.push_back(w.values[i] * (above - loss_of(row, target, static_cast<double>(smoothing))) / (2 * step));
      v = middle;
    }
  }
  const auto op = std::make_shared<Loss>(rule, true, accumulate);
  const auto got = run_op(*backend, op, {x, targets, w}, {scalar(5), scalar(3)});
  check_in_place(*backend, op, {x, targets, w}, {scalar(5), scalar(3)}, got);
  CHECK(got[0].values[0] == Approx(sum).epsilon(1e-5));
  CHECK(got[1].values[0] == Approx(count));
  CHECK(largest_error(got[2], gradient) < (dtype == DType::float32 ? 1e-5 : 5e-3));
  const auto evaluation = run_op(*backend, std::make_shared<Loss>(rule, false, false), {x, targets, w});
  CHECK(evaluation[0].values[0] == Approx(sum - (accumulate ? 5 : 0)).epsilon(1e-5));
  CHECK(evaluation[1].values[0] == Approx(count - (accumulate ? 3 : 0)));
}

TEST_CASE("label smoothing and z-loss of tokens have the values of the definition and central differences") {
  const auto backend = backend_under_test({.threads = 2});
  const DType dtype = GENERATE(DType::float32, DType::bfloat16);
  const bool sparse = GENERATE(true, false);
  constexpr double smoothing = 0.125, z_loss = 0.0625, step = 1e-5;
  constexpr std::int64_t n = 4, positions = 6;
  const auto loss_of = [](const Row& x, const Row& target) {
    double total = 0;
    for (const double v : x) total += std::exp(v);
    return cross_entropy(x, target, smoothing) + z_loss * std::log(total) * std::log(total);
  };
  const Value x = random_value({n, positions, values}, dtype, 1, -4, 4);
  const Value targets = sparse ? random_integers({n, positions}, DType::int32, 2, values)
                               : random_value({n, positions, values}, DType::float32, 2, 0, 1);
  const Value w = random_value({n, positions}, DType::float32, 9, 0.5, 2);
  double sum = 0;
  Row gradient;
  for (std::size_t i = 0; i < n * positions; ++i) {
    const Row target = sparse ? one_hot(targets.values[i], values) : row_of(targets, i);
    Row row = row_of(x, i);
    sum += w.values[i] * loss_of(row, target);
    for (double& v : row) {
      const double middle = v;
      v = middle + step;
      const double above = loss_of(row, target);
      v = middle - step;
      gradient.push_back(w.values[i] * (above - loss_of(row, target)) / (2 * step));
      v = middle;
    }
  }
  const SoftmaxCrossentropy options{smoothing, z_loss};
  const LossRule rule =
      sparse ? LossRule(SparseCategoricalCrossentropy{options}) : LossRule(CategoricalCrossentropy{options});
  const auto got = run_op(*backend, std::make_shared<Loss>(rule, true, false), {x, targets, w});
  CHECK(got[0].values[0] == Approx(sum).epsilon(1e-5));
  CHECK(largest_error(got[2], gradient) < (dtype == DType::float32 ? 1e-5 : 5e-3));
}

TEST_CASE("losses sum over the positions of samples, with weights per sample or per position") {
  const auto backend = backend_under_test({.threads = 2});
  const DType dtype = GENERATE(DType::float32, DType::bfloat16);
  const bool masked = GENERATE(false, true), sparse = GENERATE(false, true);
  CAPTURE(name_of(dtype), masked, sparse);
  constexpr std::int64_t n = 5, height = 3, width = 4, positions = height * width;
  const Value x = random_value({n, height, width, values}, dtype, 1, -4, 4);
  const Value targets = sparse ? random_integers({n, height, width}, DType::int32, 2, values)
                               : random_value({n, height, width, values}, DType::float32, 2, 0, 1);
  Value w = random_value(masked ? Shape{n, height, width} : Shape{n}, DType::float32, 9, 0.5, 2);
  for (std::size_t i = 0; i < w.values.size(); i += 3) w.values[i] = 0;
  const auto loss_of = sparse ? cross_entropy : binary;
  const LossRule rule = sparse ? LossRule(SparseCategoricalCrossentropy{}) : LossRule(BinaryCrossentropy{});
  constexpr double scale = 0.25;
  double sum = 0, count = 0;
  Row gradient;
  for (std::size_t i = 0; i < n * positions; ++i) {
    const double weight = w.values[masked ? i : i / positions];
    const Row target = sparse ? one_hot(targets.values[i], values) : row_of(targets, i);
    Row row = row_of(x, i);
    sum += weight * loss_of(row, target, 0);
    for (double& v : row) {
      constexpr double step = 1e-5;
      const double middle = v;
      v = middle + step;
      const double above = loss_of(row, target, 0);
      v = middle - step;
      gradient.push_back(scale * weight * (above - loss_of(row, target, 0)) / (2 * step));
      v = middle;
    }
  }
  for (double weight : w.values) count += weight;
  const auto got = run_op(*backend, std::make_shared<Loss>(rule, true, false, scale), {x, targets, w});
  check_in_place(*backend, std::make_shared<Loss>(rule, true, false, scale), {x, targets, w}, {}, got);
  CHECK(got[0].values[0] == Approx(sum).epsilon(1e-5));
  CHECK(got[1].values[0] == Approx(count));
  CHECK(got[2].type.shape == x.type.shape);
  CHECK(largest_error(got[2], gradient) < (dtype == DType::float32 ? 1e-5 : 5e-3));

  // An op has no output for the count if another loss counts the samples.
  const auto uncounted = run_op(*backend, std::make_shared<Loss>(rule, true, false, scale, false), {x, targets, w});
  REQUIRE(uncounted.size() == 2);
  CHECK(uncounted[0].values == got[0].values);
  CHECK(uncounted[1].values == got[2].values);
}

TEST_CASE("a loss over samples uses all positions of a sample with their weights") {
  const auto backend = backend_under_test({.threads = 2});
  const DType dtype = GENERATE(DType::float32, DType::bfloat16);
  const bool masked = GENERATE(false, true);
  CAPTURE(name_of(dtype), masked);
  constexpr std::int64_t n = 3, positions = 2100, k = 3, each = positions * k;
  Value x = random_value({n, positions, k}, dtype, 1, -4, 4);
  Value targets = random_integers({n, positions, k}, DType::float32, 2, 2);
  Value w = random_value(masked ? Shape{n, positions} : Shape{n}, DType::float32, 3, 0.5, 2);
  const auto weight = [&](std::int64_t i, std::int64_t p) -> double& {
    return w.values[static_cast<std::size_t>(masked ? i * positions + p : i)];
  };
  for (std::int64_t p = 0; p < positions; ++p) weight(1, p) = 0;  // a skipped sample
  for (std::int64_t p = 0; masked && p < positions; p += 3) weight(0, p) = 0;
  double sum = 0, count = 0;
  Row gradient;
  for (std::int64_t i = 0; i < n; ++i) {
    double both = 0, all = 1e-7, weights = 0;
    const auto at = [&](const Value& value, std::int64_t e) {
      return value.values[static_cast<std::size_t>(i * each + e)];
    };
    const auto probability = [&](std::int64_t e) { return 1 / (1 + std::exp(-at(x, e))); };
    const auto share = [&](std::int64_t e) { return masked ? weight(i, e / k) : 1; };
    for (std::int64_t e = 0; e < each; ++e) {
      both += share(e) * probability(e) * at(targets, e);
      all += share(e) * (probability(e) + at(targets, e));
      weights += weight(i, e / k) / k;
    }
    if (weights > 0) sum += weights * (1 - 2 * both / all);
    for (std::int64_t e = 0; e < each; ++e) {
      const double p = probability(e), slope = -2 * (at(targets, e) * all - both) / (all * all);
      gradient.push_back(weights > 0 ? 0.5 * weights * share(e) * slope * p * (1 - p) : 0);
    }
  }
  for (double v : w.values) count += v;
  for (std::int64_t i = 0; i < n * positions; ++i) {
    if (weight(i / positions, i % positions) != 0) continue;
    x.values[static_cast<std::size_t>(i * k)] = std::numeric_limits<double>::quiet_NaN();
  }
  const auto got = run_op(*backend, std::make_shared<Loss>(Dice{}, true, false, 0.5f), {x, targets, w});
  check_in_place(*backend, std::make_shared<Loss>(Dice{}, true, false, 0.5f), {x, targets, w}, {}, got);
  CHECK(got[0].values[0] == Approx(sum).epsilon(1e-5));
  CHECK(got[1].values[0] == Approx(count));
  CHECK(largest_error(got[2], gradient) < (dtype == DType::float32 ? 1e-5 : 5e-3));
  const auto evaluation = run_op(*backend, std::make_shared<Loss>(Dice{}, false, false), {x, targets, w});
  CHECK(evaluation[0].values == got[0].values);
}

TEST_CASE("a sample of weight 0 may hold any values, and a NaN in any other sample makes the loss NaN") {
  const auto backend = backend_under_test({});
  Value x = random_value({samples, values}, DType::float32, 1), w = weights();
  Value targets = random_integers({samples}, DType::int32, 2, values);
  x.values[3 * values] = std::numeric_limits<double>::quiet_NaN();
  targets.values[3] = -7;
  const auto op = std::make_shared<Loss>(SparseCategoricalCrossentropy{}, true, false);
  const auto skipped = run_op(*backend, op, {x, targets, w});
  CHECK(std::isfinite(skipped[0].values[0]));
  for (double v : skipped[2].values) CHECK(std::isfinite(v));
  w.values[3] = 1;
  CHECK(std::isnan(run_op(*backend, op, {x, targets, w})[0].values[0]));
}

TEST_CASE("a loss over ranges of the classes is the same as the loss over all classes") {
  const auto backend = backend_under_test({.threads = 2});
  const DType dtype = GENERATE(DType::float32, DType::bfloat16);
  constexpr std::int64_t rows = 9, classes = 12, ranks = 3, each = classes / ranks;
  const Value x = random_value({rows, classes}, dtype, 1, -4, 4),
              labels = random_integers({rows}, DType::int32, 2, classes);
  const Value distributions = random_value({rows, classes}, DType::float32, 3, 0, 1);
  Value weights = random_value({rows}, DType::float32, 4, 0.25, 1);
  weights.values[2] = 0;
  SparseCategoricalCrossentropy sparse;
  sparse.label_smoothing = 0.1f;
  for (const LossRule& rule : {LossRule(sparse), LossRule(CategoricalCrossentropy{}), LossRule(KlDivergence{})}) {
    REQUIRE(is_over_classes(rule));
    const Value& targets = targets_of(rule) == LossTargets::class_numbers ? labels : distributions;
    const auto whole = run_op(*backend, std::make_shared<Loss>(rule, true, false, 0.5f), {x, targets, weights});
    const auto right = run_op(*backend, std::make_shared<Metric>(Accuracy{}, false), {x, targets, weights})[0];
    std::vector<Value> parts = run_op(*backend, std::make_shared<Split>(std::vector<std::int64_t>(ranks, each)), {x});
    std::vector<Value> sums;
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      const auto def = std::make_shared<ClassSums>(rule, ColumnRange{rank * each, classes});
      sums.push_back(run_op(*backend, def, {parts[static_cast<std::size_t>(rank)], targets})[0]);
    }
    const Value all = run_op(*backend, std::make_shared<Concatenate>(), sums)[0];
    const auto slopes = run_op(*backend, std::make_shared<Split>(std::vector<std::int64_t>(ranks, each)), {whole[2]});
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      CAPTURE(name_of(dtype), std::string(name_of(rule)), rank);
      const auto def = std::make_shared<Loss>(rule, true, false, 0.5f, true, ColumnRange{rank * each, classes});
      const auto r = static_cast<std::size_t>(rank);
      const auto got = run_op(*backend, def, {parts[r], targets, weights, all});
      CHECK(largest_error(got[0], whole[0].values) < 1e-5);
      CHECK(got[1].values == whole[1].values);
      CHECK(largest_error(got[2], slopes[r].values) < (dtype == DType::float32 ? 1e-6 : 4e-3));
    }
    const auto of_sums = run_op(*backend, std::make_shared<Metric>(Accuracy{}, false, true), {all, labels, weights})[0];
    if (&targets == &labels) CHECK(of_sums.values == right.values);
  }
}

}  // namespace trainctl::test::losses_test
