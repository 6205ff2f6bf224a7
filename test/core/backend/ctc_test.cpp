// Compares the CTC loss with the sum over all paths and with a recursion on probabilities, in float64, and greedy
// decoding with its definition.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/graph/ops/losses/losses.h"
#include "core/graph/ops/metrics/metrics.h"
#include "test/catch.h"
#include "test/core/backend/run_op.h"

namespace trainctl::test::ctc_test {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
using Sequence = std::vector<int>;

struct Batch {
  std::int64_t samples, steps, classes, longest;
  int blank = 0;
  bool masked = false;
  DType dtype = DType::float32;
  Value x, targets, weights, mask;

  // Targets have random lengths, with repeated classes; all of them fit.
  void draw(std::uint64_t seed) {
    x = random_value({samples, steps, classes}, dtype, seed, -3, 3);
    weights = random_value({samples}, DType::float32, seed + 1, 0.5, 2);
    targets = random_integers({samples, longest}, DType::int32, seed + 2, classes - 1);
    mask = random_integers({samples, steps}, DType::uint8, seed + 3, 4);
    for (double& present : mask.values) present = !masked || present > 0 ? 1 : 0;
    for (std::int64_t n = 0; n < samples; ++n) {
      for (std::int64_t i = 0; i < longest; ++i) {
        double& label = targets.values[static_cast<std::size_t>(n * longest + i)];
        label = label >= blank ? label + 1 : label;
        if (i % 3 == 1) label = (&label)[-1];  // a repeated class
      }
      for (std::int64_t i = longest;
           i > 0 && (i > (7 * n + 2) * (longest + 5) / 8 % (longest + 1) || needed(n) > std::ssize(steps_of(n))); --i) {
        targets.values[static_cast<std::size_t>(n * longest + i - 1)] = blank;
      }
    }
  }
  Sequence target_of(std::int64_t n) const {
    Sequence target;
    for (std::int64_t i = 0; i < longest; ++i) {
      const int label = static_cast<int>(targets.values[static_cast<std::size_t>(n * longest + i)]);
      if (label != blank) target.push_back(label);
    }
    return target;
  }
  // The numbers of the steps that exist.
  Sequence steps_of(std::int64_t n) const {
    Sequence found;
    for (std::int64_t t = 0; t < steps; ++t) {
      if (mask.values[static_cast<std::size_t>(n * steps + t)] != 0) found.push_back(static_cast<int>(t));
    }
    return found;
  }
  std::int64_t needed(std::int64_t n) const {
    const Sequence target = target_of(n);
    std::int64_t steps_needed = std::ssize(target);
    for (std::size_t i = 1; i < target.size(); ++i) steps_needed += target[i] == target[i - 1] ? 1 : 0;
    return steps_needed;
  }
  // The probabilities of the classes in each step that exists.
  std::vector<std::vector<double>> probabilities(std::int64_t n) const {
    std::vector<std::vector<double>> rows;
    for (const int t : steps_of(n)) {
      const auto first = x.values.begin() + (n * steps + t) * classes;
      std::vector<double> row(first, first + classes);
      double total = 0;
      for (double& value : row) total += value = std::exp(value);
      for (double& value : row) value /= total;
      rows.push_back(std::move(row));
    }
    return rows;
  }
  std::vector<Value> inputs() const {
    return masked ? std::vector{x, targets, weights, mask} : std::vector{x, targets, weights};
  }
};

Sequence collapsed(const Sequence& path, int blank) {
  Sequence spelled;
  for (std::size_t t = 0; t < path.size(); ++t) {
    if (path[t] != blank && (t == 0 || path[t] != path[t - 1])) spelled.push_back(path[t]);
  }
  return spelled;
}

// The loss as the sum over all paths that spell the target.
double loss_of_all_paths(const Batch& batch, std::int64_t n) {
  const auto rows = batch.probabilities(n);
  const Sequence target = batch.target_of(n);
  Sequence path(rows.size());
  double total = 0;
  while (true) {
    if (collapsed(path, batch.blank) == target) {
      double product = 1;
      for (std::size_t t = 0; t < rows.size(); ++t) product *= rows[t][static_cast<std::size_t>(path[t])];
      total += product;
    }
    std::size_t t = 0;
    while (t < path.size() && ++path[t] == batch.classes) path[t++] = 0;
    if (t == path.size()) return -std::log(total);
  }
}

// The loss by a recursion on probabilities: of the prefixes of the target that are spelled, ending in a blank or not.
double loss_by_recursion(const Batch& batch, std::int64_t n) {
  const Sequence target = batch.target_of(n);
  const std::size_t length = target.size();
  std::vector<double> blank(length + 1), label(length + 1);
  blank[0] = 1;
  for (const auto& row : batch.probabilities(n)) {
    std::vector<double> next_blank(length + 1), next_label(length + 1);
    for (std::size_t i = 0; i <= length; ++i) {
      next_blank[i] = (blank[i] + label[i]) * row[static_cast<std::size_t>(batch.blank)];
      if (i == 0) continue;
      const double new_class = i > 1 && target[i - 1] == target[i - 2] ? blank[i - 1] : blank[i - 1] + label[i - 1];
      next_label[i] = (label[i] + new_class) * row[static_cast<std::size_t>(target[i - 1])];
    }
    blank = std::move(next_blank);
    label = std::move(next_label);
  }
  return -std::log(blank[length] + label[length]);
}

double total_by_recursion(const Batch& batch) {
  double total = 0;
  for (std::int64_t n = 0; n < batch.samples; ++n) {
    const double weight = batch.weights.values[static_cast<std::size_t>(n)];
    if (weight != 0) total += weight * loss_by_recursion(batch, n);
  }
  return total;
}

std::shared_ptr<Loss> loss_op(const Batch& batch, bool training, bool accumulate = false, float scale = 1) {
  auto def = std::make_shared<Loss>(Ctc{.mask_index = batch.blank}, training, accumulate, scale);
  def->masked = batch.masked;
  return def;
}

int levenshtein(const Sequence& a, const Sequence& b) {
  std::vector<std::vector<int>> table(a.size() + 1, std::vector<int>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        table[i][j] = static_cast<int>(i + j);
      } else {
        table[i][j] =
            std::min({table[i - 1][j] + 1, table[i][j - 1] + 1, table[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      }
    }
  }
  return table[a.size()][b.size()];
}

}  // namespace

TEST_CASE("the CTC loss is the sum over all paths") {
  const auto backend = backend_under_test({.threads = 2});
  const int blank = GENERATE(0, 2);
  const bool masked = GENERATE(false, true);
  CAPTURE(blank, masked);
  Batch batch{9, 6, 4, 3, blank, masked, DType::float32, {}, {}, {}, {}};
  batch.draw(11 + blank);
  for (std::int64_t n = 0; n < batch.samples; ++n) {
    CAPTURE(n, batch.target_of(n), batch.steps_of(n));
    const double expected = loss_of_all_paths(batch, n);
    CHECK(loss_by_recursion(batch, n) == Approx(expected).epsilon(1e-12));
    Batch one = batch;
    for (std::int64_t other = 0; other < batch.samples; ++other) {
      one.weights.values[static_cast<std::size_t>(other)] = other == n ? 1 : 0;
    }
    CHECK(run_op(*backend, loss_op(one, false), one.inputs())[0].values[0] ==
          Approx(expected).epsilon(2e-6).margin(2e-6));
  }
}

TEST_CASE("the gradient of the CTC loss equals finite differences of a recursion") {
  const auto backend = backend_under_test({.threads = 2});
  const DType dtype = GENERATE(DType::float32, DType::bfloat16, DType::float16);
  if (!backend->computes_in(dtype)) return;
  const bool masked = GENERATE(false, true);
  const std::int64_t classes = GENERATE(7, 300);
  const std::int64_t longest = classes == 7 ? 150 : 12;  // more states than a block has threads, and fewer
  CAPTURE(name_of(dtype), masked, classes);
  Batch batch{5, classes == 7 ? 200 : 40, classes, longest, 1, masked, dtype, {}, {}, {}, {}};
  batch.draw(31);
  batch.targets.values[static_cast<std::size_t>(3 * longest)] = 5;  // another first class
  batch.weights.values[2] = 0;
  for (std::int64_t i = 0; i < batch.steps * classes; ++i) {  // a sample of weight 0 may hold any values
    batch.x.values[static_cast<std::size_t>(2 * batch.steps * classes + i)] = std::numeric_limits<double>::quiet_NaN();
  }
  const double before = 3, total = total_by_recursion(batch);
  const std::vector<Value> sums{scalar(before), scalar(before)};
  const auto def = loss_op(batch, true, true, 0.5f);
  const auto got = run_op(*backend, def, batch.inputs(), {sums[0], sums[1], batch.x});
  CHECK(got[0].values[0] == Approx(before + total).epsilon(2e-6));
  double weight = before;
  for (const double of_sample : batch.weights.values) weight += of_sample;
  CHECK(got[1].values[0] == Approx(weight).epsilon(1e-6));
  const auto in_place =
      run_op(*backend, def, batch.inputs(), {sums[0], sums[1], batch.x}, nullptr, nullptr, OutputPlaces::in_place);
  CHECK(in_place[2].values == got[2].values);
  CHECK(run_op(*backend, loss_op(batch, false), batch.inputs())[0].values[0] == Approx(total).epsilon(2e-6));

  const double tolerance = dtype == DType::float32 ? 2e-6 : dtype == DType::float16 ? 1e-3 : 8e-3;
  for (std::size_t i = 0; i < batch.x.values.size(); i += 31) {
    const auto n = static_cast<std::int64_t>(i) / (batch.steps * classes);
    if (n == 2) {
      CHECK(got[2].values[i] == 0);
      continue;
    }
    const auto moved = [&](double step) {
      Batch other = batch;
      other.x.values[i] += step;
      return loss_by_recursion(other, n);
    };
    const double slope = (moved(1e-4) - moved(-1e-4)) / 2e-4 * 0.5 * batch.weights.values[static_cast<std::size_t>(n)];
    CHECK(got[2].values[i] == Approx(slope).epsilon(tolerance).margin(tolerance));
  }
}

TEST_CASE("targets that cannot be spelled") {
  const auto backend = backend_under_test();
  Batch batch{2, 3, 4, 3, 0, false, DType::float32, {}, {}, {}, {}};
  batch.draw(5);
  batch.weights.values = {1, 1};
  batch.targets.values = {2, 2, 3, 1, 2, 1};  // the first one needs four steps
  const auto run = [&](Ctc rule) {
    return run_op(*backend, std::make_shared<Loss>(rule, true, false), batch.inputs());
  };
  const auto infinite = run({});
  CHECK(infinite[0].values[0] == infinity);
  CHECK(std::isnan(infinite[2].values[0]));
  CHECK(std::isfinite(infinite[2].values[12]));
  const auto zero = run({.zero_infinity = true});
  CHECK(zero[0].values[0] == Approx(loss_by_recursion(batch, 1)).epsilon(1e-6));
  CHECK(zero[1].values[0] == 2);
  CHECK(zero[2].values[0] == 0);
  CHECK(zero[2].values[12] == infinite[2].values[12]);
  Batch diverged = batch;
  diverged.x.values[13] = std::numeric_limits<double>::quiet_NaN();
  for (const bool zero_infinity : {false, true}) {
    const auto got =
        run_op(*backend, std::make_shared<Loss>(Ctc{.zero_infinity = zero_infinity}, true, false), diverged.inputs());
    CHECK(std::isnan(got[0].values[0]));
    CHECK(std::isnan(got[2].values[13]));
  }
  batch.targets.values = {4, 0, 0, 1, 2, 1};  // not a class
  CHECK(std::isnan(run({.zero_infinity = true})[0].values[0]));
}

TEST_CASE("a sample without steps spells the empty sequence") {
  const auto backend = backend_under_test();
  Batch batch{2, 3, 4, 2, 0, true, DType::float32, {}, {}, {}, {}};
  batch.draw(6);
  batch.mask.values = {0, 0, 0, 1, 1, 1};
  batch.weights.values = {1, 0};
  batch.targets.values = {0, 0, 0, 0};
  const auto got = run_op(*backend, loss_op(batch, true), batch.inputs());
  CHECK(got[0].values[0] == 0);
  CHECK(got[2].values[0] == 0);
  batch.targets.values = {1, 0, 0, 0};
  CHECK(run_op(*backend, loss_op(batch, true), batch.inputs())[0].values[0] == infinity);
}

TEST_CASE("metrics of sequences decode greedily") {
  const auto backend = backend_under_test({.threads = 2});
  const bool masked = GENERATE(false, true);
  const std::int64_t classes = GENERATE(3, 150);
  CAPTURE(masked, classes);
  Batch batch{11, 70, classes, 20, 1, masked, DType::float32, {}, {}, {}, {}};
  batch.draw(17);
  batch.weights.values[4] = 0;
  double distance = 7, equal = 0, weight = 0;
  for (std::int64_t n = 0; n < batch.samples; ++n) {
    Sequence path;
    for (const auto& row : batch.probabilities(n)) {
      path.push_back(static_cast<int>(std::max_element(row.begin(), row.end()) - row.begin()));
    }
    const Sequence decoded = collapsed(path, batch.blank);
    if (n % 2 == 0 && decoded.size() <= static_cast<std::size_t>(batch.longest)) {  // a right one
      for (std::int64_t i = 0; i < batch.longest; ++i) {
        const bool exists = i < std::ssize(decoded);
        batch.targets.values[static_cast<std::size_t>(n * batch.longest + i)] =
            exists ? decoded[static_cast<std::size_t>(i)] : batch.blank;
      }
    }
    const Sequence target = batch.target_of(n);
    const double own = batch.weights.values[static_cast<std::size_t>(n)];
    distance += own * levenshtein(decoded, target) / std::max<double>(1, static_cast<double>(target.size()));
    equal += own * (decoded == target);
    weight += own;
  }
  const auto run = [&](const auto& rule, bool accumulate, double before) {
    auto def = std::make_shared<Metric>(rule, accumulate);
    def->masked = masked;
    return run_op(*backend, def, batch.inputs(), {scalar(before)})[0].values[0];
  };
  EditDistance edit_distance;
  SequenceAccuracy accuracy;
  CHECK(edit_distance.adapt({.mask_index = 1}).empty());
  CHECK(accuracy.adapt({.mask_index = 1}).empty());
  CHECK(run(edit_distance, true, 7) == Approx(distance).epsilon(1e-6));
  CHECK(run(accuracy, false, 7) == Approx(equal).epsilon(1e-6));
  const double sums[] = {distance - 7};
  CHECK(value_of(edit_distance, sums, weight) == Approx((distance - 7) / weight));
}

}  // namespace trainctl::test::ctc_test
