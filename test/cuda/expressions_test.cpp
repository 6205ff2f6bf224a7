// Tests what only CUDA's kernels of expressions do: float16, addresses without the alignment of packs, recordings, and
// sums that are dealt to several columns.
#include <cmath>

#include "core/backend/choices.h"
#include "core/expression/scalar_graph.h"
#include "core/graph/ops/elementwise/elementwise.h"
#include "core/graph/ops/reduce.h"
#include "core/program/program.h"
#include "test/catch.h"
#include "test/core/backend/run_op.h"

namespace trainctl::test::cuda_expressions_test {
namespace {

// x * sigmoid(beta * x)
std::shared_ptr<Elementwise> swish(DType result) {
  using enum ScalarFunction;
  ScalarGraph graph;
  const int x = graph.of_input(0), beta = graph.of_input(1);
  const int results[] = {
      graph.apply(multiply, x, graph.apply(ScalarFunction::sigmoid, graph.apply(multiply, beta, x)))};
  return std::make_shared<Elementwise>(graph.program(results), std::vector{result});
}

double swish_of(double x, double beta) { return x / (1 + std::exp(-beta * x)); }

double tolerance(DType dtype) { return dtype == DType::float32 ? 2e-6 : dtype == DType::float16 ? 1e-3 : 8e-3; }

// The kernel of an expression of x and beta, which both have this shape. On the device, x, beta and the results begin
// `shift` elements after the beginning of their allocations.
struct Bound {
  Backend& backend;
  Value x, beta;
  std::unique_ptr<Stream> stream = backend.compute_stream();
  std::vector<Memory> memory;
  Address y;
  std::unique_ptr<Kernel> kernel;

  Bound(Backend& on, const Shape& shape, int shift)
      : backend(on), x(random_value(shape, DType::float32, 1, -3, 3)), beta(random_value(shape, DType::float32, 2)) {
    Program program;
    KernelChoices choices;
    program.tensors = {{.name = "x", .type = x.type}, {.name = "beta", .type = x.type}, {.name = "y", .type = x.type}};
    const Layout layout = logical_layout(x.type);
    const Op op{swish(DType::float32), {0, 1}, {2}, "swish", {}};
    const Lowering lowering = backend.lower(op, program, {layout, layout}, choices);
    y = address(shift);
    kernel = lowering.bind({{write(x, address(shift)), write(beta, address(shift))}, {y}, {}});
  }
  Address address(int shift) {
    memory.push_back(backend.allocate(x.type.bytes() + 4 * shift));
    return Address{memory.back().get(), 4 * shift};
  }
  Address write(const Value& value, Address to) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(value.type.bytes()));
    write_values(value, bytes.data());
    backend.copy(to.as<std::byte>({}), bytes.data(), std::ssize(bytes), *stream);
    stream->synchronize();
    return to;
  }
  double error() {
    std::vector<std::byte> bytes(static_cast<std::size_t>(x.type.bytes()));
    backend.copy(bytes.data(), y.as<std::byte>({}), std::ssize(bytes), *stream);
    stream->synchronize();
    std::vector<double> expected;
    for (std::size_t i = 0; i < x.values.size(); ++i) expected.push_back(swish_of(x.values[i], beta.values[i]));
    return largest_error(read_values(x.type, bytes.data()), expected);
  }
};

}  // namespace

TEST_CASE("expressions of every floating-point dtype, with and without packs") {
  const auto backend = backend_under_test();
  for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
    for (const Shape& shape : {Shape{64, 24}, Shape{1003}, Shape{7, 3}, Shape{5}, Shape{1}, Shape{}}) {
      CAPTURE(name_of(dtype), to_string(shape));
      const Value x = random_value(shape, dtype, 3, -4, 4);
      const Value beta = random_value(shape.rank() == 2 ? Shape{shape[0], 1} : Shape{}, DType::float16, 4);
      const Value found = run_op(*backend, swish(dtype), {x, beta})[0];
      std::vector<double> expected;
      for (std::size_t i = 0; i < x.values.size(); ++i) {
        const std::size_t row = beta.values.size() == 1 ? 0 : i / static_cast<std::size_t>(shape[1]);
        expected.push_back(swish_of(x.values[i], beta.values[row]));
      }
      CHECK(largest_error(found, expected) < tolerance(dtype));
    }
  }
}

TEST_CASE("expressions of float16 round to the nearest value, to the even one in the middle") {
  const auto backend = backend_under_test();
  ScalarGraph graph;
  const int results[] = {graph.of_input(0)};
  const Value x = row({1 + 0x1p-11, 1 + 0x3p-11, -1 - 0x1p-11 - 0x1p-20, 65504, 1e6, 0x1p-24, 0});
  for (const DType dtype : {DType::float16, DType::bfloat16}) {
    const auto copy = std::make_shared<Elementwise>(graph.program(results), std::vector{dtype});
    const Value found = run_op(*backend, copy, {x})[0];
    for (std::size_t i = 0; i < x.values.size(); ++i) CHECK(found.values[i] == round_to(dtype, x.values[i]));
  }
}

TEST_CASE("expressions at addresses without alignment") {
  const auto backend = backend_under_test();
  for (const int shift : {0, 1, 2, 3}) {
    Bound bound(*backend, {9, 40}, shift);
    bound.kernel->run(*bound.stream, {});
    CHECK(bound.error() < 2e-6);
  }
}

TEST_CASE("expressions run again in a recording") {
  const auto backend = backend_under_test();
  Bound bound(*backend, {33, 5}, 0);
  const auto recording = backend->record(*bound.stream, [&] { bound.kernel->run(*bound.stream, {}); });
  REQUIRE(recording != nullptr);
  CHECK(bound.error() > 1e-2);  // nothing has run
  recording->run(*bound.stream);
  CHECK(bound.error() < 2e-6);
}

TEST_CASE("reductions of long columns and rows in every dtype") {
  const auto backend = backend_under_test();
  struct Case {
    Shape x;
    int begin, end;
  };
  const Case cases[] = {
      {{3, 700, 3}, 1, 2}, {{1500, 16}, 0, 1}, {{1, 2000, 7}, 1, 2}, {{2, 70'000}, 1, 2}, {{600, 72}, 1, 2}};
  for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
    for (const Case& of : cases) {
      for (const ReduceKind kind : {ReduceKind::sum, ReduceKind::maximum}) {
        CAPTURE(name_of(dtype), to_string(of.x), static_cast<int>(kind));
        const Value x = random_value(of.x, dtype, 5);
        const auto outer = static_cast<std::size_t>(of.begin == 1 ? of.x[0] : 1);
        const auto count = static_cast<std::size_t>(of.x[of.begin]);
        const std::size_t inner = x.values.size() / outer / count;
        std::vector<double> expected(outer * inner, kind == ReduceKind::sum ? 0 : -2);
        for (std::size_t i = 0; i < x.values.size(); ++i) {
          double& to = expected[i / inner / count * inner + i % inner];
          to = kind == ReduceKind::sum ? to + x.values[i] : std::max(to, x.values[i]);
        }
        const auto def = std::make_shared<Reduce>(kind, of.begin, of.end);
        def->dtype = kind == ReduceKind::sum ? DType::float32 : dtype;
        const Value found = run_op(*backend, def, {x})[0];
        CHECK(largest_error(found, expected) < 1e-5);
        CHECK(run_op(*backend, def, {x})[0].values == found.values);
        if (kind == ReduceKind::sum) continue;
        Value broken = x;
        broken.values[x.values.size() / 2] = std::nan("");
        CHECK(std::isnan(run_op(*backend, def, {broken})[0]
                             .values[x.values.size() / 2 / inner / count * inner + x.values.size() / 2 % inner]));
      }
    }
  }
}

}  // namespace trainctl::test::cuda_expressions_test
