// Measures a config's step, ops or data, or the communication between its ranks.
#pragma once

#include <string>

namespace trainctl {

struct RankContext;
struct RunSpec;

enum class BenchSubject { step, ops, data, communication };

// Measures for about `seconds` seconds. Returns the result on rank 0, as text or as a JSON document, and "" on the
// other ranks. Ends the start of the ranks before it measures. Throws as Job does. Collective.
std::string bench(const RunSpec& config, BenchSubject subject, double seconds, bool json, RankContext& context);

}  // namespace trainctl
