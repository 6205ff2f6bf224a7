// Reads metrics.jsonl line by line.
#include "io/report/history.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/json_parse.h"
#include "io/metrics/read_event.h"

namespace trainctl {
namespace {

constexpr std::int64_t max_history_bytes = std::int64_t{1} << 32;

RecordedStep recorded_step(const Json& json) {
  RecordedStep step{read_step(json)};
  const auto found = json.find("gpu");
  if (found == json.end()) return step;
  const std::vector<GpuSample> gpus = read_gpus(*found);
  step.gpu_utilization = 0;
  for (const GpuSample& gpu : gpus) {
    step.gpu_utilization += gpu.reading.utilization / static_cast<double>(gpus.size());
    step.gpu_memory_bytes = std::fmax(step.gpu_memory_bytes, gpu.reading.memory_bytes);
  }
  return step;
}

// Removes the events of steps after `step`, at which the run was resumed.
void remove_later_events(RunHistory& history, std::int64_t step) {
  std::erase_if(history.steps, [step](const RecordedStep& recorded) { return recorded.event.step > step; });
  std::erase_if(history.epochs, [step](const EpochEvent& recorded) { return recorded.step > step; });
  std::erase_if(history.checkpoints, [step](const CheckpointEvent& recorded) { return recorded.step > step; });
}

void add_event(RunHistory& history, const Json& json) {
  const std::string name = json.at("event");
  history.last_time = json.at("time");
  if (name == "start") {
    history.starts.push_back({read_start(json), history.last_time, history.last_time});
    remove_later_events(history, history.starts.back().event.first_step);
    history.end.reset();
  } else if (name == "step") {
    history.steps.push_back(recorded_step(json));
  } else if (name == "epoch") {
    history.epochs.push_back(read_epoch(json));
  } else if (name == "checkpoint") {
    history.checkpoints.push_back(read_checkpoint(json));
  } else if (name == "not_finite" && json.contains("to_step")) {
    remove_later_events(history, json.at("to_step"));
  } else if (name == "end") {
    history.end = read_end(json);
  }
  if (!history.starts.empty()) history.starts.back().last_time = history.last_time;
}

}  // namespace

std::optional<double> monitored_value(const EpochEvent& epoch, const std::string& monitor) {
  const bool held_out = monitor.starts_with("val_");
  const auto& values = held_out ? epoch.validation : epoch.train;
  const auto found = values.find(held_out ? monitor.substr(4) : monitor);
  return found == values.end() ? std::nullopt : std::optional(found->second);
}

std::int64_t RunHistory::steps_done() const {
  if (end) return end->step;
  return !steps.empty() ? steps.back().event.step : starts.empty() ? 0 : starts.back().event.first_step;
}

double RunHistory::epochs_done() const {
  if (end) return end->epoch;
  return steps.empty() ? 0 : steps.back().event.epoch;
}

double RunHistory::seconds() const {
  double sum = 0;
  for (const RecordedStart& start : starts) sum += start.last_time - start.time;
  return sum;
}

std::optional<RunHistory::Best> RunHistory::best() const {
  if (starts.empty()) return std::nullopt;
  const StartEvent& start = starts.back().event;
  Best best{start.monitor, 0, 0, start.monitor_maximum};
  if (end && !end->best_monitor.empty()) {
    return Best{end->best_monitor, end->best_value, end->best_step, start.monitor_maximum};
  }
  for (const EpochEvent& epoch : epochs) {
    const auto value = monitored_value(epoch, start.monitor);
    if (!value || !std::isfinite(*value)) continue;
    const bool better = best.maximum ? *value > best.value : *value < best.value;
    if (best.step == 0 || better) best.value = *value, best.step = epoch.step;
  }
  return best.step == 0 ? std::nullopt : std::optional(best);
}

const EpochEvent* RunHistory::epoch_at(std::int64_t step) const {
  const auto found =
      std::find_if(epochs.begin(), epochs.end(), [step](const EpochEvent& epoch) { return epoch.step == step; });
  return found == epochs.end() ? nullptr : &*found;
}

RunHistory read_history(const std::string& path) {
  RunHistory history;
  if (!exists(path)) return history;
  const std::string text = read_file(path, max_history_bytes);
  int line = 1;
  for (std::size_t begin = 0, end = 0; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1, ++line) {
    constexpr const char* remedy = "remove the line, or restore the file";
    try {
      add_event(history,
                parse_json(std::string_view(text).substr(begin, end - begin), SourceLocation{path, line}, remedy));
    } catch (const Json::exception& error) {
      throw Error(ErrorKind::data, SourceLocation{path, line},
                  "this line is not an event of a run: " + json_problem(error), remedy);
    }
  }
  return history;
}

}  // namespace trainctl
