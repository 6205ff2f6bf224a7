// Compares dense kernels with naive sums in float64.
#include "core/graph/ops/dense.h"
#include "test/catch.h"
#include "test/core/backend/run_op.h"

namespace trainctl::test::dense_test {
namespace {

struct Sizes {
  std::int64_t samples, in, out;
};

// The tolerance for sums of hundreds of products of values below 1.
double tolerance(DType dtype) { return dtype == DType::float32 ? 2e-5 : 2e-2; }

std::vector<double> product(const std::vector<double>& a, const std::vector<double>& b, std::int64_t m, std::int64_t k,
                            std::int64_t n, bool transpose_a, bool transpose_b) {
  std::vector<double> c(static_cast<std::size_t>(m * n));
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (std::int64_t p = 0; p < k; ++p) {
        sum += a[static_cast<std::size_t>(transpose_a ? p * m + i : i * k + p)] *
               b[static_cast<std::size_t>(transpose_b ? j * k + p : p * n + j)];
      }
      c[static_cast<std::size_t>(i * n + j)] = sum;
    }
  }
  return c;
}

// Returns the parameters that the kernel computes with: in bfloat16 it rounds them first.
Value as_computed(Value value, DType dtype) {
  for (double& v : value.values) v = round_to(dtype, v);
  return value;
}

void check_dense(Backend& backend, DType dtype, const Sizes& s, KernelChoices& choices) {
  CAPTURE(name_of(dtype), s.samples, s.in, s.out);
  const Value x = random_value({s.samples, s.in}, dtype, 1);
  const Value kernel = random_value({s.in, s.out}, DType::float32, 2, -0.3, 0.3);
  const Value bias = random_value({s.out}, DType::float32, 3);
  const Value used = as_computed(kernel, dtype);

  std::vector<double> y = product(x.values, used.values, s.samples, s.in, s.out, false, false);
  CHECK(largest_error(run_op(backend, std::make_shared<Dense>(), {x, kernel}, {}, &choices)[0], y) < tolerance(dtype));
  for (std::size_t i = 0; i < y.size(); ++i) {
    y[i] = std::max(y[i] + bias.values[i % static_cast<std::size_t>(s.out)], 0.0);
  }
  const ActivationFunction relu{ActivationKind::relu};
  CHECK(largest_error(run_op(backend, std::make_shared<Dense>(relu), {x, kernel, bias}, {}, &choices)[0], y) <
        tolerance(dtype));

  const Value dy = random_value({s.samples, s.out}, dtype, 4);
  std::vector<double> dx = product(dy.values, used.values, s.samples, s.out, s.in, false, true);
  CHECK(largest_error(run_op(backend, std::make_shared<DenseGradInput>(), {dy, kernel}, {}, &choices)[0], dx) <
        tolerance(dtype));
  const Value base = random_value({s.samples, s.in}, dtype, 8);
  std::vector<double> sum = dx;
  for (std::size_t i = 0; i < dx.size(); ++i) sum[i] += base.values[i];
  for (const OutputPlaces places : {OutputPlaces::apart, OutputPlaces::in_place}) {
    const auto added = std::make_shared<DenseGradInput>(ActivationFunction{}, true);
    CHECK(largest_error(run_op(backend, added, {dy, kernel, base}, {}, &choices, nullptr, places)[0], sum) <
          tolerance(dtype));
  }
  const Value mask = random_value({s.samples, s.in}, dtype, 5);
  for (std::size_t i = 0; i < dx.size(); ++i) dx[i] = mask.values[i] > 0 ? dx[i] : 0;
  CHECK(largest_error(run_op(backend, std::make_shared<DenseGradInput>(relu), {dy, kernel, mask}, {}, &choices)[0],
                      dx) < tolerance(dtype));

  for (bool accumulate : {false, true}) {
    std::vector<double> dkernel = product(x.values, dy.values, s.in, s.samples, s.out, true, false);
    std::vector<double> dbias(static_cast<std::size_t>(s.out));
    for (std::size_t i = 0; i < dy.values.size(); ++i) dbias[i % dbias.size()] += dy.values[i];
    const Value old_kernel = random_value(kernel.type.shape, DType::float32, 6);
    const Value old_bias = random_value(bias.type.shape, DType::float32, 7);
    if (accumulate) {
      for (std::size_t i = 0; i < dkernel.size(); ++i) dkernel[i] += old_kernel.values[i];
      for (std::size_t i = 0; i < dbias.size(); ++i) dbias[i] += old_bias.values[i];
    }
    const auto got = run_op(backend, std::make_shared<DenseGradWeights>(true, accumulate), {x, dy},
                            {old_kernel, old_bias}, &choices);
    CHECK(largest_error(got[0], dkernel) < 2e-5);  // products of bfloat16 values are also summed in float32
    CHECK(largest_error(got[1], dbias) < 2e-5);
  }
}

}  // namespace

TEST_CASE("dense and its gradients of the input and the weights follow the definition") {
  const auto backend = backend_under_test({.threads = GENERATE(1, 2)});
  const DType dtype = GENERATE(DType::float32, DType::bfloat16);
  const Sizes sizes = GENERATE(Sizes{64, 784, 256}, Sizes{7, 13, 10}, Sizes{1, 5, 1}, Sizes{33, 128, 128});
  KernelChoices choices;
  check_dense(*backend, dtype, sizes, choices);
}

TEST_CASE("products with many columns or rows are computed in halves") {
  const auto backend = backend_under_test({.threads = GENERATE(1, 2), .timing = false});
  const Sizes sizes = GENERATE(Sizes{21, 1536, 40}, Sizes{21, 40, 1568}, Sizes{8, 1600, 2048});
  KernelChoices choices;
  check_dense(*backend, DType::float32, sizes, choices);
  if (backend->on_host()) CHECK(choices.text().find("\thalves\n") != std::string::npos);
}

}  // namespace trainctl::test::dense_test
