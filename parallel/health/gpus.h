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

// Compares the ranks' GPUs, and finds what is to be warned of, each thing once.
class GpuComparison {
 public:
  // Takes a new sample of each GPU. Returns new warnings: a GPU is throttled, or has run behind the others by more than
  // a tenth, in clock or utilisation, on average over the updates so far (from the tenth on). A GPU at its power limit,
  // which is normal for a busy one, counts as throttled once its clock was more than a tenth below the highest for ten
  // updates.
  std::vector<std::string> update(std::span<const GpuSample> samples);

 private:
  bool is_slowed_by_power_cap(const GpuSample& sample);
  void compare(std::vector<std::string>& warnings, const char* what, double GpuReading::*value, double scale,
               const char* unit);

  std::set<std::pair<int, std::string>> warned_;  // rank, what
  std::map<int, int> slow_updates_;               // of a rank: in a row, at the power limit and with a low clock
  std::vector<GpuSample> sums_;                   // of clock and utilisation
  int updates_ = 0;
};

class GpuWatch {
 public:
  // On all ranks together. `monitor` reads this rank's GPU; null where it cannot be read.
  GpuWatch(std::unique_ptr<GpuMonitor> monitor, Communicator& world, Stream& stream, std::int64_t log_every);

  // At every step, by all ranks alike: now and then, with a multiple of log_every, they exchange what their monitors
  // saw last, and rank 0 warns of what is to be said. The interval is rank 0's, and travels with its values.
  void step(std::int64_t step);
  // The samples of the last exchange; ranks whose GPU cannot be read are missing.
  std::span<const GpuSample> samples() const { return samples_; }

  // Sums up the whole run over all ranks. Collective.
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
