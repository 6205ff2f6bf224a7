// Times a batch source.
#include "parallel/plan/measured/measure_loading.h"

#include "core/backend/communicator.h"
#include "core/backend/immediate_stream.h"
#include "core/base/clock.h"
#include "core/base/format.h"
#include "core/base/hash.h"
#include "core/exec/interfaces/batch_source.h"
#include "parallel/plan/measured/measure_step.h"
#include "parallel/plan/measured/repeated.h"

namespace trainctl {
namespace {

// Requests batches for `seconds`; returns the mean over the ranks of the seconds for a sample.
double seconds_of_sample(BatchSource& source, Communicator& together, double seconds) {
  ImmediateStream host;
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

}  // namespace

std::string loading_key(int ranks, const std::string& data, std::int64_t samples) {
  return key_prefix(ranks) + format("sample of {} {:016x}", samples, xxh3(data.data(), data.size()));
}

bool has_loading(const Measurements& measurements, const std::string& key) {
  const std::vector<double>* values = measurements.find(key);
  return values != nullptr && values->size() == 2 && values->back() <= wide_spread;
}

std::vector<double> measure_loading(BatchSource& source, Communicator& together, double seconds,
                                    const OutOfTime& out_of_time) {
  constexpr int warm_up = 16;              // number of batches: more than are prefetched
  const double beginning = seconds_now();  // the warm-up lets the number of workers adapt
  for (int i = 0; i < warm_up || seconds_now() - beginning < seconds / 2; ++i) source.next();
  Repeated repeated(5, 0.05);
  std::vector<double> times;
  while (!repeated.settled(out_of_time && out_of_time())) {
    times.push_back(seconds_of_sample(source, together, seconds / 2));
    repeated.add({times.back()});
  }
  return {times[repeated.chosen()], repeated.spread()};
}

}  // namespace trainctl
