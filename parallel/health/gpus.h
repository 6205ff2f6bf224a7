// The GPUs of all ranks while they train: gathered about once a second with the steps that are logged, and compared.
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

// Finds what is to be said of the ranks' GPUs, each thing once.
class GpuComparison {
 public:
  // New warnings after one more look at the GPUs: one is throttled, or has run behind the others by more than a tenth,
  // in clock or utilisation, on average over the looks so far (from the tenth on). A GPU at its power limit, where busy
  // ones belong, is throttled once that has kept its clock more than a tenth below the highest for ten looks.
  std::vector<std::string> look(std::span<const GpuSample> samples);

 private:
  bool suffers_from_power_cap(const GpuSample& sample);
  void compare(std::vector<std::string>& warnings, const char* what, double GpuReading::*value, double scale,
               const char* unit);

  std::set<std::pair<int, std::string>> said_;  // rank, what
  std::map<int, int> slow_looks_;               // of a rank: in a row, at the power limit and with a low clock
  std::vector<GpuSample> sums_;                 // of clock and utilisation
  int looks_ = 0;
};

class GpuWatch {
 public:
  // Of all ranks, together. `monitor`: of this rank's GPU; null: nothing tells of it.
  GpuWatch(std::unique_ptr<GpuMonitor> monitor, Communicator& world, Stream& stream, std::int64_t log_every);

  // At every step, by all ranks alike: now and then, with a multiple of log_every, they exchange what their monitors
  // saw last, and rank 0 warns of what is to be said. The interval is rank 0's, and travels with its values.
  void step(std::int64_t step);
  // As of the last exchange; ranks of whose GPU nothing is known are missing.
  std::span<const GpuSample> samples() const { return samples_; }

  // Of the whole run and all ranks. Collective.
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

// Watches the GPU of this rank, and those of the others. Where the driver cannot be asked of it, which is logged, the
// others' alone. On all ranks together.
std::unique_ptr<GpuWatch> watch_gpu(const std::string& uuid, Communicator& world, Stream& stream,
                                    std::int64_t log_every);

}  // namespace trainctl
