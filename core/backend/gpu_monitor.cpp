// The thread that reads a GPU at intervals, and the totals of its readings.
#include "core/backend/gpu_monitor.h"

#include <chrono>
#include <cmath>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/format.h"

namespace trainctl {

void GpuMonitor::Mean::add(double value) {
  if (std::isnan(value)) return;
  sum += value;
  ++count;
}

GpuMonitor::GpuMonitor(const std::string& uuid, double period_seconds, const std::string& library)
    : nvml_(library), device_(nvml_.find(uuid)) {
  if (device_ == nullptr) throw Error(ErrorKind::resource, format("NVML does not know the GPU {}", uuid));
  start_seconds_ = seconds_now();
  read();
  first_energy_ = newest_.energy_joules;
  thread_ = std::thread([this, period_seconds] { watch(period_seconds); });
}

GpuMonitor::~GpuMonitor() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  stop_requested_.notify_all();
  thread_.join();
}

void GpuMonitor::watch(double period_seconds) {
  std::unique_lock lock(mutex_);
  while (!stop_requested_.wait_for(lock, std::chrono::duration<double>(period_seconds), [this] { return stops_; })) {
    lock.unlock();
    read();
    lock.lock();
  }
}

void GpuMonitor::read() {
  const GpuReading reading = nvml_.read(device_);  // takes milliseconds, so it runs without the lock
  const std::lock_guard lock(mutex_);
  newest_ = reading;
  throttled_ |= reading.throttled;
  all_throttled_ |= reading.throttled;
  utilization_.add(reading.utilization);
  power_.add(reading.power_watts);
  peak_memory_ = std::fmax(peak_memory_, reading.memory_bytes);  // a NaN leaves the peak as it is
}

GpuReading GpuMonitor::take() {
  const std::lock_guard lock(mutex_);
  GpuReading reading = newest_;
  reading.throttled = std::exchange(throttled_, 0);
  return reading;
}

GpuTotals GpuMonitor::totals() {
  read();
  const std::lock_guard lock(mutex_);
  GpuTotals totals{utilization_.value(), power_.value(), newest_.energy_joules - first_energy_, peak_memory_,
                   all_throttled_};
  // For GPUs without an energy counter: mean power times duration.
  if (std::isnan(totals.energy_joules)) totals.energy_joules = totals.power_watts * (seconds_now() - start_seconds_);
  return totals;
}

}  // namespace trainctl
