// Logs warnings about results: values that are not finite or are missing, and validation data without weight.
#include "parallel/trainer/hooks/result_warnings.h"

#include <algorithm>
#include <cmath>

#include "core/base/format.h"
#include "core/base/log.h"
#include "parallel/trainer/loop/training_state.h"

namespace trainctl {

namespace {

const char* data_of(const std::string& prefix) { return prefix.empty() ? "training" : "validation"; }

}  // namespace

void ResultWarnings::on_evaluation(TrainingState& state) {
  zero_divisions("", state.train, state.epoch_means.remarks(), state.step);
  not_finite("", state.train, state.step);
  not_finite("val_", state.validation, state.step);
}

void ResultWarnings::not_finite(const std::string& prefix, const std::map<std::string, double>& values,
                                std::int64_t step) {
  const char* const data = data_of(prefix);
  for (const auto& [name, value] : values) {
    if (std::isfinite(value) || !is_first(prefix + name)) continue;
    const auto result = std::ranges::find(results_, name, &MetricResult::name);
    if (std::isnan(value) && result != results_.end() && !result->wants.empty()) {
      log::warning(
          format("{}{} is not defined at step {}: it requires {}, but the {} data has none; such a value never counts "
                 "as the best",
                 prefix, name, step, result->wants, data));
      continue;
    }
    log::warning(
        format("{}{} is {} at step {}: such a value never counts as the best; look for values that are not finite in "
               "the {} data",
               prefix, name, value, step, data));
  }
}

void ResultWarnings::zero_divisions(const std::string& prefix, const std::map<std::string, double>& values,
                                    const std::map<std::string, std::string>& remarks, std::int64_t step) {
  for (const auto& [name, remark] : remarks) {
    const auto value = values.find(name);
    if (value == values.end() || std::isnan(value->second) || !is_first(prefix + name + " divides by 0")) continue;
    log::warning(format("{}{} {}, in the {} data at step {}", prefix, name, remark, data_of(prefix), step));
  }
}

void ResultWarnings::missing(const std::string& watcher, const std::string& monitor,
                             const std::map<std::string, double>& values) {
  if (values.contains(monitor) || !is_first(watcher)) return;
  log::warning(format("{} monitors {}, which this evaluation does not report: {} has no effect until one reports it",
                      watcher, monitor, watcher));
}

void ResultWarnings::weightless_validation(double weight) {
  if (weight != 0 || !is_first("the weights of validation")) return;
  log::warning(
      "all validation samples have weight 0 or cannot be read: the validation loss and metrics are meaningless; check "
      "the weights of the data");
}

}  // namespace trainctl
