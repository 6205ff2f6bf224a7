// Compares the product with its cross-entropy with their definition in float64.
#include "core/graph/ops/losses/linear_cross_entropy.h"

#include <algorithm>
#include <cmath>

#include "core/graph/ops/losses/losses.h"
#include "core/graph/ops/metrics/metrics.h"
#include "test/catch.h"
#include "test/core/backend/run_op.h"

namespace trainctl::test::linear_cross_entropy_test {
namespace {

struct Head {
  Shape rows;  // [N, P]
  std::int64_t in = 0, classes = 0;
  bool transposed = false, bias = false, weighted_positions = false;
  DType dtype = DType::float32;
  float smoothing = 0, z_loss = 0;
  bool accumulate = false;

  std::int64_t count() const { return rows.count(); }
  std::size_t at(std::int64_t i, std::int64_t k) const {
    return static_cast<std::size_t>(transposed ? k * in + i : i * classes + k);
  }
  LinearCrossEntropy def(bool training) const {
    LinearCrossEntropy op;
    op.rule.label_smoothing = smoothing;
    op.rule.z_loss = z_loss;
    op.transposed = transposed;
    op.has_bias = bias;
    op.scale = 0.5f;
    op.training = training;
    op.accumulate = accumulate;
    return op;
  }
};

struct Operands {
  Value x, kernel, bias, targets, weights;

  explicit Operands(const Head& head)
      : x(random_value(head.rows.with_appended(head.in), head.dtype, 1, -1, 1)),
        kernel(random_value(head.transposed ? Shape{head.classes, head.in} : Shape{head.in, head.classes},
                            DType::float32, 2, -2, 2)),
        bias(random_value({head.classes}, DType::float32, 3)),
        targets(random_integers(head.rows, DType::int32, 4, head.classes)),
        weights(random_value(head.weighted_positions ? head.rows : Shape{head.rows[0]}, DType::float32, 5, 0.5, 2)) {
    for (double& w : kernel.values) w = round_to(head.dtype, w);
    for (std::size_t i = 1; i < weights.values.size(); i += 4) weights.values[i] = 0;
  }
  double weight(std::size_t row) const { return weights.values[row * weights.values.size() / targets.values.size()]; }
  std::vector<Value> inputs(const Head& head, bool training) const {
    std::vector<Value> list{x, kernel};
    if (head.bias) list.push_back(bias);
    list.push_back(targets);
    if (training) list.push_back(weights);
    return list;
  }
};

// Sums and gradients by the definition.
struct Expected {
  double loss = 0, right = 0;
  std::vector<double> dx, dkernel, dbias;

  Expected(const Head& head, const Operands& of)
      : dx(of.x.values.size()), dkernel(of.kernel.values.size()), dbias(static_cast<std::size_t>(head.classes)) {
    for (std::int64_t r = 0; r < head.count(); ++r) add_row(head, of, static_cast<std::size_t>(r));
  }

 private:
  void add_row(const Head& head, const Operands& of, std::size_t row) {
    const auto in = static_cast<std::size_t>(head.in);
    const double weight = of.weight(row);
    if (weight == 0) return;
    std::vector<double> logits = head.bias ? of.bias.values : std::vector<double>(dbias.size());
    for (std::int64_t i = 0; i < head.in; ++i) {
      const double value = of.x.values[row * in + static_cast<std::size_t>(i)];
      for (std::int64_t k = 0; k < head.classes; ++k) {
        logits[static_cast<std::size_t>(k)] += value * of.kernel.values[head.at(i, k)];
      }
    }
    const auto label = static_cast<std::size_t>(of.targets.values[row]);
    double total = 0, sum = 0;
    for (double v : logits) total += std::exp(v), sum += v;
    const double log_sum = std::log(total), even = head.smoothing / static_cast<double>(head.classes);
    loss += weight * (log_sum - (1 - head.smoothing) * logits[label] - even * sum + head.z_loss * log_sum * log_sum);
    right += weight * (std::ranges::max_element(logits) == logits.begin() + static_cast<std::ptrdiff_t>(label));
    for (std::int64_t k = 0; k < head.classes; ++k) {
      const auto c = static_cast<std::size_t>(k);
      const double t = (c == label ? 1 - head.smoothing : 0) + even;
      const double g = 0.5 * weight * (std::exp(logits[c] - log_sum) * (1 + 2 * head.z_loss * log_sum) - t);
      dbias[c] += g;
      for (std::int64_t i = 0; i < head.in; ++i) {
        dx[row * in + static_cast<std::size_t>(i)] += g * of.kernel.values[head.at(i, k)];
        dkernel[head.at(i, k)] += g * of.x.values[row * in + static_cast<std::size_t>(i)];
      }
    }
  }
};

// Checks the op and, from its class sums, loss and accuracy.
void check(const Head& head) {
  const auto backend = backend_under_test({.threads = 2});
  const Operands of(head);
  const Expected expected(head, of);
  const double tolerance = head.dtype == DType::float32 ? 2e-5 : 2e-2;
  CAPTURE(head.classes, head.transposed, head.bias, name_of(head.dtype), head.smoothing, head.z_loss, head.accumulate);
  for (const bool training : {true, false}) {
    const Value kernel_before = random_value(of.kernel.type.shape, DType::float32, 7), bias_before = of.bias;
    std::vector<Value> before;
    if (training && head.accumulate) {
      before = {{{head.rows.with_appended(class_sums), DType::float32},
                 std::vector<double>(static_cast<std::size_t>(head.count() * class_sums))},
                of.x,
                kernel_before};
      if (head.bias) before.push_back(bias_before);
    }
    const auto got =
        run_op(*backend, std::make_shared<LinearCrossEntropy>(head.def(training)), of.inputs(head, training), before);
    REQUIRE(got.size() == (training ? (head.bias ? 4U : 3U) : 1U));
    const auto loss =
        std::make_shared<Loss>(head.def(false).rule, false, false, 1.0f, true, ColumnRange{0, head.classes}, true);
    const auto sums = run_op(*backend, loss, {got[0], of.targets, of.weights});
    CHECK(sums[0].values[0] == Approx(expected.loss).epsilon(head.dtype == DType::float32 ? 1e-5 : 1e-2));
    const auto right =
        run_op(*backend, std::make_shared<Metric>(Accuracy{}, false, true), {got[0], of.targets, of.weights});
    if (head.dtype == DType::float32) CHECK(right[0].values[0] == Approx(expected.right));
    if (!training) continue;
    const auto with = [&](std::vector<double> values, const Value& more) {
      for (std::size_t i = 0; i < values.size() && head.accumulate; ++i) values[i] += more.values[i];
      return values;
    };
    CHECK(largest_error(got[1], expected.dx) < tolerance);
    CHECK(largest_error(got[2], with(expected.dkernel, kernel_before)) < tolerance);
    if (head.bias) CHECK(largest_error(got[3], with(expected.dbias, bias_before)) < tolerance);
  }
}

}  // namespace

TEST_CASE("a product with its cross-entropy has the loss and the gradients of the definition") {
  for (const DType dtype : {DType::float32, DType::bfloat16}) {
    for (const bool transposed : {false, true}) {
      for (const bool bias : {false, true}) {
        check({.rows = {5, 7},
               .in = 16,
               .classes = 37,
               .transposed = transposed,
               .bias = bias,
               .weighted_positions = bias,
               .dtype = dtype});
      }
    }
    check({.rows = {4, 6},
           .in = 8,
           .classes = 40,
           .transposed = true,
           .dtype = dtype,
           .smoothing = 0.1f,
           .z_loss = 0.02f,
           .accumulate = true});
  }
}

TEST_CASE("several chunks of rows have the sums of all rows") {
  // 1100 rows of 33,000 logits are three chunks, the last of which is smaller; 520 rows are two.
  constexpr std::int64_t classes = 33000;
  REQUIRE(chunk_rows(1100, classes, DType::float32) == 368);
  check({.rows = {2, 550}, .in = 4, .classes = classes, .transposed = true, .weighted_positions = true});
  REQUIRE(chunk_rows(520, classes, DType::float32) == 272);
  check({.rows = {2, 260}, .in = 4, .classes = classes, .bias = true, .accumulate = true});
}

TEST_CASE("rows of weight 0 may have any values, and change neither the loss nor a gradient") {
  const auto backend = backend_under_test({});
  const Head head{.rows = {3, 4}, .in = 8, .classes = 24, .bias = true, .weighted_positions = true};
  const auto def = std::make_shared<LinearCrossEntropy>(head.def(true));
  const auto loss_of = [&](const Value& sums, const Operands& of) {
    const auto loss = std::make_shared<Loss>(def->rule, false, false, 1.0f, true, ColumnRange{0, head.classes}, true);
    return run_op(*backend, loss, {sums, of.targets, of.weights})[0].values[0];
  };
  Operands of(head);
  REQUIRE(of.weights.values[1] == 0);
  of.targets.values[1] = -100;
  const Expected expected(head, of);
  // A kernel's gradient multiplies the row by 0, so that the row must be finite there.
  for (const double value : {1e4, std::numeric_limits<double>::quiet_NaN()}) {
    CAPTURE(value);
    std::fill_n(of.x.values.begin() + head.in, head.in, value);
    const auto got = run_op(*backend, def, of.inputs(head, true));
    CHECK(loss_of(got[0], of) == Approx(expected.loss).epsilon(1e-5));
    CHECK(largest_error(got[1], expected.dx) < 2e-5);
    if (std::isfinite(value)) CHECK(largest_error(got[2], expected.dkernel) < 2e-5);
    CHECK(largest_error(got[3], expected.dbias) < 2e-5);
  }
  of.weights.values[1] = 1;
  const auto got = run_op(*backend, def, of.inputs(head, true));
  CHECK(std::isnan(loss_of(got[0], of)));
  CHECK(std::isnan(got[1].values[8]));
}

TEST_CASE("a label that is no class makes the loss NaN") {
  const auto backend = backend_under_test({});
  const Head head{.rows = {3, 4}, .in = 8, .classes = 24, .weighted_positions = true};
  Operands of(head);
  of.weights.values[1] = 1;
  of.targets.values[1] = -100;
  const auto def = std::make_shared<LinearCrossEntropy>(head.def(true));
  const auto got = run_op(*backend, def, of.inputs(head, true));
  const auto loss = std::make_shared<Loss>(def->rule, false, false, 1.0f, true, ColumnRange{0, head.classes}, true);
  CHECK(std::isnan(run_op(*backend, loss, {got[0], of.targets, of.weights})[0].values[0]));
  CHECK(std::isnan(got[1].values[8]));
}

TEST_CASE("the bias is added before the logits are rounded") {
  // The products are about 256, where neighbouring numbers in bfloat16 differ by 2, and the bias is -256.
  const auto backend = backend_under_test({});
  const Head head{.rows = {3, 4}, .in = 8, .classes = 24, .bias = true, .dtype = DType::bfloat16};
  Operands of(head);
  for (std::size_t row = 0; row < 12; ++row) of.x.values[row * 8] = 1;
  for (std::int64_t k = 0; k < head.classes; ++k) {
    of.kernel.values[head.at(0, k)] = 256;
    of.bias.values[static_cast<std::size_t>(k)] = -256;
  }
  const Expected expected(head, of);
  const auto def = std::make_shared<LinearCrossEntropy>(head.def(true));
  const auto got = run_op(*backend, def, of.inputs(head, true));
  const auto loss = std::make_shared<Loss>(def->rule, false, false, 1.0f, true, ColumnRange{0, head.classes}, true);
  CHECK(run_op(*backend, loss, {got[0], of.targets, of.weights})[0].values[0] == Approx(expected.loss).epsilon(1e-2));
  CHECK(largest_error(got[3], expected.dbias) < 2e-2);
}

}  // namespace trainctl::test::linear_cross_entropy_test
