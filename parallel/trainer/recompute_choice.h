// Chooses the blocks that `recompute: auto` recomputes.
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

// Returns the names of the blocks, of all stages, to recompute so that each rank's memory is at most `limit` bytes. To
// cost little time, blocks are chosen in the order of the bytes that they save relative to their cost (cost_of()),
// until the memory suffices. Then blocks that the others make unnecessary are removed. The result is empty if the limit
// is unknown (0) or if everything fits without recomputation; it contains all blocks if even these do not suffice.
// `memory_of` returns the bytes of a rank that runs the programs. The result depends on the arguments alone, so that
// one rank can decide for all.
std::set<std::string> choose_recomputed(const ProgramSpec& spec, Strategy strategy, const BatchSizes& sizes,
                                        std::int64_t limit, const ByteCosts& byte_cost,
                                        const std::function<std::int64_t(const std::vector<Program>&)>& memory_of);

// Returns the log line that lists these blocks.
std::string recomputed_text(const std::set<std::string>& blocks);

}  // namespace trainctl
