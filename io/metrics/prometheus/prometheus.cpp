// Keeps a run's newest state.
#include "io/metrics/prometheus/prometheus.h"

#include <algorithm>
#include <utility>

#include "core/base/clock.h"
#include "io/metrics/watch/growing_file.h"
#include "io/metrics/watch/read_events.h"

namespace trainctl {
namespace {

std::int64_t starts_in(const std::string& metrics_path) {
  GrowingFile file(metrics_path);
  std::int64_t starts = 0;
  for (bool more = true; more;) {
    const GrowingFile::News news = file.read();
    more = news.more;
    starts += std::count_if(news.lines.begin(), news.lines.end(),
                            [](const std::string& line) { return holds_event(line, "start"); });
  }
  return starts;
}

}  // namespace

Prometheus::Prometheus(const Located<ListenAddress>& address, const std::string& run, std::string metrics_path)
    : metrics_path_(std::move(metrics_path)), state_{run, {}, 0, 0}, server_(address, [this] {
        std::unique_lock lock(mutex_);
        const PrometheusState state = state_;
        lock.unlock();
        return prometheus_text(state);
      }) {}

void Prometheus::start(const StartEvent& event) {
  const std::int64_t starts = starts_in(metrics_path_);
  const std::lock_guard lock(mutex_);
  state_.record.start = event;
  state_.restarts = std::max<std::int64_t>(0, starts - 1);
}

void Prometheus::step(const StepEvent& event) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return;
  state_.record.step = event;
  state_.record.step->gpus = {};
  if (!event.gpus.empty()) state_.record.gpus.assign(event.gpus.begin(), event.gpus.end());
  state_.step_time = wall_seconds();
}

void Prometheus::epoch(const EpochEvent& event) {
  const std::lock_guard lock(mutex_);
  state_.record.epoch = event;
  state_.record.epoch->train_tables.clear();
  state_.record.epoch->validation_tables.clear();
}

void Prometheus::checkpoint(const CheckpointEvent& event) {
  const std::lock_guard lock(mutex_);
  state_.record.checkpoint = event;
  state_.record.checkpoint_time = wall_seconds();
}

}  // namespace trainctl
