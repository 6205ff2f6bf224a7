// Writes the state of a run to snapshots and reads it from them.
#include "parallel/trainer/loop/training_state.h"

#include <cmath>
#include <cstdlib>
#include <span>

#include "core/base/format.h"
#include "core/metrics/monitor.h"
#include "parallel/trainer/loop/loop_plan.h"

namespace trainctl {
namespace {

// Returns the shortest text that is parsed to the same values.
std::string exact(std::span<const double> values) {
  std::string text;
  for (double value : values) text += format("{}{}", text.empty() ? "" : " ", value);
  return text;
}

// Appends `count` values of the text, with zeros for missing values.
void parse_exact(const std::string& text, int count, std::vector<double>& values) {
  const char* at = text.c_str();
  for (int i = 0; i < count; ++i) {
    char* end = nullptr;
    values.push_back(std::strtod(at, &end));
    at = end;
  }
}

}  // namespace

std::map<std::string, double> TrainingState::values() const {
  std::map<std::string, double> merged = train;
  for (const auto& [name, value] : validation) merged["val_" + name] = value;
  return merged;
}

bool TrainingState::update_best(const Monitor& monitor) {
  if (monitor.name.empty()) return false;
  const std::map<std::string, double> current = values();
  const auto found = current.find(monitor.name);
  if (found == current.end() || !std::isfinite(found->second)) return false;
  const MonitorMode mode = monitor.maximum ? MonitorMode::maximum : MonitorMode::minimum;
  if (best && !is_better(found->second, best->value, mode)) return false;
  best = BestResult{.monitor = monitor.name, .maximum = monitor.maximum, .value = found->second, .step = step};
  return true;
}

void TrainingState::save(Snapshot& snapshot) const {
  snapshot.step = step;
  snapshot.position = data;
  snapshot.best = best;
  snapshot.metrics = values();
  const double count = epoch_means.count(), weight = epoch_means.weight();
  snapshot.metadata["epoch/count"] = exact({&count, 1});
  snapshot.metadata["epoch/weight"] = exact({&weight, 1});
  for (const MetricResult& result : epoch_means.results()) {
    if (!result.derived) snapshot.metadata["epoch/" + result.name] = exact(epoch_means.sums(result));
  }
}

void TrainingState::restore(const Snapshot& snapshot, const Monitor& monitor) {
  step = snapshot.step;
  const std::optional<BestResult>& found = snapshot.best;
  if (found && std::isfinite(found->value) && found->monitor == monitor.name && found->maximum == monitor.maximum) {
    best = found;
  }
  for (const auto& [name, value] : snapshot.metrics) {
    const bool on_validation = name.starts_with("val_");
    (on_validation ? validation : train)[on_validation ? name.substr(4) : name] = value;
  }
  const auto sums_of = [&](const std::string& name, int values, std::vector<double>& sums) {
    const auto entry = snapshot.metadata.find("epoch/" + name);
    parse_exact(entry == snapshot.metadata.end() ? "" : entry->second, values, sums);
  };
  std::vector<double> sums, count;
  for (const MetricResult& result : epoch_means.results()) {
    if (!result.derived) sums_of(result.name, result.sums, sums);
  }
  sums_of("weight", 1, sums);
  sums_of("count", 1, count);
  epoch_means.clear();
  epoch_means.add(sums, count.front());
}

}  // namespace trainctl
