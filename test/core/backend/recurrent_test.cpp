// Compares the steps of recurrent layers with the cells' definitions in float64, at sizes that fill tiles and blocks of
// samples and at sizes that do not, and checks that the bits do not depend on the number of threads or samples.
#include "core/graph/ops/recurrent.h"

#include <cmath>

#include "test/catch.h"
#include "test/core/backend/run_op.h"

namespace trainctl::test::recurrent_test {
namespace {

struct Sizes {
  std::int64_t samples, steps, units;
};

std::int64_t gates_of(RecurrentCell cell) {
  return cell == RecurrentCell::lstm ? 4 : cell == RecurrentCell::gru ? 3 : 1;
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

// Returns y [N, T, U] by the definition; `mask` [N, T] may be null, with the steps in the order in which they are
// computed.
std::vector<double> by_definition(RecurrentCell cell, const Sizes& s, const Value& x, const Value& kernel,
                                  const Value* bias, bool backwards, const Value* mask = nullptr) {
  const bool lstm = cell == RecurrentCell::lstm, simple = cell == RecurrentCell::simple;
  const std::int64_t units = s.units, columns = x.type.shape[2];
  std::vector<double> y(at(s.samples * s.steps * units));
  for (std::int64_t n = 0; n < s.samples; ++n) {
    std::vector<double> h(at(units)), c(at(units));
    for (std::int64_t t = 0; t < s.steps; ++t) {
      const std::int64_t position = n * s.steps + (backwards ? s.steps - 1 - t : t);
      const double* row = &x.values[at(position * columns)];
      if (mask != nullptr && mask->values[at(position)] == 0) {
        std::copy(h.begin(), h.end(), &y[at((n * s.steps + t) * units)]);
        continue;
      }
      std::vector<double> product(at(columns));
      for (std::int64_t k = 0; k < columns; ++k) {
        if (bias != nullptr) product[at(k)] = bias->values[at(k)];
        for (std::int64_t u = 0; u < units; ++u) product[at(k)] += h[at(u)] * kernel.values[at(u * columns + k)];
      }
      for (std::int64_t u = 0; u < units; ++u) {
        const auto both = [&](std::int64_t gate) { return row[gate * units + u] + product[at(gate * units + u)]; };
        if (simple) {
          h[at(u)] = std::tanh(both(0));
        } else if (lstm) {
          c[at(u)] = sigmoid(both(1)) * c[at(u)] + sigmoid(both(0)) * std::tanh(both(2));
          h[at(u)] = sigmoid(both(3)) * std::tanh(c[at(u)]);
        } else {
          const double candidate = std::tanh(row[2 * units + u] + sigmoid(both(1)) * product[at(2 * units + u)]);
          h[at(u)] = sigmoid(both(0)) * h[at(u)] + (1 - sigmoid(both(0))) * candidate;
        }
        y[at((n * s.steps + t) * units + u)] = h[at(u)];
      }
    }
  }
  return y;
}

// Returns one sample of a value whose first dimension is the samples.
Value sample_of(const Value& value, std::int64_t sample) {
  Value one = value;
  one.type.shape[0] = 1;
  const std::int64_t count = one.type.shape.count();
  one.values.assign(value.values.begin() + sample * count, value.values.begin() + (sample + 1) * count);
  return one;
}

}  // namespace

TEST_CASE("steps of recurrent layers follow the cells' definitions") {
  const auto backend = backend_under_test({.threads = 2});
  const DType dtype = GENERATE(DType::float32, DType::bfloat16);
  const RecurrentCell cell = GENERATE(RecurrentCell::lstm, RecurrentCell::gru, RecurrentCell::simple);
  const bool backwards = GENERATE(false, true);
  const Sizes s = GENERATE(Sizes{101, 5, 33}, Sizes{7, 12, 64}, Sizes{1, 3, 1}, Sizes{2, 1, 130});
  const std::int64_t columns = gates_of(cell) * s.units;
  const double scale = 1 / std::sqrt(static_cast<double>(s.units));
  const Value x = random_value({s.samples, s.steps, columns}, dtype, 1, -2, 2);
  const Value kernel = random_value({s.units, columns}, DType::float32, 2, -scale, scale);
  const Value bias = random_value({columns}, DType::float32, 3);
  const bool biased = cell == RecurrentCell::gru;
  std::vector<Value> inputs{x, kernel};
  if (biased) inputs.push_back(bias);
  CAPTURE(name_of(dtype), static_cast<int>(cell), backwards, s.samples, s.steps, s.units);
  const std::vector<double> expected = by_definition(cell, s, x, kernel, biased ? &bias : nullptr, backwards);
  std::vector<double> last, turned;
  for (std::int64_t n = 0; n < s.samples; ++n) {
    const auto end = expected.begin() + (n + 1) * s.steps * s.units;
    last.insert(last.end(), end - s.units, end);
    for (std::int64_t t = 0; t < s.steps; ++t) {
      turned.insert(turned.end(), end - (t + 1) * s.units, end - t * s.units);
    }
  }
  const double tolerance = dtype == DType::float32 ? 4e-6 : 0.02;
  for (const bool training : {false, true}) {
    for (const OutputPlaces places : {OutputPlaces::apart, OutputPlaces::in_place}) {
      const auto all = std::make_shared<Recurrent>(RecurrentAttributes{cell, true, backwards}, training);
      const auto one = std::make_shared<Recurrent>(RecurrentAttributes{cell, false, backwards}, training);
      const auto other = std::make_shared<Recurrent>(RecurrentAttributes{cell, true, backwards, true}, training);
      CHECK(largest_error(run_op(*backend, all, inputs, {}, nullptr, nullptr, places)[0], expected) < tolerance);
      CHECK(largest_error(run_op(*backend, other, inputs, {}, nullptr, nullptr, places)[0], turned) < tolerance);
      CHECK(largest_error(run_op(*backend, one, inputs, {}, nullptr, nullptr, places)[0], last) < tolerance);
    }
  }
}

TEST_CASE("steps that a mask leaves out change no state, and their gradients are those of the step before") {
  const auto backend = backend_under_test({.threads = 2});
  const RecurrentCell cell = GENERATE(RecurrentCell::lstm, RecurrentCell::gru, RecurrentCell::simple);
  const bool backwards = GENERATE(false, true), sequences = GENERATE(false, true);
  const Sizes s{53, 6, 20};
  const std::int64_t columns = gates_of(cell) * s.units;
  Value x = random_value({s.samples, s.steps, columns}, DType::float32, 1, -2, 2);
  const Value kernel = random_value({s.units, columns}, DType::float32, 2, -0.3, 0.3);
  const Value bias = random_value({columns}, DType::float32, 3);
  const Value mask = random_integers({s.samples, s.steps}, DType::uint8, 4, 2);
  const bool biased = cell == RecurrentCell::gru;
  std::vector<Value> inputs{x, kernel};
  if (biased) inputs.push_back(bias);
  inputs.push_back(mask);
  CAPTURE(static_cast<int>(cell), backwards, sequences);
  const RecurrentAttributes a{cell, sequences, backwards, false, true};
  const auto expected = [&](const Value& values) {
    std::vector<double> all = by_definition(cell, s, values, kernel, biased ? &bias : nullptr, backwards, &mask), last;
    for (std::int64_t n = 0; n < s.samples && !sequences; ++n) {
      const auto end = all.begin() + (n + 1) * s.steps * s.units;
      last.insert(last.end(), end - s.units, end);
    }
    return sequences ? all : last;
  };
  const auto outputs = run_op(*backend, std::make_shared<Recurrent>(a, true), inputs);
  CHECK(largest_error(outputs[0], expected(x)) < 4e-6);
  CHECK(largest_error(run_op(*backend, std::make_shared<Recurrent>(a, false), inputs)[0], expected(x)) < 4e-6);
  const Value dy = random_value(outputs[0].type.shape, DType::float32, 5);
  const auto gradients =
      run_op(*backend, std::make_shared<RecurrentGrad>(a), {dy, outputs[1], outputs[2], outputs[3], kernel, mask});
  const auto loss = [&](const Value& values) {
    const std::vector<double> y = expected(values);
    double sum = 0;
    for (std::size_t i = 0; i < y.size(); ++i) sum += y[i] * dy.values[i];
    return sum;
  };
  for (std::int64_t i = 0; i < 40; ++i) {
    const std::size_t element = at(i * 7919 % x.type.shape.count());
    const double before = x.values[element], step = 1e-5;
    x.values[element] = before + step;
    const double above = loss(x);
    x.values[element] = before - step;
    const double slope = (above - loss(x)) / (2 * step);
    x.values[element] = before;
    CHECK(gradients[0].values[element] == Approx(slope).margin(2e-5));
  }
}

TEST_CASE("a sample's steps and gradients have the same bits alone and among others, on any number of threads") {
  const auto one = backend_under_test({.threads = 1}), two = backend_under_test({.threads = 2});
  const RecurrentCell cell = GENERATE(RecurrentCell::lstm, RecurrentCell::gru, RecurrentCell::simple);
  const bool sequences = GENERATE(false, true);
  const Sizes s{103, 6, 40};
  const std::int64_t columns = gates_of(cell) * s.units;
  const Value x = random_value({s.samples, s.steps, columns}, DType::float32, 1, -2, 2);
  const Value kernel = random_value({s.units, columns}, DType::float32, 2, -0.2, 0.2);
  const auto forward = std::make_shared<Recurrent>(RecurrentAttributes{cell, sequences}, true);
  const auto backward = std::make_shared<RecurrentGrad>(RecurrentAttributes{cell, sequences});
  KernelChoices choices;  // both backends use the products that the first one has measured
  const auto saved = run_op(*one, forward, {x, kernel}, {}, &choices);
  const auto again = run_op(*two, forward, {x, kernel}, {}, &choices);
  for (std::size_t i = 0; i < saved.size(); ++i) CHECK(saved[i].values == again[i].values);
  const Value dy = random_value(saved[0].type.shape, DType::float32, 3);
  const std::vector<Value> inputs{dy, saved[1], saved[2], saved[3], kernel};
  const auto gradients = run_op(*one, backward, inputs, {}, &choices);
  for (const OutputPlaces places : {OutputPlaces::apart, OutputPlaces::in_place}) {
    const auto same = run_op(*two, backward, inputs, {}, &choices, nullptr, places);
    for (std::size_t i = 0; i < same.size(); ++i) CHECK(gradients[i].values == same[i].values);
  }
  if (backend_under_test()->name() != "cpu") return;  // the bits of a library's products depend on the number of rows
  for (const std::int64_t n : {0, 50, 102}) {
    const auto alone = run_op(*one, forward, {sample_of(x, n), kernel});
    for (std::size_t i = 0; i < alone.size(); ++i) CHECK(alone[i].values == sample_of(saved[i], n).values);
    const auto back = run_op(*one, backward, {sample_of(dy, n), alone[1], alone[2], alone[3], kernel});
    for (std::size_t i = 0; i < back.size(); ++i) CHECK(back[i].values == sample_of(gradients[i], n).values);
  }
}

}  // namespace trainctl::test::recurrent_test
