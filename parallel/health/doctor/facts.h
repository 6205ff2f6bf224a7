// The facts that the doctor gathers on the machines of a run, as JSON: the fields are in facts.cpp.
#pragma once

#include <string>
#include <vector>

#include "core/base/json_fwd.h"
#include "parallel/launch/ranks/run_rank.h"

namespace trainctl {

// The facts of every rank on rank 0, in their order; nothing on the others. What is missing is a fact, and throws
// nothing. `run_directory` is rank 0's: a file is written for a moment where it would be made. Collective.
std::vector<Json> gather_facts(const std::string& run_directory, const RankContext& context, Stream& stream);

}  // namespace trainctl
