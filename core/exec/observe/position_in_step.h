// The position of an op in a step, by which the ranks of a mesh compare their findings.
#pragma once

#include "core/compile/placed_program.h"

namespace trainctl {

// Returns a number that is larger for later ops. Segments with the same number belong to one pass on all stages of a
// pipeline, which run it one after the other.
inline double position_in_step(const PlacedProgram& program, int segment, int op, const MeshRank& rank) {
  constexpr double max_ops = 1e6, max_stages = 1e4;  // ops of a segment; stages of a pipeline
  const int stage = rank.along(MeshAxis::pipeline), last = rank.size(MeshAxis::pipeline) - 1;
  const int stages_before = program.segment(segment).phase == Phase::backward ? last - stage : stage;
  return segment + (stages_before + op / max_ops) / max_stages;
}

}  // namespace trainctl
