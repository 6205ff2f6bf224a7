// Measures the seconds that a rank's loading threads need to prepare a sample.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "parallel/plan/measured/measurements.h"
#include "parallel/plan/measured/repeated.h"

namespace trainctl {

class BatchSource;
class Communicator;

// Returns the key of {seconds, spread} for batches with `samples` samples on each of `ranks` ranks. `data` identifies
// the data: its section of the config.
std::string loading_key(int ranks, const std::string& data, std::int64_t samples);

// Whether the measurements include the key with a spread of at most `wide_spread` (repeated.h).
bool has_loading(const Measurements& measurements, const std::string& key);

// Returns {seconds, spread} of loading one sample of a rank's share with all of its loading threads while the rank is
// otherwise idle. Requests batches for about `seconds`, twice, and again until two results agree (Repeated). All ranks
// of `together` must call this function, to measure at the same time; the result is the mean over them.
std::vector<double> measure_loading(BatchSource& source, Communicator& together, double seconds,
                                    const OutOfTime& out_of_time = {});

}  // namespace trainctl
