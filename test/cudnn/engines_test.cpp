// Tests the engines of the installed cuDNN for an H100, on machines without one: there are engines for every
// convolution that a config can describe, they follow the rules, and they can be made again from their text.
#include "test/catch.h"
#include "test/cuda/patterns/patterns.h"
#include "test/cudnn/described_gpu.h"

namespace trainctl::engines_test {
using namespace trainctl::cuda;

namespace {

struct Case {
  const char* what;
  Shape x;
  std::int64_t out, groups;
  Window window;

  ConvolutionShape shape(DType dtype) const {
    return {window, groups, x, {x[0], window.output(0, x[1]), window.output(1, x[2]), out}, dtype};
  }
};

const Case cases[] = {
    {"ResNet-50's first", {256, 224, 224, 3}, 64, 1, {{7, 7}, {2, 2}, {1, 1}, {3, 3}, {3, 3}}},
    {"ResNet-50's 3x3", {256, 56, 56, 64}, 64, 1, {{3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}}},
    {"ResNet-50's last", {256, 14, 14, 512}, 512, 1, {{3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}}},
    {"1x1", {256, 56, 56, 64}, 256, 1, {{1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}}},
    {"1x1, stride 2", {256, 56, 56, 256}, 512, 1, {{1, 1}, {2, 2}, {1, 1}, {0, 0}, {0, 0}}},
    {"ResNet-20's first", {128, 32, 32, 3}, 16, 1, {{3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}}},
    {"ResNet-20's 3x3", {128, 32, 32, 16}, 16, 1, {{3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}}},
    {"stride 2, padding on one side (as in same)", {256, 56, 56, 128}, 128, 1, {{3, 3}, {2, 2}, {1, 1}, {}, {1, 1}}},
    {"the same, odd sizes", {2, 9, 8, 3}, 16, 1, {{3, 3}, {2, 2}, {1, 1}, {0, 0}, {1, 1}}},
    {"grey images", {64, 28, 28, 1}, 6, 1, {{5, 5}, {1, 1}, {1, 1}, {2, 2}, {2, 2}}},
    {"odd channels, oblong", {2, 7, 11, 13}, 10, 1, {{5, 2}, {1, 2}, {1, 1}, {2, 0}, {1, 1}}},
    {"groups", {2, 6, 6, 12}, 8, 4, {{3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}}},
    {"many groups", {64, 28, 28, 128}, 128, 32, {{3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}}},
    {"depthwise", {64, 28, 28, 96}, 96, 96, {{3, 3}, {2, 2}, {1, 1}, {0, 0}, {1, 1}}},
    {"dilation", {1, 11, 9, 8}, 16, 1, {{3, 3}, {1, 1}, {2, 3}, {2, 3}, {2, 3}}},
    {"stride 3, far padding", {2, 10, 11, 6}, 40, 1, {{4, 7}, {3, 3}, {1, 1}, {3, 6}, {0, 5}}},
};

constexpr DType dtypes[] = {DType::float32, DType::bfloat16, DType::float16};

bool too_old() {
  if (cudnnGetVersion() >= 90800) return false;
  WARN("skipped: describing a GPU needs cuDNN 9.8 or later");
  return true;
}

}  // namespace

TEST_CASE("cuDNN has deterministic engines for every convolution") {
  if (too_old()) return;
  const Descriptor gpu = test::described_h100();
  const GraphTarget target{nullptr, &gpu};
  for (const Case& c : cases) {
    for (DType dtype : dtypes) {
      for (auto direction : {Convolving::forward, Convolving::input_gradient, Convolving::weight_gradient}) {
        CAPTURE(c.what, name_of(dtype), static_cast<int>(direction));
        Graph graph = convolution_graph(direction, c.shape(dtype), dtype);
        REQUIRE(graph.finalize(target));
        const EngineRules rules{.deterministic = true, .tensor_cores = dtype != DType::float32};
        const auto engines = list_engines(graph, target, rules);
        CHECK(!engines.empty());
        CHECK(static_cast<int>(engines.size()) <= rules.max_engines);
        for (const std::string& engine : engines) {
          CAPTURE(engine);
          const auto plan = Plan::make(graph, target, engine);
          REQUIRE(plan.has_value());
          CHECK(plan->workspace_bytes() <= rules.max_workspace_bytes);
        }
      }
    }
  }
}

TEST_CASE("cuDNN has deterministic engines for convolutions over volumes") {
  if (too_old()) return;
  const Descriptor gpu = test::described_h100();
  const GraphTarget target{nullptr, &gpu};
  struct VolumeCase {
    const char* what;
    Shape x;
    std::int64_t out, groups;
    Window3d window;
  };
  const Window3d valid{{3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {}, {}};
  const Window3d same{{3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}};
  const Window3d one_sided{{3, 3, 3}, {2, 2, 2}, {1, 1, 1}, {}, {1, 1, 1}};
  const VolumeCase volumes[] = {
      {"a scan's first", {2, 64, 128, 128, 1}, 64, 1, valid},
      {"a film's first", {4, 16, 112, 112, 3}, 64, 1, same},
      {"many channels", {2, 16, 30, 30, 128}, 256, 1, valid},
      {"stride 2, padding on one side (as in same)", {2, 16, 28, 28, 64}, 64, 1, one_sided},
      {"tubelets", {32, 28, 28, 28, 1}, 128, 1, {{8, 8, 8}, {8, 8, 8}, {1, 1, 1}, {}, {}}},
      {"odd channels, oblong", {2, 5, 7, 9, 13}, 10, 1, {{2, 3, 1}, {1, 2, 1}, {1, 1, 1}, {0, 1, 0}, {1, 1, 0}}},
      {"1x1x1", {2, 8, 14, 14, 64}, 128, 1, Window3d{}},
      {"groups", {2, 4, 6, 6, 12}, 8, 4, same},
      {"dilation", {1, 9, 11, 9, 8}, 16, 1, {{3, 3, 3}, {1, 1, 1}, {2, 1, 3}, {2, 1, 3}, {2, 1, 3}}},
  };
  for (const VolumeCase& c : volumes) {
    Shape y = c.x.with_back(c.out);
    for (int axis = 0; axis < 3; ++axis) y[axis + 1] = c.window.output(axis, c.x[axis + 1]);
    for (DType dtype : dtypes) {
      const ConvolutionShapeOf<3> shape{c.window, c.groups, c.x, y, dtype};
      for (auto direction : {Convolving::forward, Convolving::input_gradient, Convolving::weight_gradient}) {
        CAPTURE(c.what, name_of(dtype), static_cast<int>(direction));
        Graph graph = convolution_graph(direction, shape, dtype);
        REQUIRE(graph.finalize(target));
        const EngineRules rules{.deterministic = true, .tensor_cores = dtype != DType::float32};
        const auto engines = list_engines(graph, target, rules);
        CHECK(!engines.empty());
        for (const std::string& engine : engines) {
          CAPTURE(engine);
          CHECK(Plan::make(graph, target, engine).has_value());
        }
      }
    }
  }
}

TEST_CASE("cuDNN's engines for input gradients can add to another tensor, too") {
  if (too_old()) return;
  const Descriptor gpu = test::described_h100();
  const GraphTarget target{nullptr, &gpu};
  for (const Case& c : cases) {
    for (DType dtype : dtypes) {
      CAPTURE(c.what, name_of(dtype));
      Graph plain = convolution_graph(Convolving::input_gradient, c.shape(dtype), dtype);
      Graph adding = convolution_graph(Convolving::input_gradient, c.shape(dtype), dtype, true);
      REQUIRE(plain.finalize(target));
      REQUIRE(adding.finalize(target));
      const EngineRules rules{.tensor_cores = dtype != DType::float32};
      const auto engines = list_engines(adding, target, rules);
      CHECK(engines == list_engines(plain, target, rules));
      for (const std::string& engine : engines) CHECK(Plan::make(adding, target, engine).has_value());
    }
  }
}

TEST_CASE("cuDNN fuses bias and activation after convolutions") {
  if (too_old()) return;
  const Descriptor gpu = test::described_h100();
  const GraphTarget target{nullptr, &gpu};
  for (const Case& c : {cases[1], cases[6], cases[9], cases[11]}) {
    for (DType dtype : dtypes) {
      CAPTURE(c.what, name_of(dtype));
      Graph graph = fused_convolution_graph(c.shape(dtype), true, {ActivationKind::relu});
      REQUIRE(graph.finalize(target));
      const auto engines = list_engines(graph, target, {.tensor_cores = dtype != DType::float32});
      REQUIRE(!engines.empty());
      for (const std::string& engine : engines) Plan::make(graph, target, engine);
    }
  }
}

TEST_CASE("float32 products keep their bits unless tensor cores are allowed, and workspaces stay within their limit") {
  if (too_old()) return;
  const Descriptor gpu = test::described_h100();
  const GraphTarget target{nullptr, &gpu};
  Graph graph = convolution_graph(Convolving::forward, cases[1].shape(DType::float32), DType::float32);
  REQUIRE(graph.finalize(target));
  const auto exact = list_engines(graph, target, {.tensor_cores = false});
  const auto tf32 = list_engines(graph, target, {.tensor_cores = true});
  REQUIRE(!exact.empty());
  REQUIRE(!tf32.empty());
  CHECK(tf32.front() != exact.front());  // on an H100 the heuristics put TF32 first

  Graph first = convolution_graph(Convolving::forward, cases[0].shape(DType::bfloat16), DType::bfloat16);
  REQUIRE(first.finalize(target));
  const auto largest = [&](std::int64_t limit) {
    std::int64_t bytes = -1;
    for (const std::string& engine : list_engines(first, target, {.max_workspace_bytes = limit})) {
      bytes = std::max(bytes, Plan::make(first, target, engine).value().workspace_bytes());
    }
    return bytes;
  };
  CHECK(largest(std::int64_t{256} << 20) > 1 << 20);  // three channels are padded to eight
  const std::int64_t within = largest(1 << 20);
  CHECK(within >= 0);
  CHECK(within <= 1 << 20);
}

// Most of these engines are compiled at run time, which requires a driver: without one, they are not listed.
TEST_CASE("cuDNN supports convolutions with statistics, and their gradients with ReLU's gradient and column sums") {
  if (too_old()) return;
  const Descriptor gpu = test::described_h100();
  const GraphTarget target{nullptr, &gpu};
  for (DType dtype : {DType::bfloat16, DType::float16}) {
    for (const ConvolutionShape& shape : pattern_shapes(256, dtype)) {
      CAPTURE(to_string(shape.x), to_string(shape.kernel()), name_of(dtype));
      Graph statistics = statistics_graph(shape);
      CHECK(statistics.ids().size() == 5);
      REQUIRE(statistics.finalize(target));
      const auto engines = list_engines(statistics, target, {.deterministic = false});
      if (dtype == DType::float16) REQUIRE(!engines.empty());  // precompiled
      if (dtype == DType::float16) CHECK(Plan::make(statistics, target, engines.front()).has_value());
      for (const bool residual : {false, true}) {
        for (const bool products : {false, true}) {
          CAPTURE(residual, products);
          Graph gradient = gradient_sums_graph(shape, {residual, products});
          CHECK(gradient.ids().size() == std::size_t{5} + residual + 2 * products);
          CHECK(gradient.finalize(target));
        }
      }
    }
  }
}

TEST_CASE("plans of engines that this cuDNN does not know are not made") {
  if (too_old()) return;
  const Descriptor gpu = test::described_h100();
  const GraphTarget target{nullptr, &gpu};
  Graph graph = convolution_graph(Convolving::forward, cases[1].shape(DType::bfloat16), DType::bfloat16);
  REQUIRE(graph.finalize(target));
  const std::string known = list_engines(graph, target, {}).front();
  CHECK(Plan::make(graph, target, known).has_value());
  for (const std::string text : {"", "x", "62", ":", "100000:", "-1:", "62:2", "62:2=", "62:999=1"}) {
    CAPTURE(text);
    CHECK(!Plan::make(graph, target, text).has_value());
  }
  CHECK(!Plan::make(graph, target, known + "1000").has_value());
  CHECK(!Plan::make(graph, target, known + ",44").has_value());
}

}  // namespace trainctl::engines_test
