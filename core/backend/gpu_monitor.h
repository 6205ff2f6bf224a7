// GpuMonitor: reads the state of one GPU about once a second while a rank computes, on a thread of its own.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "core/backend/nvml.h"

namespace trainctl {

// Means, totals and the peak of a GPU's readings since its monitor was started. NaN means unknown. Trivially
// copyable, so that ranks can exchange it.
struct GpuTotals {
  double utilization = GpuReading::unknown;  // mean, 0 to 1
  double power_watts = GpuReading::unknown;  // mean
  double energy_joules = GpuReading::unknown;
  double peak_memory_bytes = GpuReading::unknown;
  std::uint64_t throttled = 0;  // all reasons for a lowered clock that were read, as bits (see throttle_words())
};

class GpuMonitor {
 public:
  // Starts to monitor the GPU with this UUID. Throws Error{resource} if NVML is missing or does not know the GPU.
  explicit GpuMonitor(const std::string& uuid, double period_seconds = 1,
                      const std::string& library = "libnvidia-ml.so.1");
  ~GpuMonitor();
  GpuMonitor(const GpuMonitor&) = delete;
  GpuMonitor& operator=(const GpuMonitor&) = delete;

  // The newest reading; `throttled` holds all reasons that were read since the last call. Does not call NVML.
  GpuReading take();
  // The totals, after one more reading.
  GpuTotals totals();

 private:
  void watch(double period_seconds);
  void read();

  Nvml nvml_;
  Nvml::Device device_;
  std::mutex mutex_;
  std::condition_variable stop_requested_;
  bool stops_ = false;
  GpuReading newest_;
  std::uint64_t throttled_ = 0;  // reasons since the last take()
  std::uint64_t all_throttled_ = 0;
  struct Mean {
    double sum = 0;
    int count = 0;
    void add(double value);
    double value() const { return count == 0 ? GpuReading::unknown : sum / count; }
  };
  Mean utilization_, power_;
  double peak_memory_ = GpuReading::unknown;
  double first_energy_ = GpuReading::unknown;
  double start_seconds_ = 0;
  std::thread thread_;
};

}  // namespace trainctl
