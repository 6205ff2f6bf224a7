// What a rank's loading threads take for a sample, measured.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "parallel/plan/measured/measurements.h"

namespace trainctl {

class BatchSource;
class Communicator;

// The key of batches of which each of the ranks has so many samples, {seconds, spread}; `data` tells their data from
// other data: what the config says of it.
std::string loading_key(int ranks, const std::string& data, std::int64_t samples);

// Whether the measurements have the key with a spread of at most `wide_spread` (repeated.h).
bool has_loading(const Measurements& measurements, const std::string& key);

// Returns {seconds, spread} of loading one sample of a rank's share, with all of its loading threads, while the rank
// does nothing else. Takes batches for about `seconds`, twice, and again until two results agree (Repeated). All ranks
// of `together` do so at the same time; the result is the mean over them. Collective.
std::vector<double> measure_loading(BatchSource& source, Communicator& together, double seconds);

}  // namespace trainctl
