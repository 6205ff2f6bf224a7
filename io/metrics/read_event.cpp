// Parses the fields of events.
#include "io/metrics/read_event.h"

#include <algorithm>

#include "core/base/json.h"

namespace trainctl {
namespace {

double value_of(const Json& json, const char* name) { return number_of(json.at(name)); }

// Returns NaN if the value is unknown.
double reading_of(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found == json.end() ? GpuReading::unknown : number_of(*found);
}

// Returns the numbers of an object. Adds tables, such as a confusion matrix, to `tables`.
std::map<std::string, double> metrics_of(const Json& json, std::map<std::string, Table>* tables = nullptr) {
  std::map<std::string, double> values;
  for (const auto& [name, value] : json.items()) {
    if (!value.is_array()) values[name] = number_of(value);
    if (value.is_array() && tables != nullptr) (*tables)[name] = value.get<Table>();
  }
  return values;
}

// Returns the bits of these words: the inverse of throttle_words().
std::uint64_t throttle_bits(const Json& words) {
  std::uint64_t bits = 0;
  for (std::uint64_t bit = 1; bit != 0; bit <<= 1) {
    const std::vector<std::string> word = throttle_words(bit);
    if (!word.empty() && std::find(words.begin(), words.end(), word.front()) != words.end()) bits |= bit;
  }
  return bits;
}

}  // namespace

StartEvent read_start(const Json& json) {
  StartEvent start;
  start.version = json.at("version");
  start.seed = json.at("seed");
  start.ranks = json.at("ranks");
  start.mesh = json.at("mesh").get<std::vector<int>>();
  start.hosts = json.at("hosts").get<std::vector<std::string>>();
  start.device = json.at("device");
  start.kernels = json.value("kernels", "");
  start.parameters = json.at("parameters");
  start.flops_per_sample = json.value("flops_per_sample", 0.0);
  start.peak_flops = json.value("peak_flops", 0.0);
  if (const Json& from = json.at("resumed_from"); !from.is_null()) start.resumed_from = from;
  start.steps_per_epoch = json.at("steps_per_epoch");
  start.total_steps = json.at("total_steps");
  start.first_step = json.value("first_step", std::int64_t{0});
  if (const auto monitor = json.find("monitor"); monitor != json.end() && monitor->is_object()) {
    start.monitor = monitor->at("name");
    start.monitor_maximum = monitor->at("mode") == "max";
  }
  if (const auto memory = json.find("memory"); memory != json.end()) {
    for (const auto& [region, bytes] : memory->items()) start.memory.emplace_back(region, bytes.get<std::int64_t>());
  }
  return start;
}

StepEvent read_step(const Json& json) {
  StepEvent step;
  step.step = json.at("step");
  step.epoch = value_of(json, "epoch");
  step.loss = value_of(json, "loss");
  step.learning_rate = value_of(json, "learning_rate");
  step.samples_per_second = value_of(json, "samples_per_second");
  step.gradient_norm = value_of(json, "gradient_norm");
  step.data_wait_share = value_of(json, "data_wait_share");
  if (const auto shares = json.find("time_shares"); shares != json.end()) {
    for (const auto& [name, share] : step_shares) step.shares.*share = shares->value(name, 0.0);
  }
  return step;
}

std::vector<GpuSample> read_gpus(const Json& json) {
  std::vector<GpuSample> samples;
  for (const Json& gpu : json) {
    GpuSample& sample = samples.emplace_back();
    sample.rank = gpu.at("rank");
    sample.reading.utilization = reading_of(gpu, "utilization");
    sample.reading.memory_bytes = reading_of(gpu, "memory_bytes");
    sample.reading.temperature = reading_of(gpu, "temperature");
    sample.reading.power_watts = reading_of(gpu, "power_watts");
    sample.reading.clock_mhz = reading_of(gpu, "clock_mhz");
    sample.reading.throttled = throttle_bits(gpu.value("throttled", Json::array()));
  }
  return samples;
}

EpochEvent read_epoch(const Json& json) {
  EpochEvent epoch;
  epoch.epoch = json.at("epoch");
  epoch.step = json.at("step");
  epoch.train = metrics_of(json.at("train"), &epoch.train_tables);
  epoch.validation = metrics_of(json.at("validation"), &epoch.validation_tables);
  epoch.seconds = json.at("seconds");
  return epoch;
}

CheckpointEvent read_checkpoint(const Json& json) {
  return {json.at("step"), json.at("path"), json.at("seconds"), json.at("bytes"), json.value("stall_seconds", 0.0)};
}

EndEvent read_end(const Json& json) {
  EndEvent end;
  end.status = json.at("status");
  end.reason = json.value("reason", "");
  end.step = json.at("step");
  end.epoch = json.at("epoch");
  if (const Json& best = json.at("best"); !best.is_null()) {
    end.best_monitor = best.at("monitor");
    end.best_value = value_of(best, "value");
    end.best_step = best.at("step");
  }
  end.train = metrics_of(json.at("train"));
  end.validation = metrics_of(json.at("validation"));
  end.weights_sha256 = json.at("weights_sha256");
  end.seconds = json.at("seconds");
  if (const auto gpu = json.find("gpu"); gpu != json.end()) {
    end.gpus = {gpu->at("gpus"),
                reading_of(*gpu, "utilization"),
                reading_of(*gpu, "power_watts"),
                reading_of(*gpu, "energy_joules"),
                reading_of(*gpu, "peak_memory_bytes"),
                throttle_bits(gpu->value("throttled", Json::array()))};
  }
  return end;
}

}  // namespace trainctl
