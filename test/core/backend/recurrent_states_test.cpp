// Compares recurrent layers that begin with given states, return their last states or drop units with the cells'
// definitions in float64, and their gradients with finite differences of these.
#include <cmath>

#include "core/base/random.h"
#include "core/graph/ops/recurrent.h"
#include "test/catch.h"
#include "test/core/backend/run_op.h"

namespace trainctl::test::recurrent_states_test {
namespace {

constexpr std::int64_t samples = 51, steps = 4, units = 9;
constexpr std::uint64_t seed = 77;
constexpr std::uint32_t layer = 3, round = 12;
constexpr float rate = 0.375f;

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

struct Operands {
  RecurrentAttributes a;
  Value x, kernel, bias, h, c, numbers, step, mask;

  explicit Operands(const RecurrentAttributes& attributes) : a(attributes) {
    const std::int64_t columns = units * (a.cell == RecurrentCell::lstm ? 4 : a.cell == RecurrentCell::gru ? 3 : 1);
    x = random_value({samples, steps, columns}, DType::float32, 1, -2, 2);
    kernel = random_value({units, columns}, DType::float32, 2, -0.5, 0.5);
    bias = random_value({columns}, DType::float32, 3);
    h = random_value({samples, units}, DType::float32, 4);
    c = random_value({samples, units}, DType::float32, 5);
    numbers = random_integers({samples}, DType::int64, 6, 100000);
    step = scalar(round, DType::int64);
    mask = random_integers({samples, steps}, DType::uint8, 7, 2);
  }

  bool lstm() const { return a.cell == RecurrentCell::lstm; }
  std::vector<Value> inputs() const {
    std::vector<Value> all{x, kernel};
    if (a.cell == RecurrentCell::gru) all.push_back(bias);
    if (a.begins) all.push_back(h);
    if (a.begins && lstm()) all.push_back(c);
    append_last(all);
    return all;
  }
  // Appends the inputs that Recurrent and its gradient have at the end.
  void append_last(std::vector<Value>& all) const {
    if (a.drops()) all.insert(all.end(), {numbers, step});
    if (a.masked) all.push_back(mask);
  }
  double factor(std::int64_t sample, std::int64_t unit) const {
    if (!a.drops()) return 1;
    const RandomKey key{seed, Purpose::dropout, round, layer};
    const auto number = static_cast<std::uint64_t>(numbers.values[at(sample)]);
    const std::uint32_t word = key.block(number, static_cast<std::uint32_t>(unit / 4))[at(unit % 4)];
    return uniform01(word) < rate ? 0 : 1 / (1 - static_cast<double>(rate));
  }
};

struct Results {
  std::vector<double> y, c;  // as Recurrent returns them
};

// Computes a step of a sample: updates h and c.
void take_step(const Operands& o, std::int64_t sample, const double* x, std::vector<double>& h,
               std::vector<double>& c) {
  const std::int64_t columns = o.kernel.type.shape[1];
  std::vector<double> product(at(columns));
  for (std::int64_t k = 0; k < columns; ++k) {
    if (o.a.cell == RecurrentCell::gru) product[at(k)] = o.bias.values[at(k)];
    for (std::int64_t u = 0; u < units; ++u) {
      product[at(k)] += h[at(u)] * o.factor(sample, u) * o.kernel.values[at(u * columns + k)];
    }
  }
  for (std::int64_t u = 0; u < units; ++u) {
    const auto both = [&](std::int64_t gate) { return x[gate * units + u] + product[at(gate * units + u)]; };
    if (o.a.cell == RecurrentCell::simple) {
      h[at(u)] = std::tanh(both(0));
    } else if (o.lstm()) {
      c[at(u)] = sigmoid(both(1)) * c[at(u)] + sigmoid(both(0)) * std::tanh(both(2));
      h[at(u)] = sigmoid(both(3)) * std::tanh(c[at(u)]);
    } else {
      const double candidate = std::tanh(x[2 * units + u] + sigmoid(both(1)) * product[at(2 * units + u)]);
      h[at(u)] = sigmoid(both(0)) * h[at(u)] + (1 - sigmoid(both(0))) * candidate;
    }
  }
}

Results by_definition(const Operands& o) {
  Results results;
  const std::int64_t columns = o.kernel.type.shape[1];
  for (std::int64_t n = 0; n < samples; ++n) {
    std::vector<double> h(at(units)), c(at(units));
    for (std::int64_t u = 0; u < units && o.a.begins; ++u) {
      h[at(u)] = o.h.values[at(n * units + u)];
      c[at(u)] = o.c.values[at(n * units + u)];
    }
    for (std::int64_t t = 0; t < steps; ++t) {
      const std::int64_t position = n * steps + (o.a.backwards ? steps - 1 - t : t);
      const bool left_out = o.a.masked && o.mask.values[at(position)] == 0;
      if (!left_out) take_step(o, n, &o.x.values[at(position * columns)], h, c);
      if (o.a.sequences || t + 1 == steps) results.y.insert(results.y.end(), h.begin(), h.end());
    }
    results.c.insert(results.c.end(), c.begin(), c.end());
  }
  return results;
}

// Checks a gradient against finite differences of the loss with respect to 40 elements of `values`.
template <class Loss>
void check_gradient(const Value& gradient, Value& values, const Loss& loss) {
  for (std::int64_t i = 0; i < 40; ++i) {
    double& element = values.values[at(i * 7919 % values.type.shape.count())];
    const double before = element, change = 1e-5;
    element = before + change;
    const double above = loss();
    element = before - change;
    const double slope = (above - loss()) / (2 * change);
    element = before;
    CHECK(gradient.values[at(&element - values.values.data())] == Approx(slope).margin(3e-5));
  }
}

// Checks the outputs and the gradients of the loss sum(y * dy) + sum(c * dc), without the first sum unless `has_dy`.
void check(const RecurrentAttributes& a, bool has_dy) {
  const auto backend = backend_under_test({.threads = 2});
  Operands o(a);
  const Results expected = by_definition(o);
  for (const bool training : {false, true}) {
    const auto outputs = run_op(*backend, std::make_shared<Recurrent>(a, training), o.inputs());
    CHECK(largest_error(outputs[0], expected.y) < 4e-6);
    if (a.returns_c) CHECK(largest_error(outputs.back(), expected.c) < 4e-6);
  }
  const auto outputs = run_op(*backend, std::make_shared<Recurrent>(a, true), o.inputs());
  const Value dy = random_value(outputs[0].type.shape, DType::float32, 8),
              dc = random_value({samples, units}, DType::float32, 9);
  std::vector<Value> operands;
  if (has_dy) operands.push_back(dy);
  operands.insert(operands.end(), {outputs[1], outputs[2], outputs[3], o.kernel});
  if (a.begins && o.lstm()) operands.push_back(o.c);
  if (a.returns_c) operands.push_back(dc);
  o.append_last(operands);
  const auto gradients = run_op(*backend, std::make_shared<RecurrentGrad>(a, has_dy), operands);
  const auto loss = [&] {
    const Results results = by_definition(o);
    double sum = 0;
    for (std::size_t i = 0; i < results.y.size() && has_dy; ++i) sum += results.y[i] * dy.values[i];
    for (std::size_t i = 0; i < results.c.size() && a.returns_c; ++i) sum += results.c[i] * dc.values[i];
    return sum;
  };
  check_gradient(gradients[0], o.x, loss);
  const std::size_t first = a.cell == RecurrentCell::gru ? 2 : 1;
  if (a.begins) check_gradient(gradients[first], o.h, loss);
  if (a.begins && o.lstm()) check_gradient(gradients[first + 1], o.c, loss);
}

}  // namespace

TEST_CASE("recurrent layers begin with given states, return the last ones and drop units, with their gradients") {
  const RecurrentCell cell = GENERATE(RecurrentCell::lstm, RecurrentCell::gru, RecurrentCell::simple);
  const bool masked = GENERATE(false, true), drops = GENERATE(false, true), sequences = GENERATE(false, true);
  CAPTURE(name_of(cell), masked, drops, sequences);
  RecurrentAttributes a{.cell = cell, .sequences = sequences, .backwards = masked, .masked = masked, .begins = true};
  a.returns_c = cell == RecurrentCell::lstm;
  if (drops) a.dropout = {rate, seed, layer};
  check(a, true);
}

TEST_CASE("the states of recurrent layers are inputs and outputs independently of each other") {
  const bool masked = GENERATE(false, true);
  check({.cell = RecurrentCell::lstm, .masked = masked, .returns_c = true}, true);
  check({.cell = RecurrentCell::lstm, .masked = masked, .begins = true}, true);
  check({.cell = RecurrentCell::gru, .masked = masked, .dropout = {rate, seed, layer}}, true);
  check({.cell = RecurrentCell::lstm, .sequences = false, .masked = masked, .begins = true, .returns_c = true}, false);
}

}  // namespace trainctl::test::recurrent_states_test
