// Training steps of single ranks of a mesh, for tests of a plan's measurements and assumptions.
#pragma once

#include <string>
#include <vector>

#include "core/compile/compile.h"
#include "parallel/strategies/op_cost.h"
#include "parallel/strategies/strategy.h"
#include "test/core/program/job.h"

namespace trainctl {

inline constexpr const char* convolutions = R"(
layers:
  - conv2d: {filters: 8, kernel_size: 3, padding: same, use_bias: false}
  - batch_normalization
  - activation: relu
  - residual:
      layers:
        - conv2d: {filters: 8, kernel_size: 3, padding: same, activation: relu}
        - dropout: 0.2
        - conv2d: {filters: 8, kernel_size: 3, padding: same}
      activation: relu
  - max_pooling2d: {pool_size: 2}
  - flatten
  - dense: {units: 16, activation: relu}
  - dense: {units: 4, activation: softmax}
)";
inline constexpr const char* tokens =
    "layers: [{embedding: {input_dim: 50, output_dim: 16}}, {dense: {units: 16, activation: relu}}, {dense: {units: "
    "4}}]";

struct Setup {
  std::string name;
  const char* network;
  Mesh mesh;
  int rank;
  Shard shard = Shard::none;
  int micro_batches = 1;
};

// A rank's training step for a share of 8 samples.
struct RankOf {
  TestJob job;
  MeshRank rank;
  std::vector<Program> programs;

  explicit RankOf(const Setup& setup) : job(setup.network), rank(setup.mesh, setup.rank) {
    job.spec.outputs[0].target.classes = 4;
    if (setup.network == tokens) {
      job.spec.inputs[0] = {"", {6}, {}};
      job.spec.inputs[0].format.dtype = DType::int32;
      job.spec.outputs[0].target.shape = {6};
    }
    Strategy strategy{setup.mesh, {}, false};
    strategy.options.shard = setup.shard;
    Reader reader;
    if (setup.mesh.pipeline > 1) {
      const Graph graph = build_model(*job.spec.model, {.batch = 8, .inputs = job.spec.inputs}, reader).graph;
      strategy.stages = assign_stages(graph, strategy.options, setup.mesh.pipeline, byte_costs_of_processor, reader);
    }
    programs.push_back(training_program(job.spec, {8 / setup.micro_batches, setup.micro_batches}, reader,
                                        parallelism(strategy, setup.rank)));
    reader.throw_if_failed();
  }
};

inline Compiled compiled(const RankOf& of, Backend& backend) {
  KernelChoices choices;
  choices.stop_timing();
  return compile(of.programs, backend, choices);
}

}  // namespace trainctl
