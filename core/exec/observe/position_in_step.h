// The position of an op in a step, by which the ranks of a mesh compare what they found.
#pragma once

#include "core/compile/placed_program.h"

namespace trainctl {

// Larger for later ops. Segments of one number are of one pass on all stages of a pipeline, which run it one after the
// other.
inline double position_in_step(const PlacedProgram& program, int segment, int op, const MeshRank& rank) {
  constexpr double most_ops = 1e6, most_stages = 1e4;  // of a segment; of a pipeline
  const int stage = rank.along(MeshAxis::pipeline), last = rank.size(MeshAxis::pipeline) - 1;
  const int stages_before = program.segment(segment).phase == Phase::backward ? last - stage : stage;
  return segment + (stages_before + op / most_ops) / most_stages;
}

}  // namespace trainctl
