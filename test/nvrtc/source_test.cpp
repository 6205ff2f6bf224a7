// Tests that NVRTC, on machines without a GPU, compiles the sources of elementwise kernels for all GPUs that trainctl
// supports.
#include "core/backend/cuda/runtime_compiled/source.h"
#include "core/backend/cuda/runtime_compiled/nvrtc.h"
#include "core/backend/cuda/runtime_compiled/nvrtc_library.h"
#include "core/base/error.h"
#include "core/expression/scalar_graph.h"
#include "test/catch.h"

namespace trainctl::test::nvrtc_source_test {
namespace {
using namespace trainctl::cuda;

// A program with every function of the inputs 0, 1 and 2, whose result is the sum of all values.
ElementwiseProgram program_of_all() {
  ScalarGraph graph;
  const int x = graph.of_input(0), y = graph.of_input(1), z = graph.of_input(2);
  int sum = graph.of_constant(0.1);
  for (int f = static_cast<int>(ScalarFunction::negative); f <= static_cast<int>(ScalarFunction::where); ++f) {
    const auto function = static_cast<ScalarFunction>(f);
    const int count = operands_of(function);
    sum = graph.apply(ScalarFunction::add, sum, graph.apply(function, x, count > 1 ? y : -1, count > 2 ? z : -1));
  }
  const int results[] = {sum, graph.apply(ScalarFunction::multiply, x, graph.of_constant(1e-40))};
  return graph.program(results);
}

ElementwiseKernelSpec spec(const std::vector<TensorType>& inputs, const Shape& to, std::vector<DType> outputs) {
  ElementwiseKernelSpec made{program_of_all(), broadcast_view(inputs, to), {}, std::move(outputs)};
  for (const TensorType& input : inputs) made.inputs.push_back(input.dtype);
  return made;
}

bool has_nvrtc() {
  if (nvrtc_version().empty()) WARN("this machine has no NVRTC");
  return !nvrtc_version().empty();
}

}  // namespace

TEST_CASE("NVRTC compiles every function, every dtype and every kind of shape") {
  if (!has_nvrtc()) return;
  constexpr DType f32 = DType::float32, bf16 = DType::bfloat16, f16 = DType::float16;
  const ElementwiseKernelSpec specs[] = {
      spec({{{64, 8}, bf16}, {{64, 8}, f32}, {{64, 8}, f16}}, {64, 8}, {bf16, f16}),  // packs of one dimension
      spec({{{1001}, f32}, {{1001}, DType::int32}, {{1001}, DType::uint8}}, {1001}, {f32, f32}),  // with a rest
      spec({{{2, 3, 16}, bf16}, {{16}, f32}, {{3, 1}, f32}}, {2, 3, 16}, {bf16, f32}),            // packs of a row
      spec({{{7, 1, 3}, f32}, {{1, 5, 1}, f32}, {{}, f32}}, {7, 5, 3}, {f32, f32}),               // single elements
      spec({{{1 << 16, 1 << 15}, f16}, {{1 << 15}, f32}, {{}, f32}}, {1 << 16, 1 << 15},
           {f16, f32})};  // 64-bit indices
  for (const ElementwiseKernelSpec& of : specs) {
    const std::string source = elementwise_source(of).text;
    for (const int capability : {80, 90}) {
      CAPTURE(capability);
      const std::string code = compile_source(source, capability);
      CHECK(code.substr(0, 4) == "\177ELF");
      CHECK(code.find(elementwise_kernel_name) != std::string::npos);
    }
    CHECK(compile_source(source, 1000).find(".visible .entry compute(") != std::string::npos);  // a later GPU
  }
}

TEST_CASE("an error has the compiler's message") {
  if (!has_nvrtc()) return;
  try {
    compile_source("__global__ void compute() { unknown(); }", 80);
    FAIL("compiled");
  } catch (const Error& error) {
    CHECK(std::string(error.what()).find("\"unknown\" is undefined") != std::string::npos);
  }
}

TEST_CASE("broadcast inputs have few dimensions") {
  const std::vector<TensorType> inputs{
      {{4, 1, 3, 5}, DType::float32}, {{2, 3, 5}, DType::float32}, {{}, DType::float32}};
  const BroadcastView view = broadcast_view(inputs, {4, 2, 3, 5});
  CHECK(view.sizes == std::vector<std::int64_t>{4, 2, 15});
  CHECK(view.strides == std::vector<std::vector<std::int64_t>>{{15, 0, 1}, {0, 15, 1}, {0, 0, 0}});
  CHECK(!view.is_flat());
  const TensorType same{{4, 1, 6}, DType::float32};
  CHECK(broadcast_view(std::vector{same, same}, same.shape).is_flat());
  CHECK(broadcast_view(std::vector<TensorType>{{{}, DType::float32}}, {1, 1}).sizes == std::vector<std::int64_t>{1});
}

}  // namespace trainctl::test::nvrtc_source_test
