// Monitors the GPUs of all ranks during training. About once a second, at a step that is logged, the ranks exchange and
// compare their readings.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/backend/communicator.h"
#include "core/backend/gpu_monitor.h"
#include "core/exec/interfaces/metrics_sink.h"

namespace trainctl {

// Compares the ranks' GPUs and finds problems; each problem is reported once.
class GpuComparison {
 public:
  // Adds a new sample of each GPU. Returns new warnings: a GPU is throttled, or its average clock or utilisation over
  // the updates so far (at least ten) is more than a tenth below the other GPUs'. A power limit is normal for a busy
  // GPU: a GPU at its power limit counts as throttled only if its clock was more than a tenth below its maximum for ten
  // updates.
  std::vector<std::string> update(std::span<const GpuSample> samples);

 private:
  bool is_slowed_by_power_cap(const GpuSample& sample);
  void compare(std::vector<std::string>& warnings, const char* what, double GpuReading::*value, double scale,
               const char* unit);

  std::set<std::pair<int, std::string>> warned_;  // rank and subject of each returned warning
  std::map<int, int> slow_updates_;  // consecutive updates of each rank at the power limit with a low clock
  std::vector<GpuSample> sums_;      // sums of clock and utilisation
  int updates_ = 0;
};

class GpuWatch {
 public:
  // All ranks must call this constructor. `monitor`: reads this rank's GPU; null if it cannot be read.
  GpuWatch(std::unique_ptr<GpuMonitor> monitor, Communicator& world, Stream& stream, std::int64_t log_every);

  // Called at every step by all ranks. About once a second, at a multiple of log_every, the ranks exchange the last
  // readings of their monitors, and rank 0 logs warnings. Rank 0 determines the interval and sends it with its values.
  void step(std::int64_t step);
  // Returns the samples of the last exchange, without ranks that cannot read their GPU.
  std::span<const GpuSample> samples() const { return samples_; }

  // Summarizes the whole run over all ranks, which must all call this function.
  GpuSummary summary();

 private:
  struct Row;
  template <class T>
  std::vector<T> exchange(const T& mine);

  std::unique_ptr<GpuMonitor> monitor_;
  Communicator& world_;
  Stream& stream_;
  std::int64_t log_every_;
  std::int64_t next_ = 0;
  std::int64_t last_ = -1;
  double last_seconds_ = 0;
  std::vector<GpuSample> samples_;
  GpuComparison comparison_;
};

// Watches the GPUs of all ranks, which must all call this function. If the driver cannot read this rank's GPU, logs the
// reason and watches only the GPUs of the other ranks.
std::unique_ptr<GpuWatch> watch_gpu(const std::string& uuid, Communicator& world, Stream& stream,
                                    std::int64_t log_every);

}  // namespace trainctl
