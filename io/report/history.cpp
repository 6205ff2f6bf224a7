// Reading metrics.jsonl line by line.
#include "io/report/history.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "core/base/files.h"
#include "core/base/json.h"

namespace trainctl {
namespace {

constexpr std::int64_t longest_history = std::int64_t{1} << 32;  // bytes

double number_in(const Json& json, const char* name, double otherwise = 0) {
  const auto found = json.find(name);
  return found == json.end() ? otherwise : number_of(*found);
}

// Numbers of an object; tables, lists of lists, go to `tables`.
std::map<std::string, double> values_in(const Json& json, std::map<std::string, Table>* tables = nullptr) {
  std::map<std::string, double> values;
  for (const auto& [name, value] : json.items()) {
    if (!value.is_array()) values[name] = number_of(value);
    if (value.is_array() && tables != nullptr) (*tables)[name] = value.get<Table>();
  }
  return values;
}

ToldStart start_of(const Json& json) {
  ToldStart start;
  StartEvent& event = start.event;
  start.time = json.at("time");
  event.version = json.value("version", "");
  event.seed = json.at("seed");
  event.ranks = json.at("ranks");
  event.mesh = json.at("mesh").get<std::vector<int>>();
  event.hosts = json.at("hosts").get<std::vector<std::string>>();
  event.device = json.at("device");
  event.parameters = json.at("parameters");
  event.flops_per_sample = number_in(json, "flops_per_sample");
  event.peak_flops = number_in(json, "peak_flops");
  if (const Json& from = json.at("resumed_from"); from.is_string()) event.resumed_from = from;
  event.steps_per_epoch = json.value("steps_per_epoch", std::int64_t{0});
  event.total_steps = json.value("total_steps", std::int64_t{0});
  event.first_step = json.value("first_step", std::int64_t{0});
  if (const auto monitor = json.find("monitor"); monitor != json.end() && monitor->is_object()) {
    event.monitor = monitor->at("name");
    event.monitor_maximum = monitor->at("mode") == "max";
  }
  if (const auto memory = json.find("memory"); memory != json.end()) {
    for (const auto& [name, bytes] : memory->items()) event.memory.emplace_back(name, bytes.get<std::int64_t>());
  }
  return start;
}

ToldStep step_of(const Json& json) {
  ToldStep step;
  StepEvent& event = step.event;
  event.step = json.at("step");
  event.epoch = json.at("epoch");
  event.loss = number_of(json.at("loss"));
  event.learning_rate = number_of(json.at("learning_rate"));
  event.samples_per_second = number_in(json, "samples_per_second");
  event.gradient_norm = number_in(json, "gradient_norm", std::nan(""));
  event.data_wait_share = number_in(json, "data_wait_share");
  if (const auto gpus = json.find("gpu"); gpus != json.end() && !gpus->empty()) {
    double utilization = 0;
    for (const Json& gpu : *gpus) {
      utilization += number_in(gpu, "utilization", std::nan("")) / static_cast<double>(gpus->size());
      step.gpu_memory_bytes = std::fmax(step.gpu_memory_bytes, number_in(gpu, "memory_bytes", std::nan("")));
    }
    step.gpu_utilization = utilization;
  }
  return step;
}

EpochEvent epoch_of(const Json& json) {
  EpochEvent epoch;
  epoch.epoch = json.at("epoch");
  epoch.step = json.at("step");
  epoch.train = values_in(json.at("train"), &epoch.train_tables);
  epoch.validation = values_in(json.at("validation"), &epoch.validation_tables);
  epoch.seconds = number_in(json, "seconds");
  return epoch;
}

EndEvent end_of(const Json& json) {
  EndEvent end;
  end.status = json.at("status");
  end.step = json.at("step");
  end.epoch = number_in(json, "epoch");
  if (const auto best = json.find("best"); best != json.end() && best->is_object()) {
    end.best_monitor = best->at("monitor");
    end.best_value = number_of(best->at("value"));
    end.best_step = best->at("step");
  }
  end.weights_sha256 = json.value("weights_sha256", "");
  end.seconds = number_in(json, "seconds");
  return end;
}

// Of a run that goes on, what was told of steps behind those it goes on from.
void take_back(RunHistory& history, std::int64_t step) {
  std::erase_if(history.steps, [step](const ToldStep& told) { return told.event.step > step; });
  std::erase_if(history.epochs, [step](const EpochEvent& told) { return told.step > step; });
  std::erase_if(history.checkpoints, [step](const CheckpointEvent& told) { return told.step > step; });
}

void add_event(RunHistory& history, const Json& json) {
  const std::string name = json.at("event");
  history.last_time = json.at("time");
  if (name == "start") {
    history.starts.push_back(start_of(json));
    take_back(history, history.starts.back().event.first_step);
    history.end.reset();
  } else if (name == "step") {
    history.steps.push_back(step_of(json));
  } else if (name == "epoch") {
    history.epochs.push_back(epoch_of(json));
  } else if (name == "checkpoint") {
    history.checkpoints.push_back({json.at("step"), json.at("path"), number_in(json, "seconds"), json.at("bytes")});
  } else if (name == "end") {
    history.end = end_of(json);
  }
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
  const std::string text = read_file(path, longest_history);
  int line = 1;
  for (std::size_t begin = 0, end = 0; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1, ++line) {
    try {
      add_event(history, Json::parse(std::string_view(text).substr(begin, end - begin)));
    } catch (const Json::exception&) {
      throw Error(ErrorKind::data, Place{path, line}, "this is no event of a run",
                  "remove the line, or restore the file");
    }
  }
  return history;
}

}  // namespace trainctl
