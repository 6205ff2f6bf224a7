// The choice of the blocks that `recompute: auto` computes again.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

namespace trainctl {

struct BatchSizes;
struct ByteCosts;
struct Program;
struct ProgramSpec;
struct Strategy;

// Names of the blocks, of all stages, that are computed again so that each rank's memory stays within `limit` bytes
// with the least extra time: those that save most bytes for what they cost (cost_of()), as many as it takes, without
// any that the others make needless. Nothing where no limit is known (0) or all fit anyhow; all blocks where even these
// do not fit. `memory_of` gives the bytes of a rank that runs the programs. A function of its arguments: one rank
// decides for all.
std::set<std::string> choose_recomputed(const ProgramSpec& spec, Strategy strategy, const BatchSizes& sizes,
                                        std::int64_t limit, const ByteCosts& byte,
                                        const std::function<std::int64_t(const std::vector<Program>&)>& memory_of);

// The line that says which blocks these are.
std::string recomputed_text(const std::set<std::string>& blocks);

}  // namespace trainctl
