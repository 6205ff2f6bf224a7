// Compares metrics with their definitions in float64.
#include "core/graph/ops/metrics/metrics.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "core/graph/ops/metrics/token_bytes.h"
#include "test/catch.h"
#include "test/core/backend/run_op.h"

namespace trainctl::test::metrics_test {
namespace {

constexpr std::int64_t samples = 23, values = 11;
using Row = std::vector<double>;

Value weights() {
  Value w = random_value({samples}, DType::float32, 9, 0.5, 2);
  w.values[3] = 0;
  return w;
}

// Computes the area under the curve by Keras' definition, threshold by threshold, of weighted predictions in [0, 1].
double area(const Row& p, const Row& t, const Row& w, int thresholds, AucCurve curve) {
  Row tp, fp;
  double yes = 0, no = 0;
  for (std::size_t i = 0; i < p.size(); ++i) (t[i] > 0.5 ? yes : no) += w[i];
  for (int n = 0; n < thresholds; ++n) {
    const double threshold = n == 0 ? -1e-7 : n == thresholds - 1 ? 1 + 1e-7 : n / (thresholds - 1.0);
    tp.push_back(0), fp.push_back(0);
    for (std::size_t i = 0; i < p.size(); ++i) {
      if (p[i] > threshold) (t[i] > 0.5 ? tp : fp).back() += w[i];
    }
  }
  double sum = 0;
  for (std::size_t n = 0; n + 1 < tp.size(); ++n) {
    const double dtp = tp[n] - tp[n + 1], now = tp[n] + fp[n], next = tp[n + 1] + fp[n + 1];
    if (curve == AucCurve::roc) {
      sum += (fp[n] - fp[n + 1]) / no * (tp[n] + tp[n + 1]) / yes / 2;
    } else if (now > next) {
      const double slope = dtp / (now - next), intercept = tp[n + 1] - slope * next;
      sum += slope * (dtp + (next > 0 ? intercept * std::log(now / next) : 0)) / yes;
    }
  }
  return sum;
}

}  // namespace

TEST_CASE("a confusion matrix counts each pair of target and prediction") {
  const auto backend = backend_under_test({});
  const DType dtype = GENERATE(DType::float32, DType::bfloat16);
  const Value x = random_value({samples, values}, dtype, 1), w = weights();
  const Value labels = random_integers({samples}, DType::int32, 2, values);
  ConfusionMatrix rule;
  REQUIRE(rule.adapt({LossTargets::class_numbers, LossLink::softmax, true, values}).empty());
  Row expected(values * values);
  for (std::size_t r = 0; r < samples; ++r) {
    const auto row = x.values.begin() + static_cast<std::ptrdiff_t>(r) * values;
    const auto predicted = static_cast<std::size_t>(std::max_element(row, row + values) - row);
    expected[static_cast<std::size_t>(labels.values[r]) * values + predicted] += w.values[r];
  }
  const Value once = run_op(*backend, std::make_shared<Metric>(rule, false), {x, labels, w})[0];
  CHECK(largest_error(once, expected) < 1e-6);
  for (double& sum : expected) sum *= 2;
  const auto again = run_op(*backend, std::make_shared<Metric>(rule, true), {x, labels, w}, {once});
  CHECK(largest_error(again[0], expected) < 1e-6);

  ConfusionMatrix of_answers;
  REQUIRE(of_answers.adapt({LossTargets::labels, LossLink::sigmoid, true, 1}).empty());
  const Value logits = random_value({samples, 1}, dtype, 3),
              answers = random_integers({samples, 1}, DType::int32, 4, 2);
  Value targets = answers;
  targets.type.dtype = DType::float32;
  Row table(4);
  for (std::size_t r = 0; r < samples; ++r) {
    table[(targets.values[r] > 0.5 ? 2u : 0u) + (logits.values[r] > 0 ? 1u : 0u)] += w.values[r];
  }
  CHECK(largest_error(run_op(*backend, std::make_shared<Metric>(of_answers, false), {logits, targets, w})[0], table) <
        1e-6);
  CHECK_FALSE(ConfusionMatrix().adapt({LossTargets::values, LossLink::identity, false, 3}).empty());
  CHECK_FALSE(ConfusionMatrix().adapt({LossTargets::class_numbers, LossLink::softmax, true, 101}).empty());
}

TEST_CASE("metrics that are means follow their definitions") {
  const auto backend = backend_under_test({});
  const DType dtype = GENERATE(DType::float32, DType::bfloat16);
  Value x = random_value({samples, values}, dtype, 1), w = weights();
  x.values[5] = x.values[7] = 3;  // of equal values, the first one counts as the largest
  const Value labels = random_integers({samples}, DType::int32, 2, values);
  const Value rows = random_value({samples, values}, DType::float32, 3, 0, 1);
  const auto sum = [&](const std::function<double(const Row&, std::size_t)>& of) {
    double total = 0;
    for (std::size_t i = 0; i < samples; ++i) total += w.values[i] * of(row_of(x, i), i);
    return total;
  };
  const auto largest = [](const Row& row) { return std::max_element(row.begin(), row.end()) - row.begin(); };
  const auto check = [&](const MetricRule& rule, const Value& targets, double expected) {
    CAPTURE(name_of(rule), name_of(dtype));
    const auto got = run_op(*backend, std::make_shared<Metric>(rule, true), {x, targets, w}, {scalar(2)});
    CHECK(got[0].values[0] == Approx(2 + expected).epsilon(1e-5));
  };
  check(Accuracy{}, labels, sum([&](const Row& row, std::size_t i) {
          return largest(row) == static_cast<std::ptrdiff_t>(labels.values[i]) ? 1.0 : 0.0;
        }));
  check(Accuracy{}, rows,
        sum([&](const Row& row, std::size_t i) { return largest(row) == largest(row_of(rows, i)) ? 1.0 : 0.0; }));
  const auto in_top = [](const Row& row, std::size_t label, int k) {
    return std::count_if(row.begin(), row.end(), [&](double v) { return v > row[label]; }) < k ? 1.0 : 0.0;
  };
  check(TopKCategoricalAccuracy{{}, 3}, labels,
        sum([&](const Row& row, std::size_t i) { return in_top(row, static_cast<std::size_t>(labels.values[i]), 3); }));
  check(TopKCategoricalAccuracy{{}, 3}, rows, sum([&](const Row& row, std::size_t i) {
          return in_top(row, static_cast<std::size_t>(largest(row_of(rows, i))), 3);
        }));
  check(Accuracy{{}, true}, rows, sum([&](const Row& row, std::size_t i) {
          const Row target = row_of(rows, i);
          double right = 0;
          for (std::size_t k = 0; k < row.size(); ++k) right += (row[k] > 0) == (target[k] > 0.5) ? 1 : 0;
          return right / values;
        }));
  check(MeanAbsoluteError{}, rows, sum([&](const Row& row, std::size_t i) {
          const Row target = row_of(rows, i);
          double error = 0;
          for (std::size_t k = 0; k < row.size(); ++k) error += std::abs(row[k] - target[k]);
          return error / values;
        }));
  check(MeanAbsolutePercentageError{}, rows, sum([&](const Row& row, std::size_t i) {
          const Row target = row_of(rows, i);
          double error = 0;
          for (std::size_t k = 0; k < row.size(); ++k) error += std::abs(row[k] - target[k]) / target[k];
          return 100 * error / values;
        }));
  const auto squares = sum([&](const Row& row, std::size_t i) {
    const Row target = row_of(rows, i);
    double error = 0;
    for (std::size_t k = 0; k < row.size(); ++k) error += std::pow(row[k] - target[k], 2);
    return error / values;
  });
  check(MeanSquaredErrorMetric{}, rows, squares);
  check(RootMeanSquaredError{}, rows, squares);
  check(CosineSimilarity{}, rows, sum([&](const Row& row, std::size_t i) {
          const Row target = row_of(rows, i);
          double product = 0, length = 0, wanted = 0;
          for (std::size_t k = 0; k < row.size(); ++k) {
            product += row[k] * target[k];
            length += row[k] * row[k];
            wanted += target[k] * target[k];
          }
          return product / std::sqrt(length * wanted);
        }));
}

TEST_CASE("metrics compute sums for each output") {
  const auto backend = backend_under_test({});
  const DType dtype = GENERATE(DType::float32, DType::bfloat16);
  const std::int64_t outputs = GENERATE(1, 5, 16, 300), n = GENERATE(1, 5, 400), positions = 3;
  const bool masked = GENERATE(false, true), add = n == 5;
  CAPTURE(name_of(dtype), outputs, n, masked);
  Value x = random_value({n, positions, outputs}, dtype, 1);
  const Value numbers = random_value({n, positions, outputs}, DType::float32, 2, 0, 2);
  const Value answers = random_integers({n, positions, outputs}, DType::float32, 3, 2);
  const Value classes = random_integers({n, positions}, DType::int32, 4, outputs);
  Value one_hot = answers;
  Value w = random_value(masked ? Shape{n, positions} : Shape{n}, DType::float32, 5, 0.5, 2);
  if (n > 1) w.values[1] = 0;
  const auto k = static_cast<std::size_t>(outputs);
  Row of_answers(4 * k), of_classes(4 * k), of_numbers(4 * k);
  for (std::size_t i = 0; i < static_cast<std::size_t>(n * positions); ++i) {
    const double weight = w.values[masked ? i : i / 3];
    const Row row = row_of(x, i);
    const auto best = std::max_element(row.begin(), row.end()) - row.begin();
    for (std::size_t e = 0; e < k; ++e) {
      const auto sum_index = [&](bool yes, bool wanted) { return (yes ? (wanted ? 0 : 1) : wanted ? 2 : 3) * k + e; };
      const bool label = static_cast<double>(e) == classes.values[i];
      const double t = numbers.values[i * k + e], answer = answers.values[i * k + e];
      one_hot.values[i * k + e] = label ? 1 : 0;
      of_answers[sum_index(row[e] > 0, answer > 0.5)] += weight;
      of_classes[sum_index(static_cast<std::ptrdiff_t>(e) == best, label)] += weight;
      of_numbers[e] += weight;
      of_numbers[k + e] += weight * t;
      of_numbers[2 * k + e] += weight * t * t;
      of_numbers[3 * k + e] += weight * (row[e] - t) * (row[e] - t);
    }
    if (weight == 0) x.values[i * k] = std::numeric_limits<double>::quiet_NaN();
  }
  const auto check = [&](auto rule, LossTargets kind, const Value& targets, Row expected) {
    REQUIRE(rule.adapt({kind, LossLink::identity, false, outputs}).empty());
    const std::vector<Value> before = add ? std::vector{row(Row(expected.size(), 2))} : std::vector<Value>{};
    for (double& v : expected) v += add ? 2 : 0;
    const auto got = run_op(*backend, std::make_shared<Metric>(rule, add), {x, targets, w}, before);
    CHECK(largest_error(got[0], expected) < 1e-5);
  };
  check(F1Score{}, LossTargets::labels, answers, of_answers);
  check(MeanIou{}, LossTargets::class_numbers, classes, of_classes);
  check(PrecisionScore{}, LossTargets::distributions, one_hot, of_classes);
  R2Score r2;
  REQUIRE(r2.adapt({LossTargets::values, LossLink::identity, false, outputs}).empty());
  const std::size_t sums = of_numbers.size();
  const std::vector<Value> before =
      add ? std::vector{row(Row(static_cast<std::size_t>(sum_parts) * sums, 2))} : std::vector<Value>{};
  const auto parts = run_op(*backend, std::make_shared<Metric>(r2, add), {x, numbers, w}, before)[0].values;
  for (std::size_t i = 0; i < sums; ++i) {
    double whole = 0;
    for (std::size_t part = 0; part < sum_parts; ++part) whole += parts[part * sums + i];
    CHECK(whole == Approx(of_numbers[i] + (add ? 2 * sum_parts : 0)).epsilon(add ? 1e-6 : 1e-12));
  }
}

TEST_CASE("the coefficient of determination is precise if targets are far from 0, for any number of ranks") {
  const auto backend = backend_under_test({});
  const double middle = GENERATE(1e3, 1e6, -3e4, 1e7, -6e7);
  constexpr int n = 600;
  Value x{{{n, 1}, DType::float32}, {}}, t = x, w{{{n}, DType::float32}, {}};
  double weights = 0, mean = 0, around = 0, residual = 0;
  for (int i = 0; i < n; ++i) {
    t.values.push_back(round_to(DType::float32, middle + 9 * std::sin(1.7 * i)));
    x.values.push_back(round_to(DType::float32, t.values.back() + 4.5 * std::cos(0.3 * i)));
    w.values.push_back(i % 7 == 0 ? 0 : 0.5 + 0.1 * (i % 5));
    w.values.back() = round_to(DType::float32, w.values.back());
    weights += w.values.back();
    mean += w.values.back() * t.values.back();
  }
  mean /= weights;
  for (std::size_t i = 0; i < n; ++i) {
    around += w.values[i] * (t.values[i] - mean) * (t.values[i] - mean);
    residual += w.values[i] * (x.values[i] - t.values[i]) * (x.values[i] - t.values[i]);
  }
  R2Score rule;
  for (const int ranks : {1, 2, 6, 100}) {
    Row sums(static_cast<std::size_t>(rule.sums()));
    for (int rank = 0; rank < ranks; ++rank) {
      const auto part = [&](const Value& whole) {
        Value own = whole;
        own.type.shape[0] = n / ranks;
        const auto first = whole.values.begin() + rank * (n / ranks);
        own.values.assign(first, first + n / ranks);
        return own;
      };
      const auto own = run_op(*backend, std::make_shared<Metric>(rule, false), {part(x), part(t), part(w)})[0].values;
      for (std::size_t i = 0; i < own.size(); ++i) sums[i] = round_to(DType::float32, sums[i] + own[i]);
    }
    CAPTURE(middle, ranks);
    CHECK(rule.value(sums, 0) == Approx(1 - residual / around).margin(1e-6));
    CHECK(rule.zero_division(sums).empty());
  }
}

TEST_CASE("the coefficient of determination is 0 if all targets are equal, however large they are") {
  const auto backend = backend_under_test({});
  constexpr std::int64_t n = 70;
  const double target = round_to(DType::float32, GENERATE(0.1, 1e7 + 3, -7.7e8));
  const Value x = random_value({n, 1}, DType::float32, 1), w = random_value({n}, DType::float32, 2, 0.1, 2);
  const Value t{{{n, 1}, DType::float32}, Row(n, target)};
  const Row sums = run_op(*backend, std::make_shared<Metric>(R2Score{}, false), {x, t, w})[0].values;
  CAPTURE(target);
  CHECK(R2Score{}.value(sums, 0) == 0);
  CHECK(R2Score{}.zero_division(sums) == "counts as 0, since the targets of all samples are equal");
}

TEST_CASE("scores that would divide by 0 tell why they are 0") {
  PrecisionScore precision;
  Recall recall;
  F1Score f1;
  precision.yes_or_no = recall.yes_or_no = f1.yes_or_no = true;
  const Row never_predicted{0, 0, 5, 7}, never_wanted{0, 4, 0, 2}, neither{0, 0, 0, 9}, both{3, 1, 2, 4};
  CHECK(precision.value(never_predicted, 12) == 0);
  CHECK(precision.zero_division(never_predicted) == "counts as 0, since no sample is predicted as positive");
  CHECK(recall.zero_division(never_predicted).empty());
  CHECK(f1.zero_division(never_predicted).empty());
  CHECK(recall.zero_division(never_wanted) == "counts as 0, since no sample has a positive target");
  CHECK(precision.zero_division(never_wanted).empty());
  CHECK(f1.zero_division(neither) == "counts as 0, since no sample is predicted as positive or has a positive target");
  for (const auto& found : {precision.zero_division(both), recall.zero_division(both), f1.zero_division(both)}) {
    CHECK(found.empty());
  }
  // Of three classes, the second one is never predicted, and the third one neither predicted nor a target.
  precision.yes_or_no = recall.yes_or_no = false;
  precision.outputs = recall.outputs = 3;
  const Row classes{3, 0, 0, /**/ 2, 0, 0, /**/ 0, 2, 0, /**/ 0, 3, 5};
  CHECK(precision.zero_division(classes) == "counts 1 of 3 classes as 0, since no sample is predicted as one of them");
  CHECK(recall.zero_division(classes).empty());
  precision.average = MetricAverage::micro;
  CHECK(precision.zero_division(classes).empty());
}

TEST_CASE("scores have the values that are computed by hand from the outcomes") {
  // True positives, false positives, false negatives and true negatives of three classes; the last class never occurs.
  const Row sums{3, 1, 0, /**/ 1, 1, 0, /**/ 1, 1, 0, /**/ 1, 3, 6};
  const auto value = [&](auto rule, MetricAverage average) {
    rule.average = average;
    rule.outputs = 3;
    return rule.value(sums, 6);
  };
  const MetricAverage macro = MetricAverage::macro, micro = MetricAverage::micro, weighted = MetricAverage::weighted;
  CHECK(value(PrecisionScore{}, macro) == Approx((3.0 / 4 + 1.0 / 2) / 2));
  CHECK(value(Recall{}, micro) == Approx(4.0 / 6));
  CHECK(value(Recall{}, weighted) == Approx((4 * 3.0 / 4 + 2 * 1.0 / 2) / 6));
  CHECK(value(Specificity{}, macro) == Approx((1.0 / 2 + 3.0 / 4) / 2));
  CHECK(value(F1Score{}, MetricAverage::automatic) == Approx((6.0 / 8 + 2.0 / 4) / 2));
  MeanIou iou;
  iou.outputs = 3;
  CHECK(iou.value(sums, 6) == Approx((3.0 / 5 + 1.0 / 3) / 2));
  iou.yes_or_no = true;
  CHECK(iou.value(sums, 6) == Approx((4.0 / 8 + 10.0 / 14) / 2));
  CHECK(value(F1Score{}, macro) == value(F1Score{}, MetricAverage::automatic));
  CHECK(Recall{}.value(Row{0, 0, 0, 2}, 2) == 0);
  R2Score r2;
  const auto padded = [&](Row first_parts) {
    first_parts.resize(static_cast<std::size_t>(r2.sums()));
    return first_parts;
  };
  CHECK(r2.value(padded({3, 6, 13, 1, /**/ 0, 0, 0.75, 0, /**/ 0, 0, 0.25, 0}), 3) == Approx(0.5));
  CHECK(r2.value(padded({3, 6, 12, 1}), 3) == 0);  // all targets are equal
  // Specificity is undefined if all answers are yes, and a precision-recall curve if all answers are no.
  Specificity specificity;
  specificity.yes_or_no = true;
  CHECK(std::isnan(specificity.value(Row{3, 0, 1, 0}, 4)));
  CHECK(specificity.value(Row{3, 0, 1, 2}, 6) == 1);
  Specificity of_classes;  // macro: all samples are of the first class, whose specificity is undefined
  of_classes.outputs = 2;
  CHECK(of_classes.value(Row{3, 0, /**/ 0, 1, /**/ 1, 0, /**/ 0, 3}, 4) == Approx(3.0 / 4));
  const Auc auc{.num_thresholds = 3, .curve = AucCurve::pr};
  CHECK(auc.value(Row{0, 2, 0, 0, 0, 0}, 2) == 1);  // equals scikit-learn's average_precision_score
  CHECK(std::isnan(auc.value(Row{0, 0, 0, 2, 1, 0}, 3)));
}

TEST_CASE("metrics sum over the positions of samples, with weights per sample or per position") {
  const auto backend = backend_under_test({});
  const bool masked = GENERATE(false, true);
  constexpr std::int64_t n = 5, positions = 7;
  const Value x = random_value({n, positions, values}, DType::float32, 1);
  const Value labels = random_integers({n, positions}, DType::int32, 2, 3);
  Value w = random_value(masked ? Shape{n, positions} : Shape{n}, DType::float32, 3, 0.5, 2);
  w.values[1] = 0;
  double right = 0;
  Row answers(4);
  for (std::size_t i = 0; i < n * positions; ++i) {
    const Row row = row_of(x, i);
    const double weight = w.values[masked ? i : i / positions];
    const auto largest = std::max_element(row.begin(), row.end()) - row.begin();
    if (largest == static_cast<std::ptrdiff_t>(labels.values[i])) right += weight;
    for (double v : row) answers[v > 0 ? 1 : 0] += weight;  // with two thresholds, all predictions are in the first bin
  }
  CAPTURE(masked);
  CHECK(right > 0);
  const auto accuracy = run_op(*backend, std::make_shared<Metric>(Accuracy{}, false), {x, labels, w});
  CHECK(accuracy[0].values[0] == Approx(right));
  Value signs = x;
  for (double& v : signs.values) v = v > 0 ? 1 : 0;
  const auto auc = run_op(*backend, std::make_shared<Metric>(Auc{2}, false), {x, signs, w});
  CHECK(largest_error(auc[0], {answers[1], 0, answers[0], 0}) < 1e-5);
}

TEST_CASE("auc is the same as in Keras, for probabilities and logits, over several batches") {
  const auto backend = backend_under_test({});
  const DType dtype = GENERATE(DType::float32, DType::bfloat16);
  const bool of_logits = GENERATE(false, true);
  const AucCurve curve = GENERATE(AucCurve::roc, AucCurve::pr);
  const int thresholds = GENERATE(2, 7, 200);
  const Auc rule{thresholds, curve, of_logits};
  CAPTURE(name_of(dtype), of_logits, name_of(curve), thresholds);
  Value sums;
  Row p, t, w;
  double count = 0;
  for (const std::uint64_t batch : {1, 2, 3}) {
    Value x = random_value({samples, values}, dtype, batch, of_logits ? -6 : 0, of_logits ? 6 : 1);
    Value targets = random_integers({samples, values}, DType::float32, batch + 10, 2);
    const Value weight = weights();
    if (!of_logits) x.values[0] = 0, x.values[1] = 1;
    for (std::size_t i = 0; i < x.values.size(); ++i) {
      // These answers correlate with the predictions.
      if (i % 3 != 0) targets.values[i] = x.values[i] > (of_logits ? 0 : 0.5) ? 1 : 0;
      p.push_back(of_logits ? 1 / (1 + std::exp(-x.values[i])) : x.values[i]);
      t.push_back(targets.values[i]);
      w.push_back(weight.values[i / values]);
    }
    for (double v : weight.values) count += v;
    x.values[3 * values] = std::numeric_limits<double>::quiet_NaN();  // in the skipped sample
    const std::vector<Value> before = sums.values.empty() ? std::vector<Value>{} : std::vector{sums};
    sums = run_op(*backend, std::make_shared<Metric>(rule, !before.empty()), {x, targets, weight}, before)[0];
  }
  REQUIRE(sums.values.size() == static_cast<std::size_t>(2 * thresholds));
  const double expected = area(p, t, w, thresholds, curve);
  CHECK(value_of(rule, sums.values, count) == Approx(expected).epsilon(1e-5));
  if (thresholds == 200) CHECK((expected > 0.6 && expected < 0.95));
}

TEST_CASE("auc is NaN if one of the answers never occurs, as in scikit-learn") {
  const Auc roc{3, AucCurve::roc, false};
  CHECK(std::isnan(roc.value(std::vector<double>{1, 2, 0, 0, 0, 0}, 3)));
  CHECK(std::isnan(roc.value(std::vector<double>{0, 0, 0, 1, 2, 0}, 3)));
  CHECK(roc.value(std::vector<double>{0, 2, 0, 2, 0, 0}, 4) == 1);
}

TEST_CASE("the bytes of tokens are added up with the weights of samples or positions") {
  const auto backend = backend_under_test({.threads = 2});
  const ByteCounts table = std::make_shared<const std::vector<float>>(std::vector<float>{4, 1, 0, 2, 7});
  constexpr std::int64_t n = 5, positions = 9;
  Value tokens = random_integers({n, positions}, DType::int32, 1, 7);  // 5 and 6 are not in the table
  tokens.values[3] = -100;
  for (const bool by_position : {false, true}) {
    const Value w = random_integers(by_position ? Shape{n, positions} : Shape{n}, DType::float32, 2, 3);
    for (const bool add : {false, true}) {
      double expected = add ? 11 : 0;
      for (std::size_t i = 0; i < tokens.values.size(); ++i) {
        const double token = tokens.values[i], weight = w.values[by_position ? i : i / positions];
        if (token >= 0 && token < 5) expected += weight * (*table)[static_cast<std::size_t>(token)];
      }
      CHECK(run_op(*backend, std::make_shared<TokenBytes>(table, add), {tokens, w}, {scalar(11)})[0].values[0] ==
            expected);
    }
  }
}

}  // namespace trainctl::test::metrics_test
