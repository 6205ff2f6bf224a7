// The state of a run without its tensors, which checkpoints store and hooks read.
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

  std::int64_t step = 0;                     // number of steps done
  MetricMeans epoch_means;                   // means over the steps since the last evaluation at the end of an epoch
  DataPosition data;                         // the position in the data after these steps
  std::map<std::string, double> train;       // training values of the last epoch
  std::map<std::string, double> validation;  // validation values of the last epoch
  std::optional<BestResult> best;            // empty before the first monitored value
  // Values of the last step:
  int program = 0;            // index of its training program
  double gradient_scale = 1;  // the factor that turns sums of gradients into gradients of the mean loss

  // Returns the training values and, with the prefix "val_", the validation values.
  std::map<std::string, double> values() const;
  // Updates the best value if the last evaluation's value of the monitored metric is better; returns whether it was
  // updated. The result is equal on all ranks, since the values are equal.
  bool update_best(const Monitor& monitor);

  // Write the state to a snapshot, and read it from one. A best value of another metric is ignored.
  void save(Snapshot& snapshot) const;
  void restore(const Snapshot& snapshot, const Monitor& monitor);
};

}  // namespace trainctl
