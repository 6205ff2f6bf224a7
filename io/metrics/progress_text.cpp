// Formats lines of progress.
#include "io/metrics/progress_text.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "core/base/format.h"
#include "core/base/table.h"

namespace trainctl {
namespace {

constexpr double shown_wait_share = 0.1;  // shortest wait for data that is shown, as a share of the time
constexpr int smallest_bar = 8;
constexpr int largest_bar = 30;

std::string count_of_total(const std::string& done, std::int64_t total) {
  return total > 0 ? format("{}/{}", done, total) : done;
}

std::string count_of_total(std::int64_t done, std::int64_t total) {
  return count_of_total(std::to_string(done), total);
}

std::string rate_text(double samples_per_second) { return count_text(samples_per_second) + " samples/s"; }

// Returns text such as "GPU 97 %, 31.2 GB".
std::string gpu_text(const ProgressState& state) {
  std::string text = "GPU";
  if (!std::isnan(state.gpu_utilization)) text += format(" {:.0f} %", 100 * state.gpu_utilization);
  if (std::isnan(state.gpu_memory_bytes)) return text;
  return text + (text == "GPU" ? " " : ", ") + byte_text(std::llround(state.gpu_memory_bytes));
}

bool has_gpu_values(const ProgressState& state) {
  return !std::isnan(state.gpu_utilization) || !std::isnan(state.gpu_memory_bytes);
}

std::string wait_text(const ProgressState& state) {
  return format("waits {:.0f} % for data", 100 * state.data_wait_share);
}

// "  loss 0.1234  accuracy 0.9611", the loss first.
std::string metrics_text(const std::map<std::string, double>& metrics, const std::string& prefix) {
  std::string text;
  const auto add = [&](const std::string& name, double value) { text += format("  {}{} {:.4g}", prefix, name, value); };
  if (const auto loss = metrics.find("loss"); loss != metrics.end()) add(loss->first, loss->second);
  for (const auto& [name, value] : metrics) {
    if (name != "loss") add(name, value);
  }
  return text;
}

std::string bar(double done, int width) {
  const int full = std::clamp(static_cast<int>(done * width), 0, width);
  std::string text(static_cast<std::size_t>(full), '=');
  if (full < width) text += '>';
  text.resize(static_cast<std::size_t>(width), ' ');
  return "[" + text + "]";
}

}  // namespace

void set_gpus(ProgressState& state, std::span<const GpuSample> gpus) {
  if (gpus.empty()) return;
  double busy = 0;
  for (const GpuSample& sample : gpus) {
    busy += sample.reading.utilization;
    state.gpu_memory_bytes = std::fmax(state.gpu_memory_bytes, sample.reading.memory_bytes);
  }
  state.gpu_utilization = busy / static_cast<double>(gpus.size());
}

std::int64_t epoch_count(std::int64_t total_steps, std::int64_t steps_per_epoch) {
  if (steps_per_epoch <= 0 || total_steps <= 0) return 0;
  return (total_steps + steps_per_epoch - 1) / steps_per_epoch;
}

std::string count_text(double count) {
  if (count < 100) return format("{:.3g}", count);
  std::string digits = format("{:.0f}", count);
  for (std::size_t end = digits.size(); end > 3; end -= 3) digits.insert(end - 3, ",");
  return digits;
}

std::string time_text(double seconds) {
  if (seconds < 10) return format("{:.1f} s", seconds);
  const std::int64_t whole = std::llround(seconds);
  if (whole < 60) return format("{} s", whole);
  if (whole < 3600) return format("{}:{:02}", whole / 60, whole % 60);
  return format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string bar_line(const ProgressState& state, int width) {
  struct Field {
    std::string text;
    int priority;  // the field with the highest number is left out first if the line is too long
  };
  std::vector<Field> fields;
  const std::int64_t epochs = epoch_count(state.total_steps, state.steps_per_epoch);
  if (epochs > 0) {
    const std::int64_t epoch =
        std::min(epochs, (std::max<std::int64_t>(state.step, 1) - 1) / state.steps_per_epoch + 1);
    fields.push_back({format("epoch {}/{}", epoch, epochs), 2});
  }
  fields.push_back({count_of_total(state.step, state.total_steps), 0});
  const std::size_t fields_before_bar = fields.size();
  fields.push_back({format("loss {:.4f}", state.loss), 1});
  if (state.samples_per_second > 0) fields.push_back({rate_text(state.samples_per_second), 4});
  if (state.data_wait_share >= shown_wait_share) fields.push_back({wait_text(state), 5});
  if (has_gpu_values(state)) fields.push_back({gpu_text(state), 6});
  if (state.seconds_left >= 0) fields.push_back({"ETA " + time_text(state.seconds_left), 3});

  const auto length = [&] {
    const auto add = [](int sum, const Field& field) {
      return sum + (field.text.empty() ? 0 : int(field.text.size()) + 2);
    };
    return std::accumulate(fields.begin(), fields.end(), -2, add);
  };
  for (int priority = 6; priority > 0 && length() > width; --priority) {
    for (Field& field : fields) {
      if (field.priority == priority) field.text.clear();
    }
  }
  const int bar_width = std::min(width - length() - 3, largest_bar);  // a space and two brackets
  std::string line;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].text.empty()) continue;
    line += (line.empty() ? "" : "  ") + fields[i].text;
    if (i + 1 == fields_before_bar && state.total_steps > 0 && bar_width >= smallest_bar) {
      line += " " + bar(static_cast<double>(state.step) / static_cast<double>(state.total_steps), bar_width);
    }
  }
  return line.substr(0, static_cast<std::size_t>(std::max(width, 0)));
}

std::string step_line(const ProgressState& state) {
  std::string line =
      format("step {}  epoch {:.2f}  loss {:.4f}  lr {:.4g}", count_of_total(state.step, state.total_steps),
             state.epoch, state.loss, state.learning_rate);
  if (state.samples_per_second > 0) line += "  " + rate_text(state.samples_per_second);
  if (state.data_wait_share >= shown_wait_share) line += "  " + wait_text(state);
  if (has_gpu_values(state)) line += "  " + gpu_text(state);
  return line;
}

std::string epoch_line(const EpochEvent& event, std::int64_t epochs) {
  const double whole = std::floor(event.epoch);
  const bool ends_within = event.epoch > whole;  // the run ended before the epoch did
  std::string line = "epoch " + count_of_total(std::llround(whole) + (ends_within ? 1 : 0), epochs);
  if (ends_within) line += format(", {:.2g} % of it", 100 * (event.epoch - whole));
  return line + metrics_text(event.train, "") + metrics_text(event.validation, "val_") + "  (" +
         time_text(event.seconds) + ")";
}

std::vector<std::string> summary_lines(const EndEvent& event, double samples_per_second,
                                       const std::string& checkpoint) {
  const double whole = std::floor(event.epoch);
  std::string first = event.status + " after ";
  if (event.epoch == whole) first += counted(std::llround(whole), "epoch") + ", ";
  first += counted(event.step, "step");
  if (event.epoch != whole) first += format(", in epoch {}", std::llround(whole) + 1);
  first += ", " + time_text(event.seconds);
  if (samples_per_second > 0) first += ", " + rate_text(samples_per_second);
  std::vector<std::string> lines{first};
  if (!event.reason.empty()) lines.push_back("  ended by     " + event.reason);
  if (!event.train.empty()) lines.push_back("  training   " + metrics_text(event.train, ""));
  if (!event.validation.empty()) lines.push_back("  validation " + metrics_text(event.validation, ""));
  if (!event.best_monitor.empty()) {
    lines.push_back(
        format("  best         {} {:.4g} at step {}", event.best_monitor, event.best_value, event.best_step));
  }
  if (!event.weights_sha256.empty()) lines.push_back("  weights      sha256 " + event.weights_sha256);
  if (!checkpoint.empty()) lines.push_back("  checkpoint   " + checkpoint);
  return lines;
}

std::vector<std::string> device_lines(const StartEvent& start, const EndEvent& end, double samples_per_second) {
  std::vector<std::string> lines;
  if (const GpuSummary& gpus = end.gpus; gpus.gpus > 0) {
    std::string line = format("  GPUs         {}", gpus.gpus);
    const auto add = [&line](double value, const std::string& text) {
      if (!std::isnan(value)) line += ", " + text;
    };
    add(gpus.utilization, format("{:.0f} % busy", 100 * gpus.utilization));
    add(gpus.power_watts, format("{:.0f} W", gpus.power_watts));
    add(gpus.energy_joules, gpus.energy_joules < 1e6 ? format("{:.4g} kJ", gpus.energy_joules / 1e3)
                                                     : format("{:.4g} kWh", gpus.energy_joules / 3.6e6));
    add(gpus.peak_memory_bytes, format("at most {} of memory", byte_text(std::llround(gpus.peak_memory_bytes))));
    for (const std::string& word : throttle_words(gpus.throttled)) line += ", throttled: " + word;
    lines.push_back(line);
  }
  if (start.peak_flops > 0 && samples_per_second > 0) {
    lines.push_back(format("  MFU          {:.1f} % of {:.0f} TFLOP/s ({}, by its data sheet)",
                           100 * start.flops_per_sample * samples_per_second / start.peak_flops,
                           1e-12 * start.peak_flops, start.device.substr(0, start.device.find(','))));
  }
  return lines;
}

}  // namespace trainctl
