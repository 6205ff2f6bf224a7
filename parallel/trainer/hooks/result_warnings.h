// Warnings of results that tell nothing, each given once in a run, since it may stay so for the rest of it.
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
  // `speaks`: whether this rank is the one that warns. The results outlive the object.
  ResultWarnings(bool speaks, const std::vector<MetricResult>& results) : speaks_(speaks), results_(results) {}

  void on_evaluation(TrainingState& state) override;
  // Of a value that `watcher`, such as early_stopping, watches and that is not among those of an evaluation.
  void missing(const std::string& watcher, const std::string& monitor, const std::map<std::string, double>& values);
  // Of validation data whose weights come to nothing.
  void weightless_validation(double weight);

 private:
  // Of values that are not finite; `prefix`: "" of training, "val_" of validation.
  void not_finite(const std::string& prefix, const std::map<std::string, double>& values, std::int64_t step);
  bool first(const std::string& what) { return speaks_ && warned_.insert(what).second; }

  bool speaks_;
  const std::vector<MetricResult>& results_;
  std::set<std::string> warned_;
};

}  // namespace trainctl
