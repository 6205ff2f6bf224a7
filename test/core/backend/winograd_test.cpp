// Compares convolutions by Winograd's minimal filtering with naive loops in float64: float32 and bfloat16, paddings,
// sizes that cut the last tiles, numbers of channels, blocks of tiles, threads, values that are not finite.
#include <bit>
#include <cmath>
#include <random>

#include "core/backend/cpu/cpu_backend.h"
#include "core/backend/cpu/onednn/widening.h"
#include "core/backend/cpu/ops/images/winograd/convolution.h"
#include "core/backend/cpu/ops/images/winograd/transforms.h"
#include "core/backend/cpu/ops/images/winograd/weight_gradient.h"
#include "core/backend/cpu/runtime/processor.h"
#include "core/graph/ops/images/convolution.h"
#include "test/catch.h"
#include "test/core/backend/convolution_cases.h"

namespace trainctl::test::winograd_test {
namespace {

using cpu::WinogradConvolution;
using cpu::WinogradWeightGradient;

Window window(std::int64_t before, std::int64_t after) {
  return {{3, 3}, {1, 1}, {1, 1}, {before, before}, {after, after}};
}

const ConvolutionCase cases[] = {
    {"same, whole tiles", {3, 8, 8, 16}, 16, 1, window(1, 1)},
    {"same, cut tiles", {2, 9, 7, 32}, 48, 1, window(1, 1)},
    {"valid, cut tiles", {2, 13, 11, 48}, 32, 1, window(0, 0)},
    {"valid, an output of one pixel", {5, 3, 3, 16}, 32, 1, window(0, 0)},
    {"an image smaller than the window", {2, 2, 1, 16}, 16, 1, window(1, 1)},
    {"32 channels", {2, 10, 11, 32}, 32, 1, window(1, 1)},
    {"48 channels", {2, 7, 8, 48}, 48, 1, window(1, 1)},
    {"many blocks of tiles", {9, 21, 18, 16}, 16, 1, window(1, 1)},
    {"padding on one side", {2, 10, 6, 64}, 16, 1, window(0, 1)},
    {"far padding", {1, 5, 6, 16}, 80, 1, window(2, 2)},
    {"rows and columns padded apart", {2, 6, 9, 16}, 16, 1, {{3, 3}, {1, 1}, {1, 1}, {1, 0}, {0, 2}}},
};

// Memory aligned to 64 bytes, filled with NaN.
class Memory {
 public:
  explicit Memory(std::int64_t bytes) : lines_(static_cast<std::size_t>(bytes / 64 + 1)) {
    std::fill_n(data(), 16 * lines_.size(), NAN);
  }
  float* data() { return lines_.front().values; }

 private:
  struct alignas(64) Line {
    float values[16];
  };
  std::vector<Line> lines_;
};

template <class T>
constexpr DType dtype_of = std::is_same_v<T, float> ? DType::float32 : DType::bfloat16;

// The values as T, which holds them exactly.
template <class T>
std::vector<T> values_of(const Value& value) {
  std::vector<T> values;
  for (double v : value.values) values.push_back(cpu::store<T>(static_cast<float>(v)));
  return values;
}
std::vector<float> floats(const Value& value) { return values_of<float>(value); }

// The values that are NaN before a kernel writes them.
template <class T>
std::vector<T> unwritten(std::size_t count) {
  return std::vector<T>(count, cpu::store<T>(NAN));
}

template <class T>
std::vector<float> widened(const std::vector<T>& values) {
  std::vector<float> wide;
  for (T value : values) wide.push_back(cpu::load(value));
  return wide;
}

// The largest error as a part of the size of typical values, beyond the one rounding of a value to T: half a unit in
// the last of the 8 bits of bfloat16.
template <class T>
double largest_error(const std::vector<T>& got, const std::vector<double>& expected) {
  constexpr double rounding = std::is_same_v<T, float> ? 0 : 1.0 / 256;
  double largest = 0, squares = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double value = cpu::load(got[i]);
    if (std::isnan(value)) return INFINITY;
    const double unit = rounding * std::exp2(std::floor(std::log2(std::abs(value))));
    largest = std::max(largest, std::abs(value - expected[i]) - unit);
    squares += expected[i] * expected[i];
  }
  return largest / std::sqrt(squares / static_cast<double>(got.size()));
}

}  // namespace

TEMPLATE_TEST_CASE("Winograd's convolutions have the values of naive loops, with any number of threads", "", float,
                   cpu::Bf16) {
  using T = TestType;
  if (cpu::instruction_set() == cpu::InstructionSet::baseline) return;
  constexpr double tolerance = 1e-5;
  for (const ConvolutionCase& c : cases) {
    CAPTURE(c.what);
    REQUIRE(WinogradConvolution::computes(c.window, c.groups, c.x, c.y()));
    const Value x = random_value(c.x, dtype_of<T>, 1), dy = random_value(c.y(), dtype_of<T>, 2);
    const Value kernel = random_value(c.kernel(), DType::float32, 3), bias = random_value({c.out}, DType::float32, 4);
    const Value old = random_value(c.kernel(), DType::float32, 5);
    std::vector<double> y(dy.values.size()), dx(x.values.size()), dkernel(kernel.values.size());
    each_product(c, [&](std::size_t at_x, std::size_t at_kernel, std::size_t at_y) {
      const double weight = round_to(dtype_of<T>, kernel.values[at_kernel]);
      y[at_y] += x.values[at_x] * weight;
      dx[at_x] += dy.values[at_y] * weight;
      dkernel[at_kernel] += x.values[at_x] * dy.values[at_y];
    });
    std::vector<double> leaky = y, relu = y, sum = dkernel;
    for (std::size_t i = 0; i < leaky.size(); ++i) {
      leaky[i] += bias.values[i % static_cast<std::size_t>(c.out)];
      relu[i] = std::max(leaky[i], 0.0);
      if (leaky[i] < 0) leaky[i] *= 0.25;
    }
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += old.values[i];

    std::vector<float> first_y, first_dx;
    for (int threads : {1, 2, 3}) {
      CAPTURE(threads);
      cpu::prepare_compute_threads(threads);
      const WinogradConvolution forward(c.window, c.x, c.y(), false, threads);
      const WinogradConvolution backward(c.window, c.x, c.y(), true, threads);
      const WinogradWeightGradient by_weights(c.window, c.x, c.y(), threads);
      Memory workspace(std::max({forward.workspace_bytes(), backward.workspace_bytes(), by_weights.workspace_bytes()}));
      const std::vector<T> in = values_of<T>(x), gradient = values_of<T>(dy);
      const std::vector<float> weights = floats(kernel), biases = floats(bias);

      std::vector<T> result = unwritten<T>(y.size());
      forward.run(in.data(), weights.data(), biases.data(), 0.25f, result.data(), workspace.data());
      CHECK(largest_error(result, leaky) < tolerance);
      forward.run(in.data(), weights.data(), biases.data(), 0.0f, result.data(), workspace.data());
      CHECK(largest_error(result, relu) < tolerance);
      forward.run(in.data(), weights.data(), nullptr, 1.0f, result.data(), workspace.data());
      CHECK(largest_error(result, y) < tolerance);
      if (threads == 1) first_y = widened(result);
      CHECK(widened(result) == first_y);
      std::vector<T> rounded = values_of<T>(kernel);
      forward.run(in.data(), rounded.data(), nullptr, 1.0f, result.data(), workspace.data());
      CHECK(widened(result) == first_y);

      result = unwritten<T>(dx.size());
      backward.run(gradient.data(), weights.data(), nullptr, 1, result.data(), workspace.data());
      CHECK(largest_error(result, dx) < tolerance);
      if (threads == 1) first_dx = widened(result);
      CHECK(widened(result) == first_dx);

      std::vector<float> sums(dkernel.size(), NAN);
      by_weights.run(in.data(), gradient.data(), false, sums.data(), workspace.data());
      CHECK(largest_error(sums, dkernel) < tolerance);
      sums = floats(old);
      by_weights.run(in.data(), gradient.data(), true, sums.data(), workspace.data());
      CHECK(largest_error(sums, sum) < tolerance);
    }
  }
}

TEST_CASE("a sample has the same result of Winograd's convolution in any batch") {
  if (cpu::instruction_set() == cpu::InstructionSet::baseline) return;
  const Window w = window(1, 1);
  const Shape many{7, 10, 9, 32}, one{1, 10, 9, 32};
  const std::vector<float> x = floats(random_value(many, DType::float32, 1));
  const std::vector<float> kernel = floats(random_value({3, 3, 32, 32}, DType::float32, 2));
  const auto size = static_cast<std::size_t>(one.count());
  cpu::prepare_compute_threads(2);
  for (bool backward : {false, true}) {
    const WinogradConvolution batch(w, many, many, backward, 2), sample(w, one, one, backward, 2);
    Memory workspace(std::max(batch.workspace_bytes(), sample.workspace_bytes()));
    std::vector<float> all(7 * size), alone(size);
    batch.run(x.data(), kernel.data(), nullptr, 1, all.data(), workspace.data());
    for (std::size_t i = 0; i < 7; ++i) {
      sample.run(x.data() + i * size, kernel.data(), nullptr, 1, alone.data(), workspace.data());
      CHECK(std::equal(alone.begin(), alone.end(), all.begin() + static_cast<std::ptrdiff_t>(i * size)));
    }
  }
}

TEMPLATE_TEST_CASE("a NaN in one sample does not change the results of Winograd's convolutions of other samples", "",
                   float, cpu::Bf16) {
  using T = TestType;
  if (cpu::instruction_set() == cpu::InstructionSet::baseline) return;
  const Window w = window(1, 1);
  const Shape shape{3, 10, 9, 32};
  std::vector<T> x = values_of<T>(random_value(shape, dtype_of<T>, 1));
  const std::vector<float> kernel = floats(random_value({3, 3, 32, 32}, DType::float32, 2));
  const auto size = static_cast<std::ptrdiff_t>(x.size() / 3);
  cpu::prepare_compute_threads(2);
  for (bool backward : {false, true}) {
    const WinogradConvolution convolution(w, shape, shape, backward, 2);
    Memory workspace(convolution.workspace_bytes());
    std::vector<T> first(x.size()), second(x.size());
    const T kept = x[static_cast<std::size_t>(size + 700)];
    convolution.run(x.data(), kernel.data(), nullptr, 1, first.data(), workspace.data());
    x[static_cast<std::size_t>(size + 700)] = cpu::store<T>(NAN);
    convolution.run(x.data(), kernel.data(), nullptr, 1, second.data(), workspace.data());
    x[static_cast<std::size_t>(size + 700)] = kept;
    const std::vector<float> clean = widened(first), changed = widened(second);
    CHECK(std::equal(clean.begin(), clean.begin() + size, changed.begin()));
    CHECK(std::equal(clean.end() - size, clean.end(), changed.end() - size));
    CHECK(std::any_of(changed.begin() + size, changed.end() - size, [](float y) { return std::isnan(y); }));
  }
}

TEMPLATE_TEST_CASE("relu of Winograd's convolutions makes 0 of negative values and of -infinity, and keeps NaN", "",
                   float, cpu::Bf16) {
  using T = TestType;
  if (cpu::instruction_set() == cpu::InstructionSet::baseline) return;
  const Shape shape{1, 8, 8, 16};
  const std::vector<T> x = values_of<T>(random_value(shape, dtype_of<T>, 1));
  const std::vector<float> kernel = floats(random_value({3, 3, 16, 16}, DType::float32, 2));
  std::vector<float> bias(16);
  std::vector<T> result(x.size());
  bias[3] = -INFINITY;
  bias[4] = -1000;
  bias[5] = INFINITY;
  bias[6] = NAN;
  cpu::prepare_compute_threads(1);
  const WinogradConvolution convolution(window(1, 1), shape, shape, false, 1);
  Memory workspace(convolution.workspace_bytes());
  convolution.run(x.data(), kernel.data(), bias.data(), 0, result.data(), workspace.data());
  const std::vector<float> y = widened(result);
  for (std::size_t i = 0; i < y.size(); i += 16) {
    for (std::size_t channel : {3, 4}) CHECK((y[i + channel] == 0 && !std::signbit(y[i + channel])));
    CHECK(y[i + 5] == INFINITY);
    CHECK(std::isnan(y[i + 6]));
  }
}

TEMPLATE_TEST_CASE("Winograd's convolutions of no images compute nothing, and the gradient of their kernel is 0", "",
                   float, cpu::Bf16) {
  const std::vector<TestType> images;
  if (cpu::instruction_set() == cpu::InstructionSet::baseline) return;
  const Shape shape{0, 8, 8, 16};
  const std::vector<float> kernel = floats(random_value({3, 3, 16, 16}, DType::float32, 1));
  const WinogradConvolution forward(window(1, 1), shape, shape, false, 2);
  const WinogradWeightGradient by_weights(window(1, 1), shape, shape, 2);
  Memory workspace(std::max(forward.workspace_bytes(), by_weights.workspace_bytes()));
  cpu::prepare_compute_threads(2);
  std::vector<TestType> results;
  forward.run(images.data(), kernel.data(), nullptr, 1, results.data(), workspace.data());
  std::vector<float> gradient = kernel;
  by_weights.run(images.data(), images.data(), true, gradient.data(), workspace.data());
  CHECK(gradient == kernel);
  by_weights.run(images.data(), images.data(), false, gradient.data(), workspace.data());
  CHECK(gradient == std::vector<float>(kernel.size()));
}

TEST_CASE("the workspaces of Winograd's convolutions are limited, with fewer threads if necessary") {
  const Shape large{64, 28, 28, 512}, small{1, 8, 8, 16};
  for (int threads : {1, 2, 64, 200}) {
    CAPTURE(threads);
    const WinogradConvolution forward(window(1, 1), large, large, false, threads);
    const WinogradWeightGradient by_weights(window(1, 1), large, large, threads);
    CHECK(forward.workspace_bytes() <= WinogradConvolution::most_bytes);
    CHECK(by_weights.workspace_bytes() <= WinogradWeightGradient::most_bytes);
    CHECK(by_weights.threads() == 1);
    const auto alone = WinogradConvolution(window(1, 1), small, small, false, 1).workspace_bytes();
    CHECK(WinogradConvolution(window(1, 1), small, small, false, threads).workspace_bytes() == alone);
  }
}

TEST_CASE("the rounding errors of Winograd's convolutions are a few times those of a direct sum") {
  if (cpu::instruction_set() == cpu::InstructionSet::baseline) return;
  cpu::prepare_compute_threads(1);
  for (std::int64_t channels : {16, 64, 256}) {
    CAPTURE(channels);
    const ConvolutionCase c{"", {2, 9, 9, channels}, 16, 1, window(1, 1)};
    const std::vector<float> x = floats(random_value(c.x, DType::float32, 1));
    const std::vector<float> kernel = floats(random_value(c.kernel(), DType::float32, 2));
    const auto count = static_cast<std::size_t>(c.y().count());
    std::vector<double> exact(count);
    std::vector<float> direct(count), got(count);
    each_product(c, [&](std::size_t at_x, std::size_t at_kernel, std::size_t at_y) {
      exact[at_y] += double{x[at_x]} * kernel[at_kernel];
      direct[at_y] += x[at_x] * kernel[at_kernel];
    });
    const WinogradConvolution forward(c.window, c.x, c.y(), false, 1);
    Memory workspace(forward.workspace_bytes());
    forward.run(x.data(), kernel.data(), nullptr, 1, got.data(), workspace.data());
    const auto squares = [&](const std::vector<float>& values) {
      double sum = 0;
      for (std::size_t i = 0; i < count; ++i) sum += std::pow(values[i] - exact[i], 2);
      return sum;
    };
    CHECK(std::sqrt(squares(got) / squares(direct)) < 4);
  }
}

TEST_CASE("Winograd's kernels round to bfloat16 like other kernels") {
  using Vector = cpu::winograd::VectorOf<8>::Type;
  std::mt19937 random(1);
  std::vector<std::uint32_t> bits{0,          0x80000000, 0x7f800000, 0xff800000,
                                  0x7fc00000, 0x7f800001, 0xff80ffff, 0x7f7fffff};
  for (std::uint32_t tie : {0x3f808000u, 0x3f818000u, 0xbf808001u, 0xbf817fffu}) bits.push_back(tie);
  while (bits.size() < 4096) bits.push_back(static_cast<std::uint32_t>(random()));
  for (std::size_t i = 0; i < bits.size(); i += 8) {
    Vector values;
    std::memcpy(&values, bits.data() + i, sizeof values);
    cpu::Bf16 rounded[8];
    cpu::winograd::store_rounded<false>(values, rounded);
    Vector back;
    cpu::winograd::load(rounded, back);
    for (std::size_t lane = 0; lane < 8; ++lane) {
      const auto value = std::bit_cast<float>(bits[i + lane]);
      CAPTURE(value);
      if (std::isnan(value)) {
        CHECK(std::isnan(cpu::load(rounded[lane])));
      } else {
        CHECK(rounded[lane].bits == cpu::store<cpu::Bf16>(value).bits);
        CHECK(back[lane] == cpu::load(rounded[lane]));
      }
    }
  }
}

TEST_CASE("in bfloat16 the errors of Winograd's convolutions are those of oneDNN's") {
  if (cpu::instruction_set() == cpu::InstructionSet::baseline || !cpu::has_bfloat16()) return;
  const auto backend = make_cpu_backend({.threads = 2});
  for (const ConvolutionCase& c : cases) {
    CAPTURE(c.what);
    const Value x = random_value(c.x, DType::bfloat16, 1), dy = random_value(c.y(), DType::bfloat16, 2);
    const Value kernel = random_value(c.kernel(), DType::float32, 3);
    std::vector<double> y(dy.values.size()), dx(x.values.size());
    each_product(c, [&](std::size_t at_x, std::size_t at_kernel, std::size_t at_y) {
      const double weight = round_to(DType::bfloat16, kernel.values[at_kernel]);
      y[at_y] += x.values[at_x] * weight;
      dx[at_x] += dy.values[at_y] * weight;
    });
    const auto error = [&](std::shared_ptr<const OpDef> op, const Value& in, const std::vector<double>& exact,
                           bool by_winograd) {
      KernelChoices measured, choices;
      run_op(*backend, op, {in, kernel}, {}, &measured);
      const std::string key = measured.text().substr(0, measured.text().find('\t'));
      choices.record(key, by_winograd ? cpu::winograd_name() : "unknown");  // then oneDNN's are timed alone
      Lowering lowering;
      const Value got = run_op(*backend, op, {in, kernel}, {}, &choices, &lowering)[0];
      CHECK((lowering.implementation == cpu::winograd_name()) == by_winograd);
      double squares = 0;
      for (std::size_t i = 0; i < exact.size(); ++i) squares += std::pow(got.values[i] - exact[i], 2);
      return std::sqrt(squares);
    };
    const auto forward = std::make_shared<Conv2d>(c.window, c.groups);
    CHECK(error(forward, x, y, true) < 1.02 * error(forward, x, y, false));
    const auto backward = std::make_shared<Conv2dGradInput>(c.window, c.groups, c.x);
    CHECK(error(backward, dy, dx, true) < 1.02 * error(backward, dy, dx, false));
  }
}

TEST_CASE("without timing a rule chooses Winograd's convolutions by the shapes of images") {
  const DType dtype = GENERATE(DType::float32, DType::bfloat16);
  if (dtype == DType::bfloat16 && (!cpu::has_bfloat16() || __builtin_cpu_supports("amx-bf16"))) return;
  const auto backend = make_cpu_backend({.threads = 1, .timing = false});
  const bool available = cpu::instruction_set() != cpu::InstructionSet::baseline;
  struct Case {
    ConvolutionCase convolution;
    bool expected;
  };
  const Case rules[] = {
      {{"8x8", {2, 8, 8, 16}, 32, 1, window(1, 1)}, true},
      {{"14x14, many channels", {1, 14, 14, 80}, 96, 1, window(1, 1)}, true},
      {{"7x7, many channels", {1, 7, 7, 80}, 96, 1, window(1, 1)}, false},
      {{"one tile", {2, 4, 4, 16}, 32, 1, window(1, 1)}, false},
      {{"mostly cut tiles", {2, 5, 5, 16}, 32, 1, window(1, 1)}, false},
      {{"channels that are no multiple of 16", {2, 8, 8, 24}, 32, 1, window(1, 1)}, false},
      {{"groups", {2, 8, 8, 32}, 32, 2, window(1, 1)}, false},
      {{"strides", {2, 16, 16, 16}, 32, 1, {{3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}}}, false},
  };
  for (const auto& [c, expected] : rules) {
    CAPTURE(c.what);
    const Value x = random_value(c.x, dtype, 1), dy = random_value(c.y(), dtype, 2);
    const Value kernel = random_value(c.kernel(), DType::float32, 3);
    const auto chosen = [&](std::shared_ptr<const OpDef> op, const std::vector<Value>& inputs) {
      KernelChoices choices;
      Lowering lowering;
      run_op(*backend, std::move(op), inputs, {}, &choices, &lowering);
      return lowering.implementation.starts_with("own:winograd:");
    };
    CHECK(chosen(std::make_shared<Conv2d>(c.window, c.groups), {x, kernel}) == (expected && available));
    CHECK(chosen(std::make_shared<Conv2dGradInput>(c.window, c.groups, c.x), {dy, kernel}) == (expected && available));
    CHECK(chosen(std::make_shared<Conv2dGradWeights>(c.window, c.groups, true, false), {x, dy}) ==
          (expected && available));
    const auto tanh = std::make_shared<Conv2d>(c.window, c.groups, ActivationFunction{ActivationKind::tanh});
    CHECK_FALSE(chosen(tanh, {x, kernel}));
  }
}

}  // namespace trainctl::test::winograd_test
