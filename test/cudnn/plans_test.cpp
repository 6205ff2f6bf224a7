// Tests plans that are made in parallel, and plans of engines that cuDNN compiles at run time.
#include "core/backend/cuda/cudnn/plans.h"
#include "core/backend/cuda/cudnn/convolution.h"
#include "test/catch.h"
#include "test/cudnn/described_gpu.h"

namespace trainctl::plans_test {
using namespace trainctl::cuda;

namespace {

const ConvolutionShape shape{
    {{3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}}, 1, {64, 28, 28, 128}, {64, 28, 28, 128}, DType::bfloat16};

Graph forward() { return convolution_graph(Convolving::forward, shape, shape.dtype); }
Graph fused() { return fused_convolution_graph(shape, true, {ActivationKind::relu}); }

// Returns all engines of a graph that cuDNN compiles at run time, with the default values of their knobs.
std::vector<std::string> compiled_engines(const Graph& graph, const Descriptor& gpu) {
  std::vector<std::string> engines;
  const auto count = graph.get().value<std::int64_t>(CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT);
  for (std::int64_t index = 0; index < count; ++index) {
    Descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    engine.set(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph.get());
    engine.set(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, index);
    engine.set(CUDNN_ATTR_ENGINE_DEVICEPROP, gpu);
    if (!engine.can_finalize()) continue;
    for (const auto note :
         engine.values<cudnnBackendBehaviorNote_t>(CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_BEHAVIOR_NOTE_TYPE_COUNT)) {
      if (note == CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION) engines.push_back(std::to_string(index) + ":");
    }
  }
  return engines;
}

}  // namespace

TEST_CASE("engines that cuDNN compiles at run time are compiled for a described GPU, in parallel") {
  if (cudnnGetVersion() < 90800) return;
  const Descriptor gpu = test::described_h100();
  Plans plans({nullptr, &gpu}, 3);
  std::vector<Plans::Wanted> wanted;
  for (const auto& make : {Plans::MakeGraph(forward), Plans::MakeGraph(fused)}) {
    const auto graph = plans.graph(make);
    REQUIRE(graph != nullptr);
    for (const std::string& engine : compiled_engines(graph->graph, gpu)) wanted.push_back({graph, engine});
  }
  plans.make_all(wanted);
  int made = 0;
  for (const Plans::Wanted& one : wanted) made += plans.get(one).has_value() ? 1 : 0;
  CAPTURE(wanted.size());
  CHECK(made > 0);
}

TEST_CASE("plans are made once for equal graphs, and plans that only timing needed are freed") {
  if (cudnnGetVersion() < 90800) return;
  const Descriptor gpu = test::described_h100();
  const GraphTarget target{nullptr, &gpu};
  Plans plans(target, 3);
  const auto graph = plans.graph(forward);
  REQUIRE(graph != nullptr);
  CHECK(plans.graph(forward) == graph);
  CHECK(plans.graph(fused) != graph);
  CHECK(plans.graph([] { return convolution_graph(Convolving::input_gradient, shape, shape.dtype, true); }) !=
        plans.graph([] { return convolution_graph(Convolving::input_gradient, shape, shape.dtype, false); }));

  const auto engines = list_engines(graph->graph, target, {});
  REQUIRE(engines.size() > 2);
  std::vector<Plans::Wanted> wanted;
  for (const std::string& engine : engines) wanted.push_back({graph, engine});
  wanted.push_back(wanted.front());
  plans.make_all(wanted);
  const int all = static_cast<int>(engines.size());
  CHECK(plans.made() == all);
  {
    const auto kept = plans.get(wanted[1]);
    REQUIRE(kept.has_value());
    plans.settle(false);
    CHECK(plans.made() == all);
  }
  CHECK(plans.get(wanted[1]).has_value());  // it was in use in settle(false), and stays
  CHECK(plans.made() == all);
  CHECK(plans.get(wanted[0]).has_value());
  CHECK(plans.made() == all + 1);
  plans.settle(true);
  CHECK(plans.get(wanted[0]).has_value());
  CHECK(plans.made() == all + 1);

  CHECK_FALSE(plans.get({graph, "no engine"}).has_value());
}

}  // namespace trainctl::plans_test
