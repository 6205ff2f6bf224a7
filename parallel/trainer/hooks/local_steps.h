// Local SGD (Stich, 2019): replicas take steps alone, by their own gradients, and are averaged now and then.
//
// Averaged is everything that a replica learns by: parameters that train, running statistics that move and the
// optimizer's states (Yu et al., 2019), each replica weighted by the samples that it has seen since the last time.
// Steps in between have no communication over the data axis; what all ranks decide together they decide where they are
// averaged.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "parallel/trainer/hooks/hook.h"

namespace trainctl {

class Communicator;
class Engine;
class StepReports;
class Stream;

// The most values that are averaged at once: memory beside the engine's.
inline constexpr std::int64_t most_averaged_values = 4 << 20;

// When replicas are averaged: after every `every` steps, and at the end of an epoch and of the run. What is due in
// between comes with the next average: reports, checkpoints, comparisons of replicas, and a stop.
struct Averaging {
  std::int64_t every = 1;
  std::int64_t steps_per_epoch = 1;
  std::int64_t total_steps = 0;  // 0: no limit
};

class LocalSteps final : public TrainingHook {
 public:
  // `replicas`: along the data axis; `reports` (null: none) are told of the time that averages take. All of it outlives
  // the object.
  LocalSteps(const Averaging& averaging, Engine& engine, Communicator& replicas, Stream& stream,
             StepReports* reports = nullptr);

  bool combine(std::int64_t step, StepResult& result) override;
  std::int64_t next_pause(std::int64_t step) const override;

  // Adds the results of a step that this replica took alone.
  void add(const StepResult& step);
  // Averages the replicas, unless one had a loss or a gradient that was not finite. Writes the sums over all replicas'
  // steps since the last call, and what any of them reported; the norm is that of this replica's last gradient.
  // Collective, on all ranks of the mesh.
  void average(StepResult& result);

 private:
  void average_values(double share);
  void reduce(std::vector<float>& values, double share);

  Averaging averaging_;
  Engine& engine_;
  Communicator& replicas_;
  Stream& stream_;
  StepReports* reports_;
  std::set<std::string> learnt_;  // weights that steps change; others have the same bits on all replicas
  std::vector<double> since_;     // the flags, the sum of sample weights, then the sums of losses and metrics
  double norm_ = 0;               // of the last step
};

}  // namespace trainctl
