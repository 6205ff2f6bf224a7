// Times the communication between ranks of this machine and fits the alpha-beta model to it.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "parallel/plan/costs.h"
#include "parallel/plan/measured/alpha_beta.h"
#include "parallel/plan/measured/measurements.h"
#include "parallel/plan/measured/repeated.h"

namespace trainctl {

class Backend;
class Communicator;

// Returns the key of a kind of communication between `ranks` ranks of one host, in memory that all of them share or in
// a rank's own. Its values are {bytes, seconds, bytes, seconds, ..., spread}, with the spread as in measure_step.h.
std::string communication_key(int ranks, Communication::Kind kind, bool shared);
// Returns the key of copies within a rank's memory while the other ranks also copy, with the same values.
std::string copy_key(int ranks);

// Returns the largest spread of all kinds between `ranks` ranks and of copies; empty if one is missing.
std::optional<double> communication_spread(const Measurements& measurements, int ranks);
// Whether the measurements include all kinds and copies with a spread of at most `wide_spread` (repeated.h).
bool has_communication(const Measurements& measurements, int ranks);

// Times all kinds and copies that are missing in `known` or have a wide spread there, for growing sizes, in a few
// seconds altogether. Each is timed twice, and again until two results agree (Repeated). Calls `beat` before each kind.
// If `out_of_time` returns true, no measurement is taken more than twice, and each with fewer calls. All ranks must
// call this function; `known` and the result are equal on all ranks.
Measurements measure_communication(Communicator& ranks, Backend& backend, const Measurements& known,
                                   const std::function<void()>& beat, const OutOfTime& out_of_time = {});

// Returns the model of a kind, or of copies, by its key; empty if it was not measured.
std::optional<AlphaBeta> communication_model(const Measurements& measurements, const std::string& key);

}  // namespace trainctl
