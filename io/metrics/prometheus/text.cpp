// Writes metrics: for each family its HELP and TYPE, then its samples.
#include "io/metrics/prometheus/text.h"

#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/format.h"

namespace trainctl {
namespace {

using Labels = std::vector<std::pair<std::string_view, std::string>>;

std::string number_text(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return format("{}", value);
}

std::string escaped(const std::string& text) {
  std::string found;
  for (const char c : text) {
    if (c == '\\' || c == '"') found += '\\';
    found += c == '\n' ? "\\n" : std::string(1, c);
  }
  return found;
}

class ExpositionText {
 public:
  // Starts a family, to which the following samples belong.
  void family(std::string_view name, std::string_view type, std::string_view help) {
    name_ = "trainctl_" + std::string(name);
    head_ = format("# HELP {0} {1}\n# TYPE {0} {2}\n", name_, help, type);
  }
  void sample(double value, const Labels& labels = {}) {
    text_ += std::exchange(head_, "") + name_;
    for (std::size_t i = 0; i < labels.size(); ++i) {
      text_ += format("{}{}=\"{}\"", i == 0 ? "{" : ",", labels[i].first, escaped(labels[i].second));
    }
    text_ += (labels.empty() ? " " : "} ") + number_text(value) + "\n";
  }
  void gauge(std::string_view name, std::string_view help, double value) {
    family(name, "gauge", help);
    sample(value);
  }
  void counter(std::string_view name, std::string_view help, double value) {
    family(name, "counter", help);
    sample(value);
  }
  std::string take() { return std::move(text_); }

 private:
  std::string name_, head_, text_;
};

void add_start(ExpositionText& text, const PrometheusState& state) {
  const StartEvent& start = *state.record.start;
  text.family("run_info", "gauge", "Which run this is, by its labels; always 1.");
  text.sample(1, {{"run", state.run}, {"version", start.version}, {"device", start.device}});
  text.gauge("ranks", "Ranks that train.", start.ranks);
  text.gauge("parameters", "Parameters of the network.", static_cast<double>(start.parameters));
  text.counter("restarts_total", "How often the run was started again after its first start.",
               static_cast<double>(state.restarts));
  if (start.total_steps > 0) {
    text.gauge("planned_steps", "Steps after which the run is complete.", static_cast<double>(start.total_steps));
  }
}

void add_step(ExpositionText& text, const PrometheusState& state) {
  const StepEvent& step = *state.record.step;
  text.counter("steps_total", "Steps done, including those before a restart.", static_cast<double>(step.step));
  text.counter("epochs_total", "Epochs done, including the fraction of the present one.", step.epoch);
  text.gauge("loss", "Mean loss over the global batch of the newest step.", step.loss);
  text.gauge("learning_rate", "Learning rate of the newest step.", step.learning_rate);
  text.gauge("gradient_norm", "Norm of the gradient of the newest step.", step.gradient_norm);
  text.gauge("samples_per_second", "Training samples a second over all ranks.", step.samples_per_second);
  text.gauge("data_wait_ratio", "Share of the time that rank 0 waits for data, from 0 to 1.", step.data_wait_share);
  text.gauge("communication_wait_ratio", "Share of the time that rank 0's computation waits for other ranks, 0 to 1.",
             step.shares.communication);
  text.gauge("last_step_timestamp_seconds", "When the newest step ended, in seconds since 1970.", state.step_time);
}

void add_epoch(ExpositionText& text, const EpochEvent& epoch) {
  text.family("epoch_metric", "gauge", "Loss and metrics of the newest epoch, over training and validation data.");
  for (const auto& [name, value] : epoch.train) text.sample(value, {{"metric", name}, {"data", "training"}});
  for (const auto& [name, value] : epoch.validation) text.sample(value, {{"metric", name}, {"data", "validation"}});
  text.gauge("epoch_duration_seconds", "Time of the newest epoch with its validation.", epoch.seconds);
}

void add_checkpoint(ExpositionText& text, const RunRecord& record) {
  const CheckpointEvent& checkpoint = *record.checkpoint;
  text.gauge("checkpoint_step", "Steps done at the newest checkpoint.", static_cast<double>(checkpoint.step));
  text.gauge("checkpoint_timestamp_seconds", "When the newest checkpoint was complete, in seconds since 1970.",
             record.checkpoint_time);
  text.gauge("checkpoint_size_bytes", "Size of the newest checkpoint.", static_cast<double>(checkpoint.bytes));
  text.gauge("checkpoint_duration_seconds", "Time to write the newest checkpoint.", checkpoint.seconds);
}

void add_gpus(ExpositionText& text, const std::vector<GpuSample>& gpus) {
  const auto add = [&](std::string_view name, std::string_view help, double GpuReading::*value, double scale = 1) {
    text.family(name, "gauge", help);
    for (const GpuSample& gpu : gpus) {
      const double reading = gpu.reading.*value;
      if (!std::isnan(reading)) text.sample(scale * reading, {{"rank", std::to_string(gpu.rank)}});
    }
  };
  add("gpu_utilization_ratio", "Share of the time in which the rank's GPU ran a kernel.", &GpuReading::utilization);
  add("gpu_memory_used_bytes", "Memory of the rank's GPU in use.", &GpuReading::memory_bytes);
  add("gpu_temperature_celsius", "Temperature of the rank's GPU.", &GpuReading::temperature);
  add("gpu_power_watts", "Power draw of the rank's GPU.", &GpuReading::power_watts);
  add("gpu_clock_hertz", "Clock of the multiprocessors of the rank's GPU.", &GpuReading::clock_mhz, 1e6);
  text.family("gpu_throttled", "gauge", "Whether the rank's GPU is throttled: 1 if its clock is lowered, else 0.");
  for (const GpuSample& gpu : gpus) {
    text.sample(throttle_words(gpu.reading.throttled).empty() ? 0 : 1, {{"rank", std::to_string(gpu.rank)}});
  }
}

}  // namespace

std::string prometheus_text(const PrometheusState& state) {
  ExpositionText text;
  const RunRecord& record = state.record;
  if (record.start) add_start(text, state);
  if (record.step) add_step(text, state);
  if (record.epoch) add_epoch(text, *record.epoch);
  if (record.checkpoint) add_checkpoint(text, record);
  add_gpus(text, record.gpus);
  return text.take();
}

}  // namespace trainctl
