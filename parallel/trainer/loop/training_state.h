// The state of a run beside its tensors: what a checkpoint keeps of it, and what the hooks of the loop see.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/exec/interfaces/batch_source.h"
#include "core/exec/interfaces/snapshot.h"
#include "core/metrics/means.h"

namespace trainctl {

struct Monitor;

struct TrainingState {
  TrainingState(const std::vector<MetricResult>& results, const DataPosition& start)
      : epoch_means(results), data(start) {}

  std::int64_t step = 0;                     // steps done
  MetricMeans epoch_means;                   // of the steps since the last evaluation at the end of an epoch
  DataPosition data;                         // the position in the data after these steps
  std::map<std::string, double> train;       // the values of the last epoch
  std::map<std::string, double> validation;  // and of its evaluation
  std::optional<BestResult> best;            // none before the first monitored value
  // Of the last step:
  int program = 0;            // its training program
  double gradient_scale = 1;  // the factor from its gradients to those of the mean loss

  // The values of training and, with "val_" before their names, of validation.
  std::map<std::string, double> values() const;
  // Makes the last evaluation's value of the monitored metric the best one if it is; returns whether it is. Equal on
  // all ranks, since the values are.
  bool update_best(const Monitor& monitor);

  // Writes the state to a snapshot, and reads it from one. A best value of another metric is not taken over.
  void save(Snapshot& snapshot) const;
  void restore(const Snapshot& snapshot, const Monitor& monitor);
};

}  // namespace trainctl
