// Compares every op case with PyTorch's values, in each dtype, fused and not, and with finite differences.
#include <cmath>
#include <random>

#include "core/backend/select.h"
#include "test/catch.h"
#include "test/core/ops/run_case.h"

namespace trainctl::test::op_cases_test {
namespace {

std::vector<Value> inputs_of(const Golden& golden, const OpCase& which, DType dtype) {
  std::vector<Value> inputs = golden.numbered(which.name + "/in");
  REQUIRE(inputs.size() == which.inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const DType wanted = dtype_of(which.inputs[i], inputs[i], dtype);
    if (wanted != inputs[i].type.dtype) inputs[i] = in_dtype(inputs[i], wanted);
  }
  return inputs;
}

double product(const Value& a, const Value& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.values.size(); ++i) sum += a.values[i] * b.values[i];
  return sum;
}

// Computes central differences of the sum of the first output times `weights`, for one element of an input.
class Slopes {
 public:
  Slopes(CaseRun& run, std::vector<Value> inputs, const Value& weights)
      : run_(run), inputs_(std::move(inputs)), weights_(weights) {}

  double slope(std::size_t input, std::size_t element, double step) {
    double& value = inputs_[input].values[element];
    const double middle = value;
    value = round_to(DType::float32, middle + step);
    const double above = value, sum_above = product(run_.forward(inputs_)[0], weights_);
    value = round_to(DType::float32, middle - step);
    const double below = value, sum_below = product(run_.forward(inputs_)[0], weights_);
    value = middle;
    return (sum_above - sum_below) / (above - below);
  }

 private:
  CaseRun& run_;
  std::vector<Value> inputs_;
  const Value& weights_;
};

// The cases, and the file with their values.
struct Suite {
  const std::vector<OpCase>& cases;
  const char* values;
};

Suite suite(bool expressions) {
  return expressions ? Suite{expression_cases(), "expressions.safetensors"} : Suite{op_cases(), "ops.safetensors"};
}

}  // namespace

TEST_CASE("ops and expressions have PyTorch's values and gradients") {
  const auto backend = backend_under_test();
  const Suite suite_under_test = suite(GENERATE(false, true));
  const Golden golden(suite_under_test.values);
  const DType dtype = GENERATE(DType::float32, DType::bfloat16, DType::float16);
  if (!backend->computes_in(dtype)) return;
  const bool fused = GENERATE(false, true);
  KernelChoices choices;
  for (const OpCase& which : suite_under_test.cases) {
    CAPTURE(which.name, name_of(dtype), fused);
    const std::vector<Value> inputs = inputs_of(golden, which, dtype);
    const Value gradient = golden.at(which.name + "/dout");
    // The second time, gradients are added to values that are there already.
    for (const double before : {0.0, 0.5}) {
      CaseRun run(which, {dtype, fused, before != 0}, inputs, *backend, choices);
      const auto outputs = run.forward(inputs);
      const auto expected = golden.numbered(which.name + "/out");
      REQUIRE(outputs.size() == expected.size());
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        CAPTURE(i);
        check_close(outputs[i], expected[i], dtype);
      }
      const auto gradients = run.backward(gradient, before);
      for (std::size_t i = 0; i < gradients.size(); ++i) {
        CAPTURE(i, before);
        if (which.inputs[i] == 'c') continue;
        Value wanted = golden.at(which.name + "/din" + std::to_string(i));
        if (which.inputs[i] == 'p') {
          for (double& v : wanted.values) v += before;
        }
        check_close(gradients[i], wanted, dtype);
      }
    }
  }
}

TEST_CASE("gradients of ops and expressions agree with finite differences") {
  const auto backend = backend_under_test();
  const Suite suite_under_test = suite(GENERATE(false, true));
  const Golden golden(suite_under_test.values);
  std::mt19937 random(3);
  KernelChoices choices;
  for (const OpCase& which : suite_under_test.cases) {
    if (!which.smooth) continue;
    const std::vector<Value> inputs = inputs_of(golden, which, DType::float32);
    const Value weights = golden.at(which.name + "/dout");
    CaseRun run(which, {DType::float32, true, false}, inputs, *backend, choices);
    run.forward(inputs);
    const auto gradients = run.backward(weights);
    Slopes slopes(run, inputs, weights);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (which.inputs[i] == 'c') continue;
      const double typical = magnitude(gradients[i].values);
      int compared = 0;
      for (int draw = 0; draw < 20 && compared < 4; ++draw) {
        const auto element = random() % inputs[i].values.size();
        const double wide = slopes.slope(i, element, 0x1p-7), narrow = slopes.slope(i, element, 0x1p-8);
        const double scale = std::abs(narrow) + typical;
        if (std::abs(wide - narrow) > 0.002 * scale) continue;  // close to a kink
        ++compared;
        CAPTURE(which.name, i, element, narrow, gradients[i].values[element]);
        CHECK(std::abs(gradients[i].values[element] - narrow) < 0.005 * scale);
      }
      CAPTURE(which.name, i);
      CHECK(compared == 4);
    }
  }
}

}  // namespace trainctl::test::op_cases_test
