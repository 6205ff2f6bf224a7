// Warns of results that are meaningless or 0 by convention. Each warning is logged once in a run, since its cause may
// persist.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "parallel/trainer/hooks/hook.h"

namespace trainctl {

struct MetricResult;

class ResultWarnings final : public TrainingHook {
 public:
  // `logs`: whether this rank logs the warnings. The results must outlive the object.
  ResultWarnings(bool logs, const std::vector<MetricResult>& results) : logs_(logs), results_(results) {}

  void on_evaluation(TrainingState& state) override;
  // Warns that the `values` of an evaluation do not contain `monitor`. `watcher` monitors it, such as early_stopping.
  void missing(const std::string& watcher, const std::string& monitor, const std::map<std::string, double>& values);
  // Warns of metrics that are 0 although they would divide by 0. `prefix`: "" for training, "val_" for validation;
  // `remarks`: what MetricMeans::remarks() returns, by name.
  void zero_divisions(const std::string& prefix, const std::map<std::string, double>& values,
                      const std::map<std::string, std::string>& remarks, std::int64_t step);
  // Warns if `weight`, the sum of the weights of all validation samples, is 0.
  void weightless_validation(double weight);

 private:
  // Warns of values that are not finite. `prefix`: "" for training, "val_" for validation.
  void not_finite(const std::string& prefix, const std::map<std::string, double>& values, std::int64_t step);
  bool is_first(const std::string& warning) { return logs_ && warned_.insert(warning).second; }

  bool logs_;
  const std::vector<MetricResult>& results_;
  std::set<std::string> warned_;
};

}  // namespace trainctl
