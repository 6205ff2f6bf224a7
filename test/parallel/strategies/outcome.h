// What a network has learned on a mesh, for tests that compare it with what it learns on another one.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "test/catch.h"
#include "test/parallel/strategies/rank_of_mesh.h"

namespace trainctl::mesh_outcome {

struct Outcome {
  std::vector<double> losses;
  WholeTensors weights;  // including running statistics
};

// Trains a rank for some steps. Step k has size_of(k) samples, of which samples.share() returns the rank's part. Puts
// the result into `outcome`, which the mutex guards; all ranks must know the same losses.
template <class Samples, class SizeOf>
void train_rank(RankOfMesh& rank, Samples& samples, int steps, double rate, const SizeOf& size_of,
                std::mutex& one_at_a_time, Outcome& outcome) {
  StepResult result;
  std::vector<double> losses;
  for (int step = 0; step < steps; ++step) {
    const std::int64_t batch = size_of(step);
    const Batch part = samples.share(share_of(batch, rank.programs.rank()));
    rank.engine.run(rank.programs.training(batch), part, {rate, step, false}, result);
    losses.push_back(result.sums[0] / result.count);
  }
  rank.engine.download();
  const std::lock_guard lock(one_at_a_time);
  require(outcome.losses.empty() || outcome.losses == losses, "all ranks know the same losses");
  outcome.losses = losses;
  put_together(rank.engine.weights(), outcome.weights);
}

inline void check_same(const Outcome& outcome, const Outcome& reference, double tolerance = 1e-4) {
  REQUIRE(outcome.losses.size() == reference.losses.size());
  for (std::size_t i = 0; i < reference.losses.size(); ++i) {
    CAPTURE(i);
    CHECK(outcome.losses[i] == Approx(reference.losses[i]).epsilon(tolerance));
  }
  REQUIRE(outcome.weights.size() == reference.weights.size());
  for (const auto& [name, values] : reference.weights) {
    CAPTURE(name);
    CHECK(largest_difference(outcome.weights.at(name), values) < tolerance);
  }
}

}  // namespace trainctl::mesh_outcome
