// Gathers and compares readings of the ranks' GPUs.
#include "parallel/health/gpus.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/log.h"
#include "core/base/median.h"

namespace trainctl {
namespace {

constexpr int updates_before_warning = 10;
constexpr double tolerance = 0.1;

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

}  // namespace

bool GpuComparison::is_slowed_by_power_cap(const GpuSample& sample) {
  const GpuReading& reading = sample.reading;
  const bool is_slow =
      (reading.throttled & GpuReading::power_cap) != 0 && reading.clock_mhz < (1 - tolerance) * reading.max_clock_mhz;
  int& updates = slow_updates_[sample.rank];
  updates = is_slow ? updates + 1 : 0;
  return updates >= updates_before_warning;
}

std::vector<std::string> GpuComparison::update(std::span<const GpuSample> samples) {
  std::vector<std::string> warnings;
  for (const GpuSample& sample : samples) {
    std::vector<std::string> words;
    const std::uint64_t ignored = is_slowed_by_power_cap(sample) ? 0 : GpuReading::power_cap;
    for (const std::string& word : throttle_words(sample.reading.throttled & ~ignored)) {
      if (warned_.insert({sample.rank, word}).second) words.push_back(word);
    }
    if (words.empty()) continue;
    const std::string clock =
        std::isnan(sample.reading.clock_mhz)
            ? ""
            : format(", at {:.0f} of {:.0f} MHz", sample.reading.clock_mhz, sample.reading.max_clock_mhz);
    warnings.push_back(format("the GPU of rank {} is throttled: {}{}", sample.rank, joined(words), clock));
  }
  if (sums_.size() != samples.size()) {
    sums_.assign(samples.begin(), samples.end());
    updates_ = 1;
    return warnings;
  }
  for (std::size_t i = 0; i < samples.size(); ++i) {
    sums_[i].reading.clock_mhz += samples[i].reading.clock_mhz;
    sums_[i].reading.utilization += samples[i].reading.utilization;
  }
  if (++updates_ < updates_before_warning) return warnings;
  compare(warnings, "clock", &GpuReading::clock_mhz, 1, "MHz");
  compare(warnings, "utilisation", &GpuReading::utilization, 100, "%");
  return warnings;
}

void GpuComparison::compare(std::vector<std::string>& warnings, const char* what, double GpuReading::*value,
                            double scale, const char* unit) {
  for (const GpuSample& sum : sums_) {
    std::vector<double> others;
    for (const GpuSample& other : sums_) {
      if (other.rank != sum.rank && !std::isnan(other.reading.*value))
        others.push_back(other.reading.*value / updates_);
    }
    if (others.empty()) continue;
    const double own = sum.reading.*value / updates_;
    const double usual = median(others);
    // A NaN does not cause a warning.
    if (!(own < (1 - tolerance) * usual) || !warned_.insert({sum.rank, what}).second) continue;
    warnings.push_back(format("the GPU of rank {} has a lower {} than the others: {:.0f} {}, theirs {:.0f} {}",
                              sum.rank, what, scale * own, unit, scale * usual, unit));
  }
}

// The values that a rank sends to the others.
struct GpuWatch::Row {
  GpuReading reading;
  std::int64_t is_known = 0;
  std::int64_t interval = 0;  // number of steps until the next exchange; rank 0's value applies
};

GpuWatch::GpuWatch(std::unique_ptr<GpuMonitor> monitor, Communicator& world, Stream& stream, std::int64_t log_every)
    : monitor_(std::move(monitor)), world_(world), stream_(stream), log_every_(std::max<std::int64_t>(log_every, 1)) {}

template <class T>
std::vector<T> GpuWatch::exchange(const T& mine) {
  std::vector<T> all(static_cast<std::size_t>(world_.size()));
  all[static_cast<std::size_t>(world_.rank())] = mine;
  world_.all_gather({all.data(), DType::uint8, static_cast<std::int64_t>(all.size() * sizeof(T))}, stream_);
  stream_.synchronize();
  return all;
}

void GpuWatch::step(std::int64_t step) {
  if (step < next_ || step % log_every_ != 0) return;
  const double now = seconds_now();
  Row mine;
  mine.is_known = monitor_ ? 1 : 0;
  if (monitor_) mine.reading = monitor_->take();
  const double per_second = last_ < 0 ? 0 : static_cast<double>(step - last_) / std::max(now - last_seconds_, 1e-9);
  mine.interval = std::max<std::int64_t>(std::llround(per_second), 1);
  last_ = step;
  last_seconds_ = now;
  const std::vector<Row> rows = exchange(mine);
  next_ = step + rows.front().interval;
  samples_.clear();
  for (std::size_t rank = 0; rank < rows.size(); ++rank) {
    if (rows[rank].is_known != 0) samples_.push_back({static_cast<int>(rank), rows[rank].reading});
  }
  if (world_.rank() != 0) return;
  for (const std::string& warning : comparison_.update(samples_)) log::warning(warning);
}

GpuSummary GpuWatch::summary() {
  struct Known {
    GpuTotals totals;
    std::int64_t is_known;
  };
  GpuSummary summary;
  double utilization = 0;
  for (const Known& known : exchange(Known{monitor_ ? monitor_->totals() : GpuTotals{}, monitor_ ? 1 : 0})) {
    if (known.is_known == 0) continue;
    ++summary.gpus;
    utilization += known.totals.utilization;
    summary.power_watts += known.totals.power_watts;
    summary.energy_joules += known.totals.energy_joules;
    summary.peak_memory_bytes = std::fmax(summary.peak_memory_bytes, known.totals.peak_memory_bytes);
    summary.throttled |= known.totals.throttled;
  }
  summary.utilization = utilization / summary.gpus;
  return summary;
}

std::unique_ptr<GpuWatch> watch_gpu(const std::string& uuid, Communicator& world, Stream& stream,
                                    std::int64_t log_every) {
  std::unique_ptr<GpuMonitor> monitor;
  try {
    monitor = std::make_unique<GpuMonitor>(uuid);
  } catch (const Error& error) {
    log::info(std::string("the GPU cannot be monitored: ") + error.what());
  }
  return std::make_unique<GpuWatch>(std::move(monitor), world, stream, log_every);
}

}  // namespace trainctl
