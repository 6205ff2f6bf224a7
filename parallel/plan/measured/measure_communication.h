// The communication between ranks of this machine timed, and the alpha-beta model of it.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "parallel/plan/costs.h"
#include "parallel/plan/measured/alpha_beta.h"
#include "parallel/plan/measured/measurements.h"

namespace trainctl {

class Backend;
class Communicator;

// The key of a kind of communication between so many ranks of one host, in memory that all of them see or in a rank's
// own: {bytes, seconds, bytes, seconds, ..., spread}, the last one as of a step (measure_step.h).
std::string communication_key(int ranks, Communication::Kind kind, bool shared);
// The same of copies within a rank's memory while the others copy, too.
std::string copy_key(int ranks);

// The largest spread of every kind between so many ranks, and of copies; nothing where one is missing.
std::optional<double> communication_spread(const Measurements& measurements, int ranks);
// Whether the measurements have every kind, and copies, with a spread of at most `wide_spread` (repeated.h).
bool has_communication(const Measurements& measurements, int ranks);

// Times every kind, and copies, that `known` lacks or has with a wide spread, for growing sizes up to the largest, a
// few seconds in all: twice each, and again until two results agree (Repeated). `beat` is called before each kind.
// Collective; `known` and the result are equal on all ranks.
Measurements measure_communication(Communicator& ranks, Backend& backend, const Measurements& known,
                                   const std::function<void()>& beat);

// The model of a kind, or of copies, by its key; nothing where it was not measured.
std::optional<AlphaBeta> communication_model(const Measurements& measurements, const std::string& key);

}  // namespace trainctl
