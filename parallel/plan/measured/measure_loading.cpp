// Timing a source of batches.
#include "parallel/plan/measured/measure_loading.h"

#include "core/backend/immediate_stream.h"
#include "core/base/clock.h"
#include "core/base/format.h"
#include "core/base/hash.h"
#include "parallel/plan/measured/measure_step.h"

namespace trainctl {

std::string loading_key(int ranks, const std::string& data, std::int64_t samples) {
  return measured_beside(ranks) + format("sample of {} {:016x}", samples, xxh3(data.data(), data.size()));
}

double measure_loading(BatchSource& source, Communicator& together, double seconds) {
  constexpr int warm_up = 16;  // batches, more than are prepared ahead
  ImmediateStream host;
  const double beginning = seconds_now();  // until as many workers read as are needed
  for (int i = 0; i < warm_up || seconds_now() - beginning < seconds / 2; ++i) source.next();
  together.barrier(host);
  host.synchronize();
  const double start = seconds_now();
  std::int64_t samples = 0;
  do {
    samples += source.next().count;
  } while (seconds_now() - start < seconds);
  double of_sample = samples == 0 ? 0 : (seconds_now() - start) / static_cast<double>(samples);
  together.all_reduce({&of_sample, DType::float64, 1}, Reduction::sum, host);
  host.synchronize();
  return of_sample / together.size();
}

}  // namespace trainctl
