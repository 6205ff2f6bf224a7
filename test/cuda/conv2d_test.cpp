// Compares every candidate for a convolution on CUDA with naive loops in float64, in every dtype.
#include <set>
#include <sstream>

#include "core/graph/ops/elementwise/activations.h"
#include "core/graph/ops/images/convolution.h"
#include "test/catch.h"
#include "test/core/backend/convolution_cases.h"

namespace trainctl::test::conv2d_test {
namespace {

// Returns the choices with this candidate for every convolution.
KernelChoices replaced(const KernelChoices& choices, const std::string& candidate) {
  KernelChoices all;
  std::istringstream lines(choices.text());
  for (std::string line; std::getline(lines, line);) {
    const std::string key = line.substr(0, line.find('\t'));
    all.record(key, key.starts_with("conv2d") ? candidate : line.substr(key.size() + 1));
  }
  return all;
}

// The tolerance for sums of many terms, which are rounded to the dtype if they are stored in it.
double tolerance_of(DType dtype) { return dtype == DType::float32 ? 1e-4 : dtype == DType::bfloat16 ? 2e-2 : 3e-3; }

// A case's tensors, and the expected results of its ops.
struct Expected {
  Value x, kernel, bias, dy, base;
  std::vector<double> y, y_bias_relu, dx, dx_added, dkernel, dbias;

  Expected(const ConvolutionCase& c, DType dtype)
      : x(random_value(c.x, dtype, 1)),
        kernel(random_value(c.kernel(), DType::float32, 2, -0.3, 0.3)),
        bias(random_value({c.out}, DType::float32, 3)),
        dy(random_value(c.y(), dtype, 4)),
        base(random_value(c.x, dtype, 5)),
        y(dy.values.size()),
        dx(x.values.size()),
        dkernel(kernel.values.size()),
        dbias(bias.values.size()) {
    each_product(c, [&](std::size_t at_x, std::size_t at_kernel, std::size_t at_y) {
      const double weight = round_to(dtype, kernel.values[at_kernel]);
      y[at_y] += x.values[at_x] * weight;
      dx[at_x] += dy.values[at_y] * weight;
      dkernel[at_kernel] += x.values[at_x] * dy.values[at_y];
    });
    for (std::size_t i = 0; i < dx.size(); ++i) dx_added.push_back(base.values[i] + dx[i]);
    for (std::size_t i = 0; i < y.size(); ++i) {
      y_bias_relu.push_back(std::max(y[i] + bias.values[i % bias.values.size()], 0.0));
      dbias[i % dbias.size()] += dy.values[i];
    }
  }
};

// Runs all ops of a case with these choices and adds new ones to them. `implementations`: the implementations that ran.
void check_case(Backend& backend, const ConvolutionCase& c, DType dtype, KernelChoices& choices,
                std::set<std::string>* implementations = nullptr) {
  const Expected e(c, dtype);
  const double tolerance = tolerance_of(dtype);
  std::string ran;
  const auto run = [&](std::shared_ptr<const OpDef> def, const std::vector<Value>& inputs,
                       const std::vector<Value>& before = {}, OutputPlaces places = OutputPlaces::apart) {
    Lowering lowering;
    auto outputs = run_op(backend, std::move(def), inputs, before, &choices, &lowering, places);
    ran = lowering.implementation;
    if (implementations) implementations->insert(ran);
    return outputs;
  };
  const auto check = [&](const Value& got, const std::vector<double>& expected) {
    CAPTURE(ran);
    CHECK(largest_error(got, expected) < tolerance);
  };
  check(run(std::make_shared<Conv2d>(c.window, c.groups), {e.x, e.kernel})[0], e.y);
  const auto fused = std::make_shared<Conv2d>(c.window, c.groups, ActivationFunction{ActivationKind::relu});
  check(run(fused, {e.x, e.kernel, e.bias})[0], e.y_bias_relu);
  const auto by_input = std::make_shared<Conv2dGradInput>(c.window, c.groups, c.x);
  check(run(by_input, {e.dy, e.kernel})[0], e.dx);
  const auto added = std::make_shared<Conv2dGradInput>(c.window, c.groups, c.x, true);
  for (const OutputPlaces places : {OutputPlaces::apart, OutputPlaces::in_place}) {
    check(run(added, {e.dy, e.kernel, e.base}, {}, places)[0], e.dx_added);
  }
  for (const bool add : {false, true}) {
    const Value kernel_before = random_value(c.kernel(), DType::float32, 6);
    const Value bias_before = random_value({c.out}, DType::float32, 7);
    std::vector<double> dkernel = e.dkernel, dbias = e.dbias;
    for (std::size_t i = 0; add && i < dkernel.size(); ++i) dkernel[i] += kernel_before.values[i];
    for (std::size_t i = 0; add && i < dbias.size(); ++i) dbias[i] += bias_before.values[i];
    const auto by_weights = std::make_shared<Conv2dGradWeights>(c.window, c.groups, true, add);
    const auto outputs = run(by_weights, {e.x, e.dy}, {kernel_before, bias_before});
    check(outputs[0], dkernel);
    CHECK(largest_error(outputs[1], dbias) < 1e-4);
  }
}

// Checks all cases in a dtype with the fastest engines and with the heuristics' first, then with the recorded ones.
void check_cases(DType dtype) {
  const auto backend = backend_under_test({.threads = 3, .timing = GENERATE(true, false)});
  for (const ConvolutionCase& c : convolution_cases) {
    if (c.x.count() > 5000) continue;  // too slow on a CPU
    CAPTURE(name_of(dtype), c.what);
    KernelChoices choices;
    check_case(*backend, c, dtype, choices);
    KernelChoices replayed;
    replayed.add(choices.text());
    check_case(*backend, c, dtype, replayed);
    CHECK(replayed == choices);
  }
}

}  // namespace

// There is a test for each dtype, since each takes long on a cold GPU.
TEST_CASE("conv2d on CUDA is right in float32, forward and backward, timed or not") { check_cases(DType::float32); }

TEST_CASE("conv2d on CUDA is right in bfloat16, forward and backward, timed or not") { check_cases(DType::bfloat16); }

TEST_CASE("conv2d on CUDA is right in float16, forward and backward, timed or not") { check_cases(DType::float16); }

// Another one is chosen for candidates that do not exist on the device or for the op.
TEST_CASE("every recorded candidate for conv2d on CUDA computes the same") {
  const auto backend = backend_under_test({.timing = false});
  const DType dtype = GENERATE(DType::float32, DType::bfloat16);
  const ConvolutionCase unit{"1x1", {3, 5, 7, 24}, 16, 1, {}};
  for (const ConvolutionCase& c : {convolution_cases[0], convolution_cases[2], unit}) {
    KernelChoices chosen;
    check_case(*backend, c, dtype, chosen);
    for (const std::string candidate : {"engine 0:", "engine 1:17=3", "fused 0:", "fused 1:17=4", "product",
                                        "engine 99999:", "engine 0:0=0=0", "own", ""}) {
      CAPTURE(name_of(dtype), c.what, candidate);
      KernelChoices choices = replaced(chosen, candidate);
      std::set<std::string> implementations;
      check_case(*backend, c, dtype, choices, &implementations);
      if (candidate != "product" || std::string(c.what) != unit.what) continue;
      for (const std::string& name : implementations) CHECK(name.starts_with("cublasLt"));
    }
  }
}

TEST_CASE("convolutions of few channels on CUDA are right with this project's kernels") {
  const auto backend = backend_under_test({.timing = false});
  const DType dtype = GENERATE(DType::bfloat16, DType::float16);
  const std::string forward = GENERATE("own, 64 columns", "own, 32 columns");
  int cases = 0;
  for (const ConvolutionCase& c : convolution_cases) {
    if (c.x[3] != 3 && c.x[3] != 4) continue;
    ++cases;
    CAPTURE(name_of(dtype), c.what, forward);
    KernelChoices chosen;
    check_case(*backend, c, dtype, chosen);
    KernelChoices choices;
    std::istringstream lines(chosen.text());
    for (std::string line; std::getline(lines, line);) {
      const std::string key = line.substr(0, line.find('\t'));
      const bool by_weights = key.starts_with("conv2d_grad_weights"), by_input = key.starts_with("conv2d_grad_input");
      choices.record(key, by_weights ? "own" : by_input ? line.substr(key.size() + 1) : forward);
    }
    std::set<std::string> implementations;
    check_case(*backend, c, dtype, choices, &implementations);
    CHECK(implementations.count("own") == 1);
    CHECK(implementations.count(forward) == 1);
  }
  CHECK(cases == 4);
}

}  // namespace trainctl::test::conv2d_test
