// Trains a network on the ranks of a mesh, which are threads, and compares the result with that of another mesh.
#pragma once

#include <algorithm>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "core/base/format.h"
#include "test/catch.h"
#include "test/parallel/strategies/networks.h"
#include "test/parallel/strategies/rank_of_mesh.h"

namespace trainctl::mesh_training {
using namespace trainctl::networks;

struct Setup {
  Mesh mesh;
  int micro_batches = 1;
  Shard shard = Shard::none;
  bool overlap = false;
  CommunicatedDType gradient_dtype = CommunicatedDType::float32;
  CommunicatedDType parameter_dtype = CommunicatedDType::float32;
  bool sequence_parallel = false;
  Recompute recompute = Recompute::none;
  DType compute = DType::float32;
  int steps = 30;
  double clip_norm = 1;  // the largest norm of the gradient; 0: not clipped
};

struct Outcome {
  std::vector<double> losses, accuracies, norms;
  double evaluated = 0, evaluated_accuracy = 0;  // sums of all samples after training
  WholeTensors weights, state;
  std::map<std::string, int> shards;  // by tensor: number of ranks of the first replica that hold a shard of it
};

// Small buckets with whole parameters and with parameters that are split along either dimension.
inline Strategy strategy_of(const Setup& setup) {
  Strategy strategy{setup.mesh, {}, setup.overlap};
  strategy.options.tensor.value = setup.mesh.tensor;
  strategy.options.shard = setup.shard;
  strategy.options.gradient_dtype = setup.gradient_dtype;
  strategy.options.parameter_dtype = setup.parameter_dtype;
  strategy.options.sequence_parallel = setup.sequence_parallel;
  strategy.options.recompute = setup.recompute;
  strategy.options.first_bucket_size.bytes = 1000;
  strategy.options.bucket_size.bytes = 6000;
  return strategy;
}

// Trains on the ranks of a mesh, or on one rank with the same micro-batches.
inline Outcome train(const Case& which, const Setup& setup) {
  Outcome outcome;
  std::mutex one_at_a_time;
  on_mesh(setup.mesh, [&](Communicator& world) {
    auto network = which.make();
    network.job.spec.clip_norm = setup.clip_norm;
    network.job.spec.seed = 3;
    network.job.spec.compute = setup.compute;
    const BatchSizes sizes{.training = batch,
                           .evaluation = batch,
                           .gradient_accumulation = setup.micro_batches,
                           .whole_batch = has_whole_batch_loss(network.job.model)};
    const Strategy strategy = with_stages(network.job, strategy_of(setup));
    RankOfMesh rank(network.job, strategy, sizes, world, network.job.spec.seed);
    const Batch part = network.share(rank.programs.rank());
    StepResult result;
    std::vector<double> losses, accuracies, norms;
    const std::size_t added = network.job.model.add_loss.size();
    const auto accuracy_of = [&](const StepResult& of) {  // follows the sums of all losses, if the output has one
      return of.sums[std::min(1 + added, of.sums.size() - 1)];
    };
    for (int step = 0; step < setup.steps; ++step) {
      rank.engine.run(rank.programs.training(batch), part, {which.learning_rate, step, false}, result);
      losses.push_back(result.sums[0] / result.count);
      accuracies.push_back(accuracy_of(result));
      norms.push_back(result.gradient_norm);
    }
    StepResult evaluated;
    rank.engine.run(rank.programs.evaluation(batch), part, {}, evaluated);
    rank.engine.download();
    const std::lock_guard lock(one_at_a_time);
    require(outcome.losses.empty() || outcome.losses == losses, "all ranks know the same losses");
    outcome.losses = losses;
    outcome.accuracies = accuracies;
    outcome.norms = norms;
    if (rank.programs.rank().along(MeshAxis::tensor) == 0) {  // stages without the output have zeros
      outcome.evaluated += evaluated.sums[0];
      outcome.evaluated_accuracy += accuracy_of(evaluated);
    }
    put_together(rank.engine.weights(), outcome.weights);
    put_together(rank.engine.state(), outcome.state);
    if (rank.programs.rank().along(MeshAxis::data) != 0) return;
    for (const auto* list : {&rank.engine.weights(), &rank.engine.state()}) {
      for (const NamedTensor& tensor : *list) {
        if (!tensor.extent.is_whole()) ++outcome.shards[tensor.name];
      }
    }
  });
  return outcome;
}

// `tolerance` is the relative tolerance of losses.
inline void compare(const Outcome& outcome, const Outcome& reference, double tolerance = 1e-4) {
  REQUIRE(outcome.losses.size() == reference.losses.size());
  for (std::size_t step = 0; step < outcome.losses.size(); ++step) {
    CAPTURE(step);
    CHECK(outcome.losses[step] == Approx(reference.losses[step]).epsilon(tolerance));
    CHECK(outcome.norms[step] == Approx(reference.norms[step]).epsilon(10 * tolerance));
    if (tolerance <= 1e-4) CHECK(outcome.accuracies[step] == reference.accuracies[step]);
  }
  CHECK(outcome.evaluated == Approx(reference.evaluated).epsilon(tolerance));
  if (tolerance <= 1e-4) CHECK(outcome.evaluated_accuracy == reference.evaluated_accuracy);
  REQUIRE(outcome.weights.size() == reference.weights.size());
  REQUIRE(outcome.state.size() == reference.state.size());
  for (const auto& [name, values] : reference.weights) {
    CAPTURE(name);
    CHECK(largest_difference(outcome.weights.at(name), values) < 2 * tolerance);
  }
  for (const auto& [name, values] : reference.state) {
    CAPTURE(name);
    CHECK(largest_difference(outcome.state.at(name), values) < 20 * tolerance);
  }
}

}  // namespace trainctl::mesh_training
