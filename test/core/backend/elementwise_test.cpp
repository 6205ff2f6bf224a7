// Compares element-wise ops, softmax, dropout and shaping ops with their definitions in float64.
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "core/base/random.h"
#include "core/graph/ops/elementwise/activations.h"
#include "core/graph/ops/elementwise/bias.h"
#include "core/graph/ops/elementwise/dropout.h"
#include "core/graph/ops/elementwise/softmax.h"
#include "core/graph/ops/normalization/normalize.h"
#include "core/graph/ops/reshaping/columns.h"
#include "core/graph/ops/reshaping/shaping.h"
#include "test/catch.h"
#include "test/core/backend/run_op.h"

namespace trainctl::test::elementwise_test {
namespace {

double activate(const ActivationFunction& f, double x) {
  switch (f.kind) {
    case ActivationKind::relu:
      return std::max(x, 0.0);
    case ActivationKind::leaky_relu:
      return x < 0 ? x * static_cast<double>(f.slope) : x;
    case ActivationKind::relu6:
      return std::clamp(x, 0.0, 6.0);
    case ActivationKind::elu:
      return x < 0 ? static_cast<double>(f.slope) * std::expm1(x) : x;
    case ActivationKind::selu:
      return 1.0507009873554805 * (x < 0 ? 1.6732632423543772 * std::expm1(x) : x);
    case ActivationKind::mish:
      return x * std::tanh(std::log1p(std::exp(x)));
    case ActivationKind::hard_swish:
      return x * std::clamp(x + 3, 0.0, 6.0) / 6;
    case ActivationKind::hard_sigmoid:
      return std::clamp(x + 3, 0.0, 6.0) / 6;
    case ActivationKind::softplus:
      return std::log1p(std::exp(x));
    case ActivationKind::gelu:
      return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
    case ActivationKind::gelu_tanh:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
    case ActivationKind::silu:
      return x / (1 + std::exp(-x));
    case ActivationKind::tanh:
      return std::tanh(x);
    case ActivationKind::sigmoid:
      return 1 / (1 + std::exp(-x));
    default:
      return x;
  }
}

// Computes the derivative by central differences, which use none of the kernel's formulas.
double derivative(const ActivationFunction& f, double x) {
  constexpr double step = 1e-5;
  return (activate(f, x + step) - activate(f, x - step)) / (2 * step);
}

double tolerance(DType dtype) { return dtype == DType::float32 ? 1e-6 : 8e-3; }

}  // namespace

TEST_CASE("sums in bfloat16 are rounded to nearest even, for every number of values") {
  const auto backend = backend_under_test({.threads = 1});
  std::vector<std::int64_t> counts{511, 512, 513, 1100};
  for (std::int64_t count = 1; count <= 70; ++count) counts.push_back(count);
  for (const std::int64_t count : counts) {
    CAPTURE(count);
    const Value a = random_value({count}, DType::bfloat16, 1), b = random_value({count}, DType::bfloat16, 2);
    std::vector<double> expected;
    for (std::size_t i = 0; i < a.values.size(); ++i) {
      expected.push_back(round_to(DType::bfloat16, a.values[i] + b.values[i]));
    }
    CHECK(run_op(*backend, std::make_shared<Add>(), {a, b})[0].values == expected);
    CHECK(run_op(*backend, std::make_shared<Add>(), {a, b}, {}, nullptr, nullptr, OutputPlaces::in_place)[0].values ==
          expected);
  }
}

TEST_CASE("activations in bfloat16 keep NaN and infinity") {
  const auto backend = backend_under_test({.threads = 1});
  Value x = random_value({40}, DType::bfloat16, 1);
  x.values[17] = std::numeric_limits<double>::quiet_NaN();
  x.values[39] = std::numeric_limits<double>::infinity();
  const Value y = run_op(*backend, std::make_shared<Activation>(ActivationFunction{ActivationKind::gelu}), {x})[0];
  for (std::size_t i = 0; i < x.values.size(); ++i) CHECK(std::isfinite(y.values[i]) == (i != 17 && i != 39));
  CHECK(std::isnan(y.values[17]));
  CHECK(y.values[39] == x.values[39]);
}

TEST_CASE("activations, their gradients and add follow their definitions") {
  const auto backend = backend_under_test({.threads = 2});
  const DType dtype = GENERATE(DType::float32, DType::bfloat16);
  for (ActivationKind kind : activation_kinds) {
    const ActivationFunction f{kind, 0.2f};
    CAPTURE(name_of(dtype), to_string(f));
    Value x = random_value({37, 1003}, dtype, 1, -6, 6);
    const Value dy = random_value({37, 1003}, dtype, 2), other = random_value({37, 1003}, dtype, 3);
    for (double& value : x.values) {  // differences across a kink are not the derivative
      if (std::abs(std::abs(value) - 3) < 1e-4 || value > 6 - 1e-4) value = 1;
    }
    std::vector<double> y, dx, sum;
    for (std::size_t i = 0; i < x.values.size(); ++i) {
      y.push_back(activate(f, x.values[i]));
      dx.push_back(dy.values[i] * derivative(f, x.values[i]));
      sum.push_back(activate(f, x.values[i] + other.values[i]));
    }
    const auto forward = run_op(*backend, std::make_shared<Activation>(f), {x});
    CHECK(largest_error(forward[0], y) < tolerance(dtype));
    const Value saved = gradient_uses_output(kind) ? forward[0] : x;
    CHECK(largest_error(run_op(*backend, std::make_shared<ActivationGrad>(f), {dy, saved})[0], dx) <
          2 * tolerance(dtype));
    CHECK(largest_error(run_op(*backend, std::make_shared<Add>(f), {x, other})[0], sum) < tolerance(dtype));
  }
}

TEST_CASE("activations of infinite, large, tiny and NaN values are right") {
  const auto backend = backend_under_test({});
  const double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const Value x = row({-infinity, -1000, 1000, infinity, nan, -1e-30});
  const auto of = [&](ActivationKind kind) {
    return run_op(*backend, std::make_shared<Activation>(ActivationFunction{kind}), {x})[0].values;
  };
  for (ActivationKind kind : activation_kinds) CHECK(std::isnan(of(kind)[4]));
  CHECK(of(ActivationKind::tanh)[0] == -1);
  CHECK(of(ActivationKind::tanh)[2] == 1);
  CHECK(of(ActivationKind::tanh)[5] == Approx(-1e-30));
  CHECK(of(ActivationKind::sigmoid)[1] < 1e-37);
  CHECK(of(ActivationKind::sigmoid)[3] == 1);
}

TEST_CASE("softmax and its gradient follow their definitions") {
  const auto backend = backend_under_test({.threads = 2});
  const DType dtype = GENERATE(DType::float32, DType::bfloat16);
  const std::int64_t n = GENERATE(1, 10, 1001);
  CAPTURE(name_of(dtype), n);
  const Value x = random_value({19, n}, dtype, 1, 50, 60), dy = random_value({19, n}, dtype, 2);
  std::vector<double> y(x.values.size()), dx(x.values.size());
  const auto width = static_cast<std::size_t>(n);
  for (std::size_t row = 0; row < 19; ++row) {
    double total = 0;
    for (std::size_t k = 0; k < width; ++k) total += std::exp(x.values[row * width + k] - 55);
    for (std::size_t k = 0; k < width; ++k) y[row * width + k] = std::exp(x.values[row * width + k] - 55) / total;
  }
  const auto forward = run_op(*backend, std::make_shared<Softmax>(), {x});
  CHECK(largest_error(forward[0], y) < tolerance(dtype));
  const std::vector<double>& p = forward[0].values;
  for (std::size_t row = 0; row < 19; ++row) {
    for (std::size_t k = 0; k < width; ++k) {
      for (std::size_t j = 0; j < width; ++j) {
        const double jacobian = p[row * width + j] * ((j == k ? 1.0 : 0.0) - p[row * width + k]);
        dx[row * width + k] += dy.values[row * width + j] * jacobian;
      }
    }
  }
  CHECK(largest_error(run_op(*backend, std::make_shared<SoftmaxGrad>(), {dy, forward[0]})[0], dx) < tolerance(dtype));
}

TEST_CASE("dropout draws exactly the mask that its comment defines") {
  const auto backend = backend_under_test({.threads = GENERATE(1, 2)});
  const DType dtype = GENERATE(DType::float32, DType::bfloat16);
  const Shape shape = GENERATE(Shape{3, 7}, Shape{5, 9, 13, 3});
  const float rate = 0.3f;
  const Value x = random_value(shape, dtype, 1, 0.5, 1);
  Value samples = random_integers({shape[0]}, DType::int64, 2, 1000);
  samples.values[0] = 5e9;  // beyond 32 bits
  const double step = 12;
  const auto op = std::make_shared<Dropout>(rate, 0x123456789abcdefu, name_hash("block/dropout"));
  const auto got = run_op(*backend, op, {x, samples, scalar(step, DType::int64)})[0];
  const std::size_t count = x.values.size() / samples.values.size();
  const RandomKey key{op->seed, Purpose::dropout, 12, op->layer};
  std::vector<double> y;
  for (std::size_t i = 0; i < x.values.size(); ++i) {
    const auto sample = static_cast<std::uint64_t>(samples.values[i / count]);
    const auto element = static_cast<std::uint32_t>(i % count);
    const bool kept = uniform01(key.block(sample, element / 4)[element % 4]) >= rate;
    y.push_back(kept ? x.values[i] / (1 - static_cast<double>(rate)) : 0);
  }
  CHECK(largest_error(got, y) < tolerance(dtype));
}

TEST_CASE("dropout of a range of columns uses the same mask as dropout of all columns") {
  const auto backend = backend_under_test({.threads = GENERATE(1, 2)});
  const DType dtype = GENERATE(DType::float32, DType::bfloat16);
  const auto [columns, first, of] = GENERATE(std::array{8, 16, 48}, std::array{5, 5, 15}, std::array{150, 150, 300});
  CAPTURE(name_of(dtype), columns);
  const Value x = random_value({3, 7, of}, dtype, 1, 0.5, 1), samples = random_integers({3}, DType::int64, 2, 1000);
  Value part{{{3, 7, columns}, dtype}, {}};
  const auto own = [&, from = first, width = columns, stride = of](const Value& whole) {
    std::vector<double> values;
    for (std::ptrdiff_t row = 0; row < 21; ++row) {
      const auto begin = whole.values.begin() + row * stride + from;
      values.insert(values.end(), begin, begin + width);
    }
    return values;
  };
  part.values = own(x);
  const DropoutUnit unit = GENERATE(DropoutUnit::element, DropoutUnit::channel, DropoutUnit::sample);
  const auto dropped = [&](const Value& value, std::optional<ColumnRange> columns_of) {
    const auto op = std::make_shared<Dropout>(0.4f, 99u, 7u, unit, columns_of);
    return run_op(*backend, op, {value, samples, scalar(3, DType::int64)})[0];
  };
  CHECK(dropped(part, ColumnRange{first, of}).values == own(dropped(x, {})));
}

TEST_CASE("dropout drops the same elements on ranks that hold some positions") {
  const auto backend = backend_under_test({.threads = 2});
  const DropoutUnit unit = GENERATE(DropoutUnit::element, DropoutUnit::channel, DropoutUnit::sample);
  const auto channels = GENERATE(std::int64_t{3}, std::int64_t{8});
  constexpr std::int64_t all = 7, rank_count = 3;  // shards of 3, 2 and 2 positions
  const Value x = random_value({4, all, channels}, DType::float32, 1),
              samples = random_integers({4}, DType::int64, 2, 99);
  const Dropout whole(0.4f, 99u, 7u, unit);
  const auto dropped = [&](std::shared_ptr<const OpDef> def, const Value& value) {
    return run_op(*backend, std::move(def), {value, samples, scalar(3, DType::int64)})[0].values;
  };
  const std::vector<double> expected = dropped(std::make_shared<Dropout>(whole), x);
  const std::vector<TensorType> types{x.type, samples.type, {{}, DType::int64}};
  for (ShardPosition rank{rank_count, 0}; rank.index < rank.count; ++rank.index) {
    CAPTURE(static_cast<int>(unit), channels, rank.index);
    const std::int64_t first = rank.first_of(all), size = rank.size_of(all);
    Value part{{{4, size, channels}, DType::float32}, {}};
    std::vector<double> own;
    for (std::int64_t n = 0; n < 4; ++n) {
      const std::int64_t begin = (n * all + first) * channels, end = begin + size * channels;
      part.values.insert(part.values.end(), x.values.begin() + begin, x.values.begin() + end);
      own.insert(own.end(), expected.begin() + begin, expected.begin() + end);
    }
    const std::vector<std::optional<int>> split{1, {}, {}};
    std::shared_ptr<const OpDef> def = whole.on_shard(types, split, rank);
    if (def == nullptr) def = std::make_shared<Dropout>(whole);
    CHECK(dropped(def, part) == own);
  }
}

TEST_CASE("a bias is added once, and its gradient is a sum over rows") {
  const auto backend = backend_under_test({.threads = 2});
  const DType dtype = GENERATE(DType::float32, DType::bfloat16);
  const std::int64_t channels = GENERATE(1, 7, 64);
  CAPTURE(name_of(dtype), channels);
  const Value x = random_value({5, 9, channels}, dtype, 1), bias = random_value({channels}, DType::float32, 2);
  std::vector<double> y, sums(static_cast<std::size_t>(channels), 0.25);
  for (std::size_t i = 0; i < x.values.size(); ++i) {
    y.push_back(std::max(x.values[i] + bias.values[i % sums.size()], 0.0));
    sums[i % sums.size()] += x.values[i];
  }
  const auto add = std::make_shared<AddBias>(ActivationFunction{ActivationKind::relu});
  for (const OutputPlaces places : {OutputPlaces::apart, OutputPlaces::in_place}) {
    const auto got = run_op(*backend, add, {x, bias}, {}, nullptr, nullptr, places);
    CHECK(largest_error(got[0], y) < tolerance(dtype));
  }
  const Value before{bias.type, std::vector<double>(sums.size(), 0.25)};
  CHECK(largest_error(run_op(*backend, std::make_shared<BiasGrad>(true), {x}, {before})[0], sums) < 1e-5);
  for (double& sum : sums) sum -= 0.25;
  CHECK(largest_error(run_op(*backend, std::make_shared<BiasGrad>(false), {x})[0], sums) < 1e-5);
}

TEST_CASE("a rank takes its own columns") {
  const auto backend = backend_under_test({.threads = 2});
  const DType dtype = GENERATE(DType::float32, DType::bfloat16);
  const Value x = random_value({2, 5, 12}, dtype, 1);
  const auto parts = run_op(*backend, std::make_shared<Split>(std::vector<std::int64_t>{4, 4, 4}), {x});
  for (const int index : {0, 1, 2}) {
    const auto take = std::make_shared<TakeColumns>(MeshAxis::tensor, ShardPosition{3, index});
    CHECK(run_op(*backend, take, {x})[0].values == parts[static_cast<std::size_t>(index)].values);
  }
}

TEST_CASE("casts round to nearest even") {
  const auto backend = backend_under_test({.threads = 2});
  Value x = random_value({3, 20011}, DType::float32, 1, -1e3, 1e3);
  x.values[0] = 1 + 0x1p-8;      // halfway, down to even
  x.values[1] = 1 + 3 * 0x1p-8;  // halfway, up to even
  x.values[2] = std::numeric_limits<double>::infinity();
  x.values[3] = 3.4e38;  // beyond the largest bfloat16
  std::vector<double> rounded;
  for (double v : x.values) rounded.push_back(round_to(DType::bfloat16, v));
  rounded[3] = std::numeric_limits<double>::infinity();
  const Value half = run_op(*backend, std::make_shared<Cast>(DType::bfloat16), {x})[0];
  CHECK(half.values == rounded);
  CHECK(run_op(*backend, std::make_shared<Cast>(DType::float32), {half})[0].values == rounded);
  const Value nan = row({std::numeric_limits<double>::quiet_NaN()});
  CHECK(std::isnan(run_op(*backend, std::make_shared<Cast>(DType::bfloat16), {nan})[0].values[0]));
}

TEST_CASE("split is the inverse of concatenate") {
  const auto backend = backend_under_test({.threads = 2});
  const DType dtype = GENERATE(DType::float32, DType::bfloat16);
  const Value a = random_value({2, 3, 5}, dtype, 1), b = random_value({2, 3, 1}, dtype, 2),
              c = random_value({2, 3, 4}, dtype, 3);
  const Value wide = run_op(*backend, std::make_shared<Concatenate>(), {a, b, c})[0];
  for (std::size_t row = 0; row < 6; ++row) {
    for (std::size_t k = 0; k < 10; ++k) {
      const double expected = k < 5 ? a.values[row * 5 + k] : k < 6 ? b.values[row] : c.values[row * 4 + k - 6];
      CHECK(wide.values[row * 10 + k] == expected);
    }
  }
  const auto parts = run_op(*backend, std::make_shared<Split>(std::vector<std::int64_t>{5, 1, 4}), {wide});
  CHECK(parts[0].values == a.values);
  CHECK(parts[1].values == b.values);
  CHECK(parts[2].values == c.values);
}

TEST_CASE("stored samples are scaled and shifted by channel") {
  const auto backend = backend_under_test({.threads = 2});
  const DType to = GENERATE(DType::float32, DType::bfloat16);
  for (const Shape& shape : {Shape{5, 33, 31, 3}, Shape{4, 8, 8, 1}, Shape{7, 5}, Shape{2, 20000}}) {
    for (const bool by_channel : {false, true}) {
      CAPTURE(name_of(to), to_string(shape), by_channel);
      const std::int64_t channels = by_channel ? shape.back() : 1;
      const Value scale = random_value({channels}, DType::float32, 1, 0.5, 2),
                  offset = random_value({channels}, DType::float32, 2);
      SampleFormat format;
      format.scale.assign(scale.values.begin(), scale.values.end());
      format.offset.assign(offset.values.begin(), offset.values.end());
      const auto op = std::make_shared<Normalize>(to, format);
      for (const Value& x : {random_integers(shape, DType::uint8, 3, 256), random_value(shape, DType::float32, 4),
                             random_value(shape, to, 5)}) {
        std::vector<double> expected;
        for (std::size_t i = 0; i < x.values.size(); ++i) {
          const std::size_t channel = i % static_cast<std::size_t>(channels);
          expected.push_back(x.values[i] * scale.values[channel] + offset.values[channel]);
        }
        CHECK(largest_error(run_op(*backend, op, {x})[0], expected) < tolerance(to));
      }
    }
  }
}

}  // namespace trainctl::test::elementwise_test
