// Local SGD (Stich, 2019): replicas take steps independently, with their own gradients, and are averaged regularly.
//
// An average includes the trained parameters, the running statistics and the optimizer's states (Yu et al., 2019); each
// replica is weighted by its number of samples since the last average. Steps between averages do not communicate along
// the data axis; the ranks take joint decisions only at averages.
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

// The largest number of values that are averaged together. Their memory is added to the engine's.
inline constexpr std::int64_t max_averaged_values = 4 << 20;

// When replicas are averaged: after every `every` steps, and at the end of an epoch and of the run. Reports,
// checkpoints, comparisons of replicas and stops that are due in between wait for the next average.
struct Averaging {
  std::int64_t every = 1;
  std::int64_t steps_per_epoch = 1;
  std::int64_t total_steps = 0;  // 0: no limit
};

class LocalSteps final : public TrainingHook {
 public:
  // `replicas`: the ranks along the data axis; `reports` (may be null) receives the time of averages. All arguments
  // must outlive the object.
  LocalSteps(const Averaging& averaging, Engine& engine, Communicator& replicas, Stream& stream,
             StepReports* reports = nullptr);

  bool combine(std::int64_t step, StepResult& result) override;
  std::int64_t next_pause(std::int64_t step) const override;

  // Adds the results of a step of this replica.
  void add(const StepResult& step);
  // Averages the replicas, unless a replica had a loss or a gradient that was not finite. Writes to `result` the sums
  // over the steps of all replicas since the last call, the flags that any replica has set, and the norm of this
  // replica's last gradient. All ranks of the mesh must call this function.
  void average(StepResult& result);

 private:
  void average_values(double share);
  void reduce(std::vector<float>& values, double share);

  Averaging averaging_;
  Engine& engine_;
  Communicator& replicas_;
  Stream& stream_;
  StepReports* reports_;
  std::set<std::string> updated_;  // names of weights that steps update; others have the same bits on all replicas
  std::vector<double> since_;      // the flags, the sum of sample weights, then the sums of losses and metrics
  double norm_ = 0;                // gradient norm of the last step
};

}  // namespace trainctl
