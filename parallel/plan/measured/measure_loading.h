// What a rank's loading threads take for a sample, measured.
#pragma once

#include <string>

#include "core/backend/communicator.h"
#include "core/exec/interfaces/batch_source.h"
#include "parallel/plan/measured/measurements.h"

namespace trainctl {

// The key of batches of which each of the ranks has so many samples, {seconds}; `data` tells their data from other
// data: what the config says of it.
std::string loading_key(int ranks, const std::string& data, std::int64_t samples);

// Seconds for one sample of a rank's share, its loading threads together, while it does nothing else: takes batches for
// about so many seconds. All ranks of `together` do so at once; the mean over them. Collective.
double measure_loading(BatchSource& source, Communicator& together, double seconds);

}  // namespace trainctl
