// Checks what losses over the whole batch, players and teachers require of a strategy.
#pragma once

namespace trainctl {

struct BatchSizes;
struct MeshRank;
struct ProgramSpec;
class Reader;
struct Strategy;

// Reports losses over the whole batch, players and teachers that cannot train with the strategy, or with batches of
// these sizes. `rank` is any rank of the mesh.
void check_requirements(const ProgramSpec& spec, const Strategy& strategy, const BatchSizes& sizes,
                        const MeshRank& rank, Reader& reader);

}  // namespace trainctl
