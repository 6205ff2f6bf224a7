// Writes metrics.jsonl and reads its last line.
#include "io/metrics/metrics_jsonl.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <system_error>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/full_disk.h"
#include "core/base/json.h"
#include "core/base/json_fwd.h"

namespace trainctl {
namespace {

// Returns bytes [begin, end) of the file, fewer if the file is shorter. Throws Error{data} if it cannot be read.
std::string read_from(const std::string& path, int descriptor, off_t begin, off_t end) {
  std::string text(static_cast<std::size_t>(end - begin), '\0');
  ssize_t done = 0;
  do {
    done = pread(descriptor, text.data(), text.size(), begin);
  } while (done < 0 && errno == EINTR);
  if (done < 0) throw_file_error(path, "cannot be read", errno);
  text.resize(static_cast<std::size_t>(done));
  return text;
}

// Returns the number of bytes up to the last line break, including it.
off_t whole_lines(const std::string& path, int descriptor, off_t size) {
  constexpr off_t block = 1 << 16;
  for (off_t end = size; end > 0;) {
    const off_t begin = std::max<off_t>(0, end - block);
    const std::size_t found = read_from(path, descriptor, begin, end).rfind('\n');
    if (found != std::string::npos) return begin + static_cast<off_t>(found) + 1;
    end = begin;
  }
  return 0;
}

// Opens the file for appending, and cuts off an incomplete last line.
int open_whole_lines(const std::string& path) {
  int descriptor = -1;
  do {
    descriptor = open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  } while (descriptor < 0 && errno == EINTR);
  try {
    struct stat status {};
    const bool opened = descriptor >= 0 && fstat(descriptor, &status) == 0 &&
                        ftruncate(descriptor, whole_lines(path, descriptor, status.st_size)) == 0;
    if (opened) return descriptor;
    throw Error(ErrorKind::resource, SourceLocation{path}, "cannot write: " + std::generic_category().message(errno),
                "choose a run directory that can be written (--run-dir)");
  } catch (...) {
    if (descriptor >= 0) close(descriptor);
    throw;
  }
}

Json event(const char* name) {
  const auto since_epoch = std::chrono::system_clock::now().time_since_epoch();
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(since_epoch).count();
  return {{"event", name}, {"time", static_cast<double>(milliseconds) / 1000}};
}

// Returns null for unknown values, since JSON has no NaN.
Json known(double value) { return std::isnan(value) ? Json() : Json(value); }

Json gpu(const GpuSample& sample) {
  const GpuReading& reading = sample.reading;
  return {{"rank", sample.rank},
          {"utilization", known(reading.utilization)},
          {"memory_bytes", known(reading.memory_bytes)},
          {"temperature", known(reading.temperature)},
          {"power_watts", known(reading.power_watts)},
          {"clock_mhz", known(reading.clock_mhz)},
          {"throttled", throttle_words(reading.throttled)}};
}

}  // namespace

MetricsJsonl::MetricsJsonl(const std::string& path, Duration every, std::function<void()> require_current)
    : file_(path, open_whole_lines(path)), due_(every), require_current_(std::move(require_current)) {}

void MetricsJsonl::write(const std::string& line) {
  constexpr std::chrono::seconds pause(1);  // between checks, which read the file system
  const auto now = std::chrono::steady_clock::now();
  if (require_current_ && now >= next_check_) {
    require_current_();
    next_check_ = now + pause;
  }
  file_.append(line);
}

void MetricsJsonl::restart(const RestartEvent& e) {
  Json json = event("restart");
  json["attempt"] = e.attempt;
  json["cause"] = e.cause;
  json["rank"] = e.rank ? Json(*e.rank) : Json();
  json["host"] = e.host.empty() ? Json() : Json(e.host);
  json["signal"] = e.signal ? Json(*e.signal) : Json();
  json["step"] = e.step ? Json(*e.step) : Json();
  json["ranks"] = e.ranks;
  json["detected"] = e.detected;
  write(json_line(json));
}

void MetricsJsonl::start(const StartEvent& e) {
  Json json = event("start");
  json["version"] = e.version;
  json["seed"] = e.seed;
  json["ranks"] = e.ranks;
  json["mesh"] = e.mesh;
  json["hosts"] = e.hosts;
  json["device"] = e.device;
  json["kernels"] = e.kernels;
  json["parameters"] = e.parameters;
  json["flops_per_sample"] = e.flops_per_sample;
  if (e.peak_flops > 0) json["peak_flops"] = e.peak_flops;
  json["resumed_from"] = e.resumed_from.empty() ? Json() : Json(e.resumed_from);
  json["steps_per_epoch"] = e.steps_per_epoch;
  json["total_steps"] = e.total_steps;
  json["first_step"] = e.first_step;
  json["monitor"] = nullptr;
  if (!e.monitor.empty()) json["monitor"] = {{"name", e.monitor}, {"mode", e.monitor_maximum ? "max" : "min"}};
  for (const auto& [region, bytes] : e.memory) json["memory"][region] = bytes;
  write(json_line(json));
}

void MetricsJsonl::step(const StepEvent& e) {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  if (!due_(e, std::chrono::duration<double>(now).count())) return;
  Json json = event("step");
  json["step"] = e.step;
  json["epoch"] = e.epoch;
  json["loss"] = json_number(e.loss);
  json["learning_rate"] = e.learning_rate;
  json["samples_per_second"] = e.samples_per_second;
  json["gradient_norm"] = json_number(e.gradient_norm);
  json["data_wait_share"] = e.data_wait_share;
  for (const auto& [name, share] : step_shares) json["time_shares"][name] = e.shares.*share;
  for (const GpuSample& sample : e.gpus) json["gpu"].push_back(gpu(sample));
  write(json_line(json));
}

void MetricsJsonl::gradient_norms(const GradientNormsEvent& e) {
  Json json = event("gradient_norms");
  json["step"] = e.step;
  json["norms"] = json_numbers(e.norms);
  write(json_line(json));
}

void MetricsJsonl::not_finite(const NotFiniteEvent& e) {
  Json json = event("not_finite");
  json["step"] = e.step;
  json["epoch"] = e.epoch;
  json["action"] = e.action;
  json["cause"] = e.cause;
  json["count"] = e.count;
  if (e.to_step >= 0) json["to_step"] = e.to_step;
  if (e.skipped_step >= 0) json["skipped_step"] = e.skipped_step;
  write(json_line(json));
}

void MetricsJsonl::corruption(const CorruptionEvent& e) {
  Json json = event("corruption");
  json["step"] = e.step;
  json["action"] = e.action;
  json["ranks"] = e.ranks;
  json["hosts"] = e.hosts;
  json["difference"] = e.difference;
  write(json_line(json));
}

void MetricsJsonl::refused_resize(const RefusedResizeEvent& e) {
  Json json = event("refused_resize");
  json["step"] = e.step;
  json["ranks"] = e.ranks;
  json["reason"] = e.reason;
  write(json_line(json));
}

void MetricsJsonl::epoch(const EpochEvent& e) {
  Json json = event("epoch");
  const auto whole = static_cast<std::int64_t>(e.epoch);
  json["epoch"] = static_cast<double>(whole) == e.epoch ? Json(whole) : Json(e.epoch);
  json["step"] = e.step;
  json["train"] = json_numbers(e.train);
  json["validation"] = json_numbers(e.validation);
  for (const auto& [name, table] : e.train_tables) json["train"][name] = table;
  for (const auto& [name, table] : e.validation_tables) json["validation"][name] = table;
  json["seconds"] = e.seconds;
  write(json_line(json));
}

void MetricsJsonl::checkpoint(const CheckpointEvent& e) {
  Json json = event("checkpoint");
  json["step"] = e.step;
  json["path"] = e.path;
  json["seconds"] = e.seconds;
  json["bytes"] = e.bytes;
  json["stall_seconds"] = e.stall_seconds;
  write(json_line(json));
}

void MetricsJsonl::end(const EndEvent& e) {
  write(end_line(e));
  file_.finish();
}

std::string end_line(const EndEvent& e) {
  Json json = event("end");
  json["status"] = e.status;
  if (!e.reason.empty()) json["reason"] = e.reason;
  json["step"] = e.step;
  json["epoch"] = e.epoch;
  json["best"] = nullptr;
  if (!e.best_monitor.empty()) {
    json["best"] = {{"monitor", e.best_monitor}, {"value", json_number(e.best_value)}, {"step", e.best_step}};
  }
  json["train"] = json_numbers(e.train);
  json["validation"] = json_numbers(e.validation);
  json["weights_sha256"] = e.weights_sha256;
  json["seconds"] = e.seconds;
  if (e.gpus.gpus > 0) {
    json["gpu"] = {{"gpus", e.gpus.gpus},
                   {"utilization", known(e.gpus.utilization)},
                   {"power_watts", known(e.gpus.power_watts)},
                   {"energy_joules", known(e.gpus.energy_joules)},
                   {"peak_memory_bytes", known(e.gpus.peak_memory_bytes)},
                   {"throttled", throttle_words(e.gpus.throttled)}};
  }
  return json_line(json);
}

std::string final_line(const std::string& path) {
  if (!exists(path)) return "";
  const InputFile file(path);
  const std::int64_t begin_of_tail = std::max<std::int64_t>(0, file.size() - (1 << 16));
  std::string text(static_cast<std::size_t>(file.size() - begin_of_tail), '\0');
  // The process of another run may be writing the file and may cut off an incomplete line.
  text.resize(static_cast<std::size_t>(file.read_some(begin_of_tail, text.data(), file.size() - begin_of_tail)));
  if (!text.ends_with('\n')) return "";
  const std::size_t begin = text.size() < 2 ? 0 : text.rfind('\n', text.size() - 2) + 1;  // npos + 1 is 0
  return text.substr(begin);
}

std::optional<std::string> final_status(const std::string& path) {
  const Json last = try_parse_json(final_line(path));
  if (!last.is_object() || last.value("event", Json()) != "end") return std::nullopt;
  const Json status = last.value("status", Json());
  return status.is_string() ? status.get<std::string>() : "";
}

}  // namespace trainctl
