// Compares optimizers, gradient norm, agreement and running statistics with their definitions in float64.
#include "core/graph/ops/training/update.h"
#include <cmath>
#include "core/graph/ops/normalization/statistics.h"
#include "core/graph/ops/optimizers/optimizers.h"
#include "core/graph/ops/training/count.h"
#include "core/graph/ops/training/moving_average.h"
#include "core/graph/ops/training/restore.h"
#include "core/tensor/sample_numbers.h"
#include "test/catch.h"
#include "test/core/backend/run_op.h"

namespace trainctl::test::update_test {
namespace {

// A flat region of two ranges with a frozen gap between them.
constexpr std::int64_t elements = 40000;
const std::vector<UpdateRange> ranges{{0, 33001, true}, {35000, 5000, false}};

struct Setting {
  double rate = 0.05, count = 64, norm = 2, not_finite = 0, step = 3;
};

std::vector<Value> inputs_of(const Value& gradient, const Setting& s) {
  const Value flags = row({s.not_finite, 1});
  return {gradient, scalar(s.rate), scalar(s.step, DType::int64), scalar(s.count), flags, scalar(s.norm)};
}

// Calls visit(element, g, decays) with g as the optimizers define it, without weight decay.
template <class Visit>
void each_element(const Value& gradient, const Setting& s, double clip, const Visit& visit) {
  for (const UpdateRange& range : ranges) {
    for (std::int64_t i = range.offset; i < range.offset + range.count; ++i) {
      const auto at = static_cast<std::size_t>(i);
      visit(at, gradient.values[at] / s.count * (clip > 0 ? std::min(1.0, clip / s.norm) : 1.0), range.decay);
    }
  }
}

const double decay = 0.02f, epsilon = 1e-7f;

}  // namespace

TEST_CASE("sgd follows its definition, with momentum, nesterov, decay and clipping") {
  const auto backend = backend_under_test({.threads = GENERATE(1, 2)});
  const float momentum = GENERATE(0.0f, 0.9f);
  const bool nesterov = GENERATE(false, true);
  const float clip = GENERATE(0.0f, 0.5f);
  OptimizerUpdate def(Sgd{.momentum = momentum, .nesterov = nesterov});
  def.ranges = ranges;
  def.clip_norm = clip;
  def.weight_decay = static_cast<float>(decay);
  const Value gradient = random_value({elements}, DType::float32, 1, -50, 50),
              weight = random_value({elements}, DType::float32, 2);
  const Value velocity = random_value({elements}, DType::float32, 3);
  const Setting s;
  Value new_weight = weight, new_velocity = velocity;
  each_element(gradient, s, static_cast<double>(clip), [&](std::size_t i, double g, bool decays) {
    if (decays) g += decay * weight.values[i];
    const double m = static_cast<double>(momentum), v = m * velocity.values[i] + g;
    new_velocity.values[i] = v;
    new_weight.values[i] -= s.rate * (momentum == 0 ? g : nesterov ? g + m * v : v);
  });
  const auto op = std::make_shared<OptimizerUpdate>(def);
  std::vector<Value> regions{weight};
  if (momentum > 0) regions.push_back(velocity);
  const auto got = run_op(*backend, op, inputs_of(gradient, s), regions);
  CHECK(largest_error(got[0], new_weight.values) < 1e-6);
  if (momentum > 0) CHECK(largest_error(got[1], new_velocity.values) < 1e-6);

  // These settings must not change anything.
  const double infinity = std::numeric_limits<double>::infinity();
  for (const Setting& gate : {Setting{.not_finite = 1}, Setting{.norm = infinity}}) {
    CHECK(run_op(*backend, op, inputs_of(gradient, gate), regions)[0].values == weight.values);
  }
}

TEST_CASE("a step without samples has a gradient of 0: moments decay, and weights shrink by weight decay") {
  const auto backend = backend_under_test({});
  OptimizerUpdate def{OptimizerRule(AdamW{})};
  def.ranges = {{0, 3, true}};
  def.weight_decay = 0.5f;
  const Value weight = row({1, -2, 3}), first = row({0.5, 0, -1}), second = row({0.25, 0.5, 1});
  Setting s;
  s.count = 0, s.step = 2;
  const auto got =
      run_op(*backend, std::make_shared<OptimizerUpdate>(def), inputs_of(row({0, 0, 0}), s), {weight, first, second});
  for (std::size_t i = 0; i < 3; ++i) {  // the third step as Kingma and Ba define it
    const double m = 0.9 * first.values[i], v = 0.999 * second.values[i];
    const double root = std::sqrt(v / (1 - std::pow(0.999, 3)));
    const double moved = weight.values[i] * (1 - s.rate * 0.5) - s.rate * m / (1 - std::pow(0.9, 3)) / (root + 1e-7);
    CHECK(got[0].values[i] == Approx(moved).epsilon(1e-5));
    CHECK(got[1].values[i] == Approx(m));
    CHECK(got[2].values[i] == Approx(v));
  }
}

TEST_CASE("samples that are not skipped are counted, or weights are added up") {
  const auto backend = backend_under_test({});
  const Value numbers{{{6}, DType::int64},
                      {0, 5, static_cast<double>(no_sample), 3, static_cast<double>(skipped_sample(4)), 1e6}};
  const Value weights{{{2, 3}, DType::float32}, {0.5, 0, 1.25, 2, 0, 1}};
  CHECK(run_op(*backend, std::make_shared<Count>(false), {numbers})[0].values[0] == 4);
  CHECK(run_op(*backend, std::make_shared<Count>(true), {numbers}, {scalar(10)})[0].values[0] == 14);
  CHECK(run_op(*backend, std::make_shared<Count>(false), {weights})[0].values[0] == 4.75);
}

TEST_CASE("adam and adamw follow their definitions") {
  const auto backend = backend_under_test({.threads = GENERATE(1, 2)});
  const bool decoupled = GENERATE(false, true);
  OptimizerUpdate def(decoupled ? OptimizerRule(AdamW{}) : OptimizerRule(Adam{}));
  def.ranges = ranges;
  def.weight_decay = static_cast<float>(decay);
  const Value gradient = random_value({elements}, DType::float32, 1, -50, 50),
              weight = random_value({elements}, DType::float32, 2);
  const Value first = random_value({elements}, DType::float32, 3),
              second = random_value({elements}, DType::float32, 4, 0, 1);
  const Setting s;
  Value new_weight = weight, new_first = first, new_second = second;
  const double beta_1 = static_cast<double>(AdamMoments{}.beta_1), beta_2 = static_cast<double>(AdamMoments{}.beta_2);
  each_element(gradient, s, 0, [&](std::size_t i, double g, bool decays) {
    const double w = weight.values[i];
    if (decays && !decoupled) g += decay * w;
    const double m = beta_1 * first.values[i] + (1 - beta_1) * g, v = beta_2 * second.values[i] + (1 - beta_2) * g * g;
    new_first.values[i] = m;
    new_second.values[i] = v;
    const double m_hat = m / (1 - std::pow(beta_1, s.step + 1)), v_hat = v / (1 - std::pow(beta_2, s.step + 1));
    new_weight.values[i] =
        w - s.rate * (decoupled && decays ? decay * w : 0) - s.rate * m_hat / (std::sqrt(v_hat) + epsilon);
  });
  const auto got =
      run_op(*backend, std::make_shared<OptimizerUpdate>(def), inputs_of(gradient, s), {weight, first, second});
  CHECK(largest_error(got[0], new_weight.values) < 2e-6);
  CHECK(largest_error(got[1], new_first.values) < 1e-6);
  CHECK(largest_error(got[2], new_second.values) < 1e-6);
}

TEST_CASE("lamb computes norms over each parameter, with the same bits for any number of threads") {
  const auto one = backend_under_test({.threads = 1}), two = backend_under_test({.threads = 2});
  OptimizerUpdate def(Lamb{});
  def.ranges = ranges;
  def.weight_decay = static_cast<float>(decay);
  const Value gradient = random_value({elements}, DType::float32, 1, -50, 50),
              weight = random_value({elements}, DType::float32, 2);
  const Value first = random_value({elements}, DType::float32, 3),
              second = random_value({elements}, DType::float32, 4, 0.5, 1);
  const Setting s;
  const double beta_1 = static_cast<double>(AdamMoments{}.beta_1), beta_2 = static_cast<double>(AdamMoments{}.beta_2);
  std::vector<double> direction(elements);
  double weights[2] = {}, directions[2] = {};  // sums of squares; index 1 is the range that decays
  each_element(gradient, s, 0, [&](std::size_t i, double g, bool decays) {
    const double w = weight.values[i];
    const double m = beta_1 * first.values[i] + (1 - beta_1) * g, v = beta_2 * second.values[i] + (1 - beta_2) * g * g;
    const double m_hat = m / (1 - std::pow(beta_1, s.step + 1)), v_hat = v / (1 - std::pow(beta_2, s.step + 1));
    direction[i] = m_hat / (std::sqrt(v_hat) + epsilon) + (decays ? decay * w : 0);
    weights[decays] += w * w;
    directions[decays] += direction[i] * direction[i];
  });
  Value new_weight = weight;
  each_element(gradient, s, 0, [&](std::size_t i, double, bool decays) {
    new_weight.values[i] -= s.rate * std::sqrt(weights[decays] / directions[decays]) * direction[i];
  });
  const auto op = std::make_shared<OptimizerUpdate>(def);
  const auto got = run_op(*one, op, inputs_of(gradient, s), {weight, first, second});
  CHECK(largest_error(got[0], new_weight.values) < 2e-6);
  for (std::size_t i = 33001; i < 35000; ++i) REQUIRE(got[0].values[i] == weight.values[i]);  // between the ranges
  CHECK(run_op(*two, op, inputs_of(gradient, s), {weight, first, second})[0].values == got[0].values);
  const Value zero = row(std::vector<double>(elements));
  CHECK(run_op(*one, op, inputs_of(gradient, s), {zero, first, second})[0].values != zero.values);
}

TEST_CASE("adafactor keeps means over rows and columns, with the same bits for any number of threads") {
  const auto one = backend_under_test({.threads = 1}), two = backend_under_test({.threads = 2});
  const bool relative = GENERATE(true, false);
  const float clip = GENERATE(0.0f, 0.5f);
  const Adafactor rule{.clip_threshold = 0.75f, .relative_step = relative};
  OptimizerUpdate def(rule);
  def.weight_decay = static_cast<float>(decay);
  def.clip_norm = clip;
  const std::vector<Shape> shapes{{2, 3, 50, 70}, {33}, {5, 3000}, {3000, 5}};
  std::int64_t count = 0, kept = 0;
  for (const Shape& shape : shapes) {
    def.ranges.push_back({count, shape.count(), shape.rank() != 1, Factors(shape)});
    def.ranges.back().factors.offset = kept;
    count += shape.count() + 2;
    kept += def.ranges.back().factors.count();
  }
  count -= 2;
  const Value gradient = random_value({count}, DType::float32, 1, -50, 50),
              weight = random_value({count}, DType::float32, 2),
              means = random_value({kept}, DType::float32, 3, 0.5, 1);
  const Setting s{.rate = relative ? 0.8 : 0.05};
  const double scale = (clip > 0 ? static_cast<double>(clip) / s.norm : 1.0) / s.count;
  const double beta = 1 - std::pow(s.step + 1, static_cast<double>(rule.beta_2_decay));
  Value new_weight = weight, new_means = means;
  for (std::size_t p = 0; p < shapes.size(); ++p) {
    const UpdateRange& range = def.ranges[p];
    const auto columns = static_cast<std::size_t>(shapes[p].back()), all = static_cast<std::size_t>(range.count);
    const std::size_t rows = shapes[p].rank() < 2 ? 1 : static_cast<std::size_t>(shapes[p][shapes[p].rank() - 2]);
    const double* g = gradient.values.data() + range.offset;
    const double* w = weight.values.data() + range.offset;
    double* state = new_means.values.data() + range.factors.offset;
    std::vector<double> direction(all), decayed(all);
    double direction_squares = 0, weight_squares = 0;
    for (std::size_t first = 0; first < all; first += rows * columns) {
      std::vector<double> of_rows(rows), of_columns(columns);
      double of_matrix = 0;
      for (std::size_t i = 0; i < rows * columns; ++i) {
        const double square = std::pow(g[first + i] * scale, 2) + static_cast<double>(rule.epsilon_1);
        of_rows[i / columns] += square / static_cast<double>(columns);
        of_columns[i % columns] += square / static_cast<double>(rows);
      }
      if (shapes[p].rank() > 1) {
        for (double& mean : of_rows) {
          mean = *state = beta * *state + (1 - beta) * mean;
          of_matrix += mean / static_cast<double>(rows);
          ++state;
        }
      }
      for (double& mean : of_columns) {
        mean = *state = beta * *state + (1 - beta) * mean;
        ++state;
      }
      for (std::size_t i = 0; i < rows * columns; ++i) {
        const double row_share = shapes[p].rank() > 1 ? of_rows[i / columns] / of_matrix : 1;
        direction[first + i] = g[first + i] * scale / std::sqrt(row_share * of_columns[i % columns]);
        decayed[first + i] = w[first + i] * (1 - (range.decay ? s.rate * decay : 0));
        direction_squares += std::pow(direction[first + i], 2);
        weight_squares += std::pow(decayed[first + i], 2);
      }
    }
    const double weight_rms = std::sqrt(weight_squares / static_cast<double>(all)),
                 direction_rms = std::sqrt(direction_squares / static_cast<double>(all)),
                 largest_rate = relative ? std::min(s.rate, 1 / std::sqrt(s.step + 1)) : s.rate;
    const double step = largest_rate * std::max(static_cast<double>(rule.epsilon_2), weight_rms) /
                        std::max(1.0, direction_rms / static_cast<double>(rule.clip_threshold));
    for (std::size_t i = 0; i < all; ++i) {
      new_weight.values[static_cast<std::size_t>(range.offset) + i] = decayed[i] - step * direction[i];
    }
  }
  const auto op = std::make_shared<OptimizerUpdate>(def);
  const auto got = run_op(*one, op, inputs_of(gradient, s), {weight, means});
  CHECK(largest_error(got[0], new_weight.values) < 2e-6);
  CHECK(largest_error(got[1], new_means.values) < 1e-6);
  const auto again = run_op(*two, op, inputs_of(gradient, s), {weight, means});
  CHECK(again[0].values == got[0].values);
  CHECK(again[1].values == got[1].values);
  CHECK(run_op(*one, op, inputs_of(gradient, {.not_finite = 1}), {weight, means})[0].values == weight.values);
}

TEST_CASE("the gradient norm is computed in float64 and does not depend on the number of threads") {
  const auto one = backend_under_test({.threads = 1});
  const Value gradient = random_value({100003}, DType::float32, 1, -1e25, 1e25);  // squares overflow float32
  double sum = 0;
  for (double v : gradient.values) sum += v * v;
  const auto op = std::make_shared<GradientNorm>(100003);
  const Value got = run_op(*one, op, {gradient, scalar(8)})[0];
  CHECK(got.values[0] == Approx(std::sqrt(sum) / 8).epsilon(1e-6));
  const auto two = backend_under_test({.threads = 2});
  CHECK(run_op(*two, op, {gradient, scalar(8)})[0].values == got.values);
}

TEST_CASE("the norm of a gradient in several ranges is the root of its sum of squares") {
  const auto one = backend_under_test({.threads = 1}), two = backend_under_test({.threads = 2});
  const Value first = random_value({100003}, DType::float32, 1, -5, 5), second = random_value({777}, DType::float32, 2);
  const auto op = std::make_shared<SumOfSquares>(std::vector<InputRange>{{0, 5, 90001}, {1, 0, 777}, {0, 95000, 2}},
                                                 std::vector<MeshAxis>{MeshAxis::pipeline});
  double sum = 0;
  for (const InputRange& range : op->ranges) {
    const Value& input = range.input == 0 ? first : second;
    for (std::int64_t i = 0; i < range.count; ++i) {
      const double value = input.values[static_cast<std::size_t>(range.offset + i)];
      sum += value * value;
    }
  }
  const Value got = run_op(*one, op, {first, second})[0];
  CHECK(got.values[0] == Approx(sum).epsilon(1e-6));
  CHECK(run_op(*two, op, {first, second})[0].values == got.values);
  const auto norm = std::make_shared<NormOfSquares>();
  CHECK(run_op(*one, norm, {got, scalar(8)})[0].values[0] == Approx(std::sqrt(sum) / 8).epsilon(1e-6));
  CHECK(run_op(*one, norm, {got, scalar(0)})[0].values[0] == 0);
}

TEST_CASE("the squares of chunks have the same bits however the gradient is split") {
  // Two parameters: the first has chunks 0 to 3, the second 4 to 10. Each begins at a multiple of a chunk if the layout
  // is split, and anywhere if it is not.
  constexpr std::int64_t counts[] = {3333, 7000}, first_chunks[] = {0, 4};
  constexpr std::int64_t chunks = 11;
  const auto backend = backend_under_test({.threads = 2});
  const Value values[] = {random_value({counts[0]}, DType::float32, 3, -5, 5),
                          random_value({counts[1]}, DType::float32, 5, -5, 5)};
  // Returns the squares of the chunks of elements [first, end) of the layout, with `each` elements per input.
  const auto squares = [&](std::int64_t first, std::int64_t end, std::int64_t each, std::int64_t second_at) {
    ChunkSquares op;
    op.chunks = chunks;
    std::vector<Value> inputs;
    for (std::int64_t begin = first; begin < end; begin += each) {
      Value part = random_value({std::min(each, end - begin)}, DType::float32, 4);
      for (std::size_t p = 0; p < 2; ++p) {
        const std::int64_t at = p == 0 ? 0 : second_at;
        const std::int64_t from = std::max(at, begin), to = std::min(at + counts[p], begin + part.type.shape.count());
        if (from >= to) continue;
        std::copy(values[p].values.begin() + (from - at), values[p].values.begin() + (to - at),
                  part.values.begin() + (from - begin));
        op.ranges.push_back(
            {{static_cast<int>(inputs.size()), from - begin, to - from}, first_chunks[p] + (from - at) / norm_chunk});
      }
      inputs.push_back(std::move(part));
    }
    return run_op(*backend, std::make_shared<ChunkSquares>(std::move(op)), inputs)[0];
  };
  const Value whole = squares(0, 3336 + 7000, 20000, 3336);
  double all = 0;
  for (std::size_t p = 0; p < 2; ++p) {
    for (std::int64_t c = 0; c * norm_chunk < counts[p]; ++c) {
      double sum = 0;
      for (std::int64_t i = c * norm_chunk; i < std::min((c + 1) * norm_chunk, counts[p]); ++i) {
        sum += values[p].values[static_cast<std::size_t>(i)] * values[p].values[static_cast<std::size_t>(i)];
      }
      CHECK(whole.values[static_cast<std::size_t>(first_chunks[p] + c)] == Approx(sum).epsilon(1e-6));
      all += sum;
    }
  }
  CHECK(run_op(*backend, std::make_shared<SumOfChunks>(), {whole})[0].values[0] == Approx(all).epsilon(1e-6));
  constexpr std::int64_t elements = 12 * norm_chunk;
  for (const std::int64_t parts : {1, 2, 3, 4}) {
    for (const std::int64_t each : {elements, 2 * norm_chunk}) {
      std::vector<double> sums(chunks, 0);
      for (std::int64_t p = 0; p < parts; ++p) {
        const Value part = squares(p * elements / parts, (p + 1) * elements / parts, each, 4 * norm_chunk);
        std::transform(sums.begin(), sums.end(), part.values.begin(), sums.begin(), std::plus());
      }
      CHECK(sums == whole.values);
    }
  }
}

TEST_CASE("the squares of chunks of several hundred inputs are right") {
  const auto backend = backend_under_test({.threads = 2});
  ChunkSquares op;
  op.chunks = 600;
  std::vector<Value> inputs;
  for (int i = 0; i < 600; ++i) {
    inputs.push_back(random_value({8}, DType::float32, static_cast<std::uint64_t>(i)));
    if (i % 3 > 0) op.ranges.push_back({{i, 2, 5}, 599 - i});
  }
  const Value sums = run_op(*backend, std::make_shared<ChunkSquares>(op), inputs)[0];
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    double sum = 0;
    for (std::size_t e = 2; e < 7 && i % 3 > 0; ++e) sum += inputs[i].values[e] * inputs[i].values[e];
    CHECK(sums.values[599 - i] == Approx(sum).epsilon(1e-6));
  }
}

TEST_CASE("agree sets its flags, and running statistics are updated only if the step was finite") {
  const auto backend = backend_under_test({});
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(run_op(*backend, std::make_shared<Agree>(), {scalar(3), scalar(1)})[0].values == std::vector<double>{0, 1});
  CHECK(run_op(*backend, std::make_shared<Agree>(), {scalar(nan), scalar(0)})[0].values == std::vector<double>{1, 0});
  for (std::size_t bad = 0; bad < 16; bad += 5) {  // one of sixteen losses
    std::vector<Value> inputs(17, scalar(0.5));
    CHECK(run_op(*backend, std::make_shared<Agree>(), inputs)[0].values == std::vector<double>{0, 0.5});
    inputs[bad] = scalar(nan);
    CHECK(run_op(*backend, std::make_shared<Agree>(), inputs)[0].values == std::vector<double>{1, 0.5});
  }
  const auto following = [&](Value flags, double norm, double loss) {  // with sixteen losses
    std::vector<Value> inputs(19, scalar(loss));
    inputs[0] = std::move(flags);
    inputs[1] = scalar(norm);
    inputs[18] = scalar(0.5);
    return run_op(*backend, std::make_shared<Agree>(true), inputs)[0].values;
  };
  CHECK(following(row({0, 1}), 2, 3) == std::vector<double>{0, 0.5});
  CHECK(following(row({2, 0}), 2, 3) == std::vector<double>{1, 0.5});  // two ranks set the flag of the update before
  CHECK(following(row({0, 0}), nan, 3) == std::vector<double>{1, 0.5});
  CHECK(following(row({0, 0}), 2, nan) == std::vector<double>{1, 0.5});

  const auto op = std::make_shared<UpdateStatistics>(std::vector<float>{0.9f, 0.5f});
  const std::vector<Value> sums{random_value({70}, DType::float32, 1), random_value({300}, DType::float32, 3)};
  const std::vector<Value> moving{random_value({70}, DType::float32, 2), random_value({300}, DType::float32, 4)};
  const Value fine = row({0, 1}), bad = row({1, 0});
  const auto updated = run_op(*backend, op, {sums[0], sums[1], scalar(16), fine, scalar(2)}, moving);
  for (std::size_t i = 0; i < 2; ++i) {
    const double momentum = i == 0 ? 0.9 : 0.5;
    std::vector<double> expected;
    for (std::size_t c = 0; c < sums[i].values.size(); ++c) {
      expected.push_back(momentum * moving[i].values[c] + (1 - momentum) * sums[i].values[c] / 16);
    }
    CHECK(largest_error(updated[i], expected) < 1e-6);
  }
  const double infinite = std::numeric_limits<double>::infinity();
  for (const auto& [flags, norm] : {std::pair(bad, 2.0), std::pair(fine, nan), std::pair(fine, infinite)}) {
    const auto kept = run_op(*backend, op, {sums[0], sums[1], scalar(16), flags, scalar(norm)}, moving);
    for (std::size_t i = 0; i < 2; ++i) CHECK(kept[i].values == moving[i].values);
  }
}

TEST_CASE("the moving average begins with the first step's weights, and does not change if the update is skipped") {
  const auto backend = backend_under_test({});
  const auto op = std::make_shared<MovingAverage>(0.75f, 40000);
  const Value weights = random_value({40010}, DType::float32, 5), averages = random_value({40000}, DType::float32, 6);
  const Value fine = row({0, 1}), bad = row({1, 0});
  const auto run = [&](double step, const Value& flags, double norm) {
    return run_op(*backend, op, {weights, scalar(step, DType::int64), flags, scalar(norm)}, {averages})[0];
  };
  std::vector<double> first(weights.values.begin(), weights.values.begin() + 40000), later;
  for (std::size_t i = 0; i < first.size(); ++i) later.push_back(0.75 * averages.values[i] + 0.25 * first[i]);
  CHECK(run(0, fine, 2).values == first);
  CHECK(largest_error(run(1, fine, 2), later) < 1e-6);
  CHECK(run(1, bad, 2).values == averages.values);
  CHECK(run(1, fine, std::numeric_limits<double>::infinity()).values == averages.values);
}

TEST_CASE("a tensor gets its earlier values only if the update is skipped") {
  const auto backend = backend_under_test({});
  const Value before = random_value({300, 150}, DType::float32, 5), now = random_value({300, 150}, DType::float32, 6);
  const Value fine = row({0, 1}), bad = row({1, 0});
  const auto run = [&](const Value& flags, double norm) {
    return run_op(*backend, std::make_shared<Restore>(), {before, flags, scalar(norm)}, {now})[0].values;
  };
  CHECK(run(fine, 2) == now.values);
  CHECK(run(bad, 2) == before.values);
  CHECK(run(fine, std::numeric_limits<double>::quiet_NaN()) == before.values);
}

}  // namespace trainctl::test::update_test
