// Compares convolutions with naive loops in float64: sizes, groups, dilation, strides, padding, accumulation.
#include <sstream>

#include "core/backend/cpu/cpu_backend.h"
#include "core/backend/cpu/onednn/widening.h"
#include "core/backend/cpu/ops/images/conv2d_weights_bf16.h"
#include "core/backend/cpu/ops/images/conv2d_weights_by_taps.h"
#include "core/backend/cpu/ops/images/conv2d_weights_few_channels.h"
#include "core/backend/cpu/ops/images/winograd/convolution.h"
#include "core/backend/cpu/runtime/processor.h"
#include "core/base/format.h"
#include "core/graph/ops/elementwise/activations.h"
#include "core/graph/ops/images/convolution.h"
#include "test/catch.h"
#include "test/core/backend/convolution_cases.h"

namespace trainctl::test::conv2d_test {
namespace {

// Returns choices with the same keys, all of which have this implementation.
KernelChoices replaced(const KernelChoices& choices, const std::string& implementation) {
  KernelChoices all;
  std::istringstream lines(choices.text());
  for (std::string line; std::getline(lines, line);) all.record(line.substr(0, line.find('\t')), implementation);
  return all;
}

// Whether Winograd's minimal filtering computes a case and its gradients as one kernel.
bool by_winograd(const ConvolutionCase& c, DType dtype) {
  return (dtype == DType::float32 || cpu::has_bfloat16()) &&
         cpu::WinogradConvolution::computes(c.window, c.groups, c.x, c.y());
}

// The implementations of this project for the weight gradient of a case.
std::vector<std::string> own_weight_gradients(const ConvolutionCase& c, DType dtype) {
  if (cpu::Conv2dWeightsFewChannels::computes(c.x, c.y(), c.groups, dtype)) {
    return {format("own:{}", cpu::name_of(cpu::instruction_set()))};
  }
  std::vector<std::string> names;
  if (cpu::Conv2dWeightsByTaps::computes(c.y(), c.groups, dtype)) names.push_back(cpu::Conv2dWeightsByTaps::name());
  if (by_winograd(c, dtype)) names.push_back(cpu::winograd_name());
  if (dtype == DType::bfloat16 && c.groups == 1 && cpu::Conv2dWeightsBf16::available()) {
    names.emplace_back("own:avx512_bf16");
  }
  return names;
}

}  // namespace

TEST_CASE("conv2d and its gradients have the values of naive loops") {
  const auto backend = make_cpu_backend({.threads = GENERATE(2, 3)});
  const DType dtype = GENERATE(DType::float32, DType::bfloat16);
  const double tolerance = dtype == DType::float32 ? 2e-5 : 2e-2;
  KernelChoices choices;
  for (const ConvolutionCase& c : convolution_cases) {
    CAPTURE(name_of(dtype), c.what);
    const Window& w = c.window;
    const Value x = random_value(c.x, dtype, 1);
    const Value kernel = random_value(c.kernel(), DType::float32, 2, -0.3, 0.3);
    const Value bias = random_value({c.out}, DType::float32, 3);
    const Value dy = random_value(c.y(), dtype, 4);
    std::vector<double> y(dy.values.size()), dx(x.values.size()), dkernel(kernel.values.size());
    each_product(c, [&](std::size_t at_x, std::size_t at_kernel, std::size_t at_y) {
      const double weight = round_to(dtype, kernel.values[at_kernel]);
      y[at_y] += x.values[at_x] * weight;
      dx[at_x] += dy.values[at_y] * weight;
      dkernel[at_kernel] += x.values[at_x] * dy.values[at_y];
    });

    CHECK(largest_error(run_op(*backend, std::make_shared<Conv2d>(w, c.groups), {x, kernel}, {}, &choices)[0], y) <
          tolerance);
    std::vector<double> leaky_y(y.size());
    for (std::size_t i = 0; i < y.size(); ++i) {
      const double sum = y[i] + bias.values[i % static_cast<std::size_t>(c.out)];
      leaky_y[i] = std::max(sum, 0.25 * sum);
      y[i] = std::max(sum, 0.0);
    }
    const auto fused = std::make_shared<Conv2d>(w, c.groups, ActivationFunction{ActivationKind::relu});
    CHECK(largest_error(run_op(*backend, fused, {x, kernel, bias}, {}, &choices)[0], y) < tolerance);

    const auto leaky = std::make_shared<Conv2d>(w, c.groups, ActivationFunction{ActivationKind::leaky_relu, 0.25f});
    CHECK(largest_error(run_op(*backend, leaky, {x, kernel, bias}, {}, &choices)[0], leaky_y) < tolerance);

    const auto by_input = std::make_shared<Conv2dGradInput>(w, c.groups, c.x);
    CHECK(largest_error(run_op(*backend, by_input, {dy, kernel}, {}, &choices)[0], dx) < tolerance);

    if (by_winograd(c, dtype)) {
      KernelChoices own = replaced(choices, cpu::winograd_name());
      Lowering lowering;
      CHECK(largest_error(run_op(*backend, fused, {x, kernel, bias}, {}, &own, &lowering)[0], y) < tolerance);
      CHECK(lowering.implementation == cpu::winograd_name());
      CHECK(largest_error(run_op(*backend, leaky, {x, kernel, bias}, {}, &own, &lowering)[0], leaky_y) < tolerance);
      CHECK(lowering.implementation == cpu::winograd_name());
      CHECK(largest_error(run_op(*backend, by_input, {dy, kernel}, {}, &own, &lowering)[0], dx) < tolerance);
      CHECK(lowering.implementation == cpu::winograd_name());
    }

    std::vector<double> dbias(static_cast<std::size_t>(c.out));
    for (std::size_t i = 0; i < dy.values.size(); ++i) dbias[i % dbias.size()] += dy.values[i];
    for (bool accumulate : {false, true}) {
      const Value old_kernel = random_value(kernel.type.shape, DType::float32, 6);
      const Value old_bias = random_value(bias.type.shape, DType::float32, 7);
      std::vector<double> sum_kernel = dkernel, sum_bias = dbias;
      if (accumulate) {
        for (std::size_t i = 0; i < dkernel.size(); ++i) sum_kernel[i] += old_kernel.values[i];
        for (std::size_t i = 0; i < dbias.size(); ++i) sum_bias[i] += old_bias.values[i];
      }
      const auto by_weights = std::make_shared<Conv2dGradWeights>(w, c.groups, true, accumulate);
      KernelChoices measured;
      const auto check = [&](KernelChoices& use) {
        Lowering lowering;
        const auto got = run_op(*backend, by_weights, {x, dy}, {old_kernel, old_bias}, &use, &lowering);
        CAPTURE(lowering.implementation);
        CHECK(largest_error(got[0], sum_kernel) < 1e-4);  // thousands of terms in float32, in any order
        CHECK(largest_error(got[1], sum_bias) < 2e-5);
        return lowering.implementation;
      };
      check(measured);
      for (const std::string& name : own_weight_gradients(c, dtype)) {
        KernelChoices own = replaced(measured, name);
        CHECK(check(own) == name);
      }
    }
  }
}

TEST_CASE(
    "implementations of the weight gradient that write past their scratch memory are not used, even if recorded") {
  const auto backend = make_cpu_backend({.threads = 2});
  const Window w{{1, 1}, {2, 2}, {1, 1}, {0, 0}, {0, 0}};
  const std::vector<Value> inputs{random_value({2, 12, 12, 3}, DType::float32, 1),
                                  random_value({2, 6, 6, 16}, DType::float32, 2)};
  const auto op = std::make_shared<Conv2dGradWeights>(w, 1, false, false);
  KernelChoices measured;
  const auto expected = run_op(*backend, op, inputs, {}, &measured);
  for (const char* name : {"jit_1x1:avx2", "jit_1x1:avx512_core"}) {
    KernelChoices recorded = replaced(measured, name);
    Lowering lowering;
    const auto got = run_op(*backend, op, inputs, {}, &recorded, &lowering);
    CHECK(lowering.implementation.find("jit_1x1") == std::string::npos);
    CHECK(largest_error(got[0], expected[0].values) < 2e-5);
  }
}

TEST_CASE("the gradient of a kernel by taps has the same bits for any number of threads") {
  const Window w{{3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}};
  const Value x = random_value({4, 8, 7, 40}, DType::float32, 1), dy = random_value({4, 8, 7, 96}, DType::float32, 2);
  if (!cpu::Conv2dWeightsByTaps::computes(dy.type.shape, 1, DType::float32)) return;
  const auto op = std::make_shared<Conv2dGradWeights>(w, 1, false, false);
  std::vector<std::vector<double>> results;
  for (const int threads : {1, 2, 3, 5}) {
    const auto backend = make_cpu_backend({.threads = threads});
    KernelChoices measured;
    run_op(*backend, op, {x, dy}, {}, &measured);
    KernelChoices by_taps = replaced(measured, cpu::Conv2dWeightsByTaps::name());
    Lowering lowering;
    results.push_back(run_op(*backend, op, {x, dy}, {}, &by_taps, &lowering)[0].values);
    CHECK(lowering.implementation == cpu::Conv2dWeightsByTaps::name());
    CHECK(results.back() == results.front());
  }
}

TEST_CASE("recorded choices are replayed, also by another backend") {
  const auto first = make_cpu_backend({}), second = make_cpu_backend({});
  const Window w{{3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}};
  const Value x = random_value({4, 16, 16, 16}, DType::float32, 1);
  const Value kernel = random_value({3, 3, 16, 16}, DType::float32, 2);
  const auto op = std::make_shared<Conv2d>(w, 1);
  KernelChoices measured, replayed;
  Lowering one, two;
  const auto y = run_op(*first, op, {x, kernel}, {}, &measured, &one);
  REQUIRE(measured.size() == 1);
  replayed.add(measured.text());
  REQUIRE(replayed == measured);
  const auto again = run_op(*second, op, {x, kernel}, {}, &replayed, &two);
  CHECK(replayed == measured);
  CHECK(one.implementation == two.implementation);
  CHECK(one.inputs[1] == two.inputs[1]);
  CHECK(y[0].values == again[0].values);
}

}  // namespace trainctl::test::conv2d_test
