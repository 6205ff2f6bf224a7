// Tests the stages of pipelines: balanced stages have the lowest maximum cost, stages given in the config are used, and
// impossible ones are refused with their line.
#include "parallel/strategies/pipeline/stages.h"
#include "parallel/strategies/op_cost.h"

#include <algorithm>
#include <map>
#include <random>

#include "core/base/format.h"
#include "core/graph/ops/collectives.h"
#include "parallel/strategies/pipeline/pipeline.h"
#include "test/catch.h"
#include "test/core/program/job.h"

namespace trainctl::stages_test {
namespace {

constexpr const char* network = R"(
layers:
  - conv2d: {name: c1, filters: 6, kernel_size: 3, padding: same, activation: relu}
  - residual:
      name: block
      layers:
        - conv2d: {name: c2, filters: 6, kernel_size: 3, padding: same}
        - batch_normalization: {name: n2}
  - max_pooling2d: {name: pool}
  - flatten: {name: flat}
  - dense: {name: d1, units: 10, activation: tanh}
  - dense: {name: d2, units: 3, activation: softmax}
)";

StrategyOptions options_of(const std::string& text, Reader& reader) {
  StrategyOptions options;
  section_of<StrategyOptions>().read(parse_yaml(text, "strategy.yaml", ".", reader), reader, &options);
  return options;
}

Graph graph_of(const TestJob& job) {
  Reader reader;
  return build_model(job.model, {.batch = 4, .inputs = job.spec.inputs}, reader).graph;
}

// The errors of a strategy section for this network.
std::string errors_of(const std::string& text) {
  Reader reader;
  const StrategyOptions options = options_of(text, reader);
  if (reader.ok())
    assign_stages(graph_of(TestJob(network)), options, options.stages(), byte_costs_of_processor, reader);
  std::string errors;
  for (const Diagnostic& diagnostic : reader.diagnostics()) errors += to_string(diagnostic) + "\n";
  return errors;
}

Stages stages_of(const std::string& text) {
  Reader reader;
  const StrategyOptions options = options_of(text, reader);
  const Stages stages =
      assign_stages(graph_of(TestJob(network)), options, options.stages(), byte_costs_of_processor, reader);
  reader.throw_if_failed();
  return stages;
}

}  // namespace

TEST_CASE("layers in front of all trainable layers cost a stage their forward pass only") {
  std::string layers = "layers:\n";
  for (int i = 1; i <= 6; ++i) layers += format("  - dense: {{name: d{}, units: 512}}\n", i);
  const auto first_stage = [&](const std::string& freeze) {
    TestJob job(freeze + layers);
    job.spec.inputs[0].sample = {512};
    Reader reader;
    const Stages stages =
        assign_stages(graph_of(job), options_of("pipeline: 2", reader), 2, byte_costs_of_processor, reader);
    reader.throw_if_failed();
    return std::count_if(stages.begin(), stages.end(), [](const auto& stage) { return stage.second == 0; });
  };
  CHECK(first_stage("") == 3);
  CHECK(first_stage("freeze: [d1, d2, d3]\n") == 4);  // stages that cost 3 * 1 + 3 and 2 * 3
}

TEST_CASE("strategy.place assigns layers to stages by their names and by those of their blocks") {
  const Stages expected = {{"c1", 0},   {"block/c2", 0}, {"block/n2", 0}, {"block", 0},
                           {"pool", 1}, {"flat", 1},     {"d1", 1},       {"d2", 1}};
  CHECK(stages_of("place: {0: [c1, block], 1: [pool, flat, d*]}") == expected);
  CHECK(stages_of("place:\n  1: ['d*', '*l*t', pool]\n  0: ['c*', block]\n") == expected);
  Stages inside = expected;
  inside["block/n2"] = inside["block"] = 1;
  CHECK(stages_of("place: {0: [c1, block/c2], 1: [block, pool, flat, 'd*']}") == inside);
}

TEST_CASE("an invalid strategy.place is refused with its line") {
  const auto refuses = [](const std::string& text, const std::string& message) {
    const std::string errors = errors_of(text);
    CAPTURE(text, errors);
    CHECK(errors.find(message) != std::string::npos);
    CHECK(std::count(errors.begin(), errors.end(), '\n') == 1);
  };
  refuses("place:\n  0: [c1, block]\n  1: [pool, flat, 'd*', dens]\n", "strategy.yaml:3:25: 'dens' matches no layer");
  refuses("place:\n  0: [c1, block, pool]\n  1: ['p*', flat, 'd*']\n",
          "strategy.yaml:3:7: layer 'pool' is in stage 0 and in stage 1 ('pool' at 2:18)");
  refuses("place:\n  0: [c1, block]\n  1: [flat, 'd*']\n", "layer 'pool' is in no stage of strategy.place");
  refuses("place:\n  1: [c1, block]\n  0: [pool, flat, 'd*']\n",
          "layer 'pool' of stage 0 comes after 'block' of stage 1");
  refuses("place: {0: [c1], 1: [block/c2], 2: [block/n2, pool, flat, 'd*']}", "layer 'block' is in no stage");
  refuses("pipeline: 9", "strategy.yaml:1:11: the network has 8 layers, too few for 9 stages: use at most 8");
  refuses("place: {0: [c1], 2: [block]}", "'2' is not a stage: 2 stages are numbered from 0 to 1");
  refuses("{pipeline: 3, place: {0: [c1], 1: [block]}}", "pipeline is 3, but place names 2 stages");
  refuses("micro_batches: 4", "but there is no pipeline");
}

TEST_CASE("sizes of the mesh must multiply to the ranks") {
  Reader reader;
  StrategyOptions options = options_of("{pipeline: 2}", reader);
  CHECK(mesh_of(options, 2) == Mesh{.pipeline = 2});
  CHECK(mesh_of(options, 6) == Mesh{.data = 3, .pipeline = 2});
  CHECK_THROWS_WITH(mesh_of(options, 7),
                    Catch::Contains("strategy.yaml:1:12") && Catch::Contains("start 6 or 8 ranks"));
  options = options_of("{pipeline: 2, data: 3}", reader);
  CHECK(mesh_of(options, 6) == Mesh{.data = 3, .pipeline = 2});
  CHECK_THROWS_WITH(mesh_of(options, 4), Catch::Contains("3 replicas of 2 stages are 6 ranks, but there are 4"));
  reader.throw_if_failed();
}

// The test tries every cut of a chain of layers into stages.
TEST_CASE("balanced stages are cut where the costliest stage is cheapest") {
  std::mt19937 random(8);
  for (int round = 0; round < 12; ++round) {
    std::string layers;
    for (int i = 0; i < 7; ++i) layers += format("{{dense: {{name: d{}, units: {}}}}}, ", i, 4 + random() % 300);
    const TestJob job("layers: [" + layers + "{dense: {name: last, units: 3}}]");
    TestJob whole = job;
    whole.spec.model = &whole.model;
    whole.spec.inputs[0].sample = {16};
    const Graph graph = graph_of(whole);
    Reader reader;
    const auto cost = [&](const Stages& stages) {  // of the costliest stage, computed independently
      double largest = 0;
      for (int s = 0; s < 3; ++s) {
        double sum = 0;
        for (const Op& op : graph.ops) {
          std::vector<TensorType> in, out;
          double bytes = 0;
          for (TensorId id : op.inputs) in.push_back(graph.tensor(id).type);
          for (TensorId id : op.outputs) out.push_back(graph.tensor(id).type);
          for (const TensorType& type : in) bytes += static_cast<double>(type.bytes());
          for (const TensorType& type : out) bytes += static_cast<double>(type.bytes());
          if (stages.at(op.name) == s) sum += 3 * (op.def->flops(in, out) + 16 * bytes);
          for (const Op& reader_op : graph.ops) {
            const bool reads = reader_op.inputs[0] == op.outputs[0];
            const int from = stages.at(op.name), to = stages.at(reader_op.name);
            if (reads && from != to && (from == s || to == s)) sum += 200 * static_cast<double>(out[0].bytes());
          }
        }
        largest = std::max(largest, sum);
      }
      return largest;
    };
    const std::vector<std::string> names = layers_of(graph);
    double best = 0;
    for (std::size_t first = 1; first + 1 < names.size(); ++first) {
      for (std::size_t second = first + 1; second < names.size(); ++second) {
        Stages stages;
        for (std::size_t i = 0; i < names.size(); ++i) stages[names[i]] = (i >= first) + (i >= second);
        const double found = cost(stages);
        if (best == 0 || found < best) best = found;
      }
    }
    CHECK(cost(assign_stages(graph, {}, 3, {16, 100}, reader)) == Approx(best));
  }
}

TEST_CASE("stages know which of them share a parameter, and all uses of a batch normalization are in one stage") {
  const TestJob job(R"(
layers:
  - conv2d: {name: c, filters: 2, kernel_size: 3, padding: same}
  - batch_normalization: {name: n}
  - conv2d: {name: c, filters: 2, kernel_size: 3, padding: same}
  - batch_normalization: {name: n}
  - conv2d: {name: c, filters: 2, kernel_size: 3, padding: same}
  - flatten
  - dense: 3
)");
  const Graph whole = graph_of(job);
  Reader reader;
  Strategy strategy{{.pipeline = 3}, {}, false};
  strategy.stages = assign_stages(whole, {}, 3, byte_costs_of_processor, reader);
  CHECK(strategy.stages.at("n") == strategy.stages.at("n@2"));
  section_of<StrategyOptions>().read(
      parse_yaml("place: {0: [c], 1: [n, c@2, n@2], 2: [c@3, flatten, dense]}", "", ".", reader), reader,
      &strategy.options);
  strategy.stages = assign_stages(whole, strategy.options, 3, byte_costs_of_processor, reader);
  CHECK(reader.ok());
  for (int s = 0; s < 3; ++s) {
    const Graph stage = cut_stage(whole, MeshRank(strategy.mesh, s), strategy);
    CHECK(stage.statistics.size() == (s == 1 ? 4 : 0));
    for (const GraphParameter& parameter : stage.parameters) {
      const bool shared = stage.tensor(parameter.tensor).name.starts_with("c/");
      CHECK(parameter.stages == (shared ? std::vector<int>{0, 1, 2} : std::vector<int>{}));
    }
  }
}

TEST_CASE("a block with ops before and after its layers is not cut between them") {
  TestJob job(R"(
layers:
  - transformer_encoder: {name: one, num_heads: 2, intermediate_dim: 8}
  - transformer_encoder: {name: two, num_heads: 2, intermediate_dim: 8}
  - global_average_pooling1d: {name: mean}
  - dense: {name: last, units: 3}
)");
  job.spec.inputs[0].sample = {6, 8};
  const Graph graph = graph_of(job);
  const auto assigned = [&](const std::string& strategy, Reader& reader) {
    const StrategyOptions options = options_of(strategy, reader);
    return assign_stages(graph, options, options.stages(), byte_costs_of_processor, reader);
  };
  for (int count = 2; count <= 8; ++count) {
    CAPTURE(count);
    Reader reader;
    const Stages stages = assigned(format("pipeline: {}", count), reader);
    reader.throw_if_failed();
    std::map<TensorId, int> maker;
    for (const Op& op : graph.ops) {
      for (const TensorId id : op.inputs) CHECK((!maker.contains(id) || maker.at(id) <= stages.at(op.name)));
      for (const TensorId id : op.outputs) maker[id] = stages.at(op.name);
    }
    CHECK(stages.at("last") == count - 1);
  }
  const auto error = [&](const std::string& strategy) {
    Reader reader;
    assigned(strategy, reader);
    REQUIRE(reader.diagnostics().size() == 1);
    return to_string(reader.diagnostics()[0]);
  };
  CHECK(error("pipeline: 9").find("cannot be cut inside a block") != std::string::npos);
  CHECK(error("pipeline: 9").find("use at most 8 stages") != std::string::npos);
  CHECK(error("place: {0: ['one/self*'], 1: [one, two, mean, last]}")
            .find("layer 'one/self_attention_layer_norm' is in stage 0 and 'one/feedforward_intermediate_dense' in "
                  "stage 1, but the block around them cannot be cut there") != std::string::npos);
}

TEST_CASE("a stage holds its own layers, and exchanges only the tensors that other stages read") {
  const TestJob job(network);
  const Graph whole = graph_of(job);
  Strategy strategy{{.pipeline = 3}, {}, false};
  strategy.stages = stages_of("place: {0: [c1], 1: [block], 2: [pool, flat, 'd*']}");
  std::size_t parameters = 0;
  std::vector<std::string> exchanged;
  for (int s = 0; s < 3; ++s) {
    const Graph stage = cut_stage(whole, MeshRank(strategy.mesh, s), strategy);
    parameters += stage.parameters.size();
    CHECK((stage.inputs[0] != no_tensor) == (s == 0));
    CHECK((stage.outputs[0] != no_tensor) == (s == 2));
    CHECK(stage.statistics.size() == (s == 1 ? 2 : 0));
    for (const Op& op : stage.ops) {
      if (const auto* send = op.get_if<Send>()) exchanged.push_back(format("{} sends to {}", s, send->peer));
      if (const auto* receive = op.get_if<Receive>())
        exchanged.push_back(format("{} receives from {}", s, receive->peer));
    }
  }
  CHECK(parameters == whole.parameters.size());
  CHECK(exchanged ==
        std::vector<std::string>{"0 sends to 1", "1 receives from 0", "1 sends to 2", "2 receives from 1"});
}

}  // namespace trainctl::stages_test
