// Finds the blocks of a network and the activations in them that can be recomputed for the backward pass.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "core/program/program.h"

namespace trainctl {

// A run of consecutive forward ops: the innermost residual block or body of a `repeat`, or a segment of layers outside
// of these. Segments are chosen such that the tensors kept between them and the largest segment together need the least
// memory (Chen et al., 2016: about sqrt(n) segments of n equal layers).
struct RecomputableBlock {
  std::string name;  // the block's path, or that of the segment's first layer
  // The recomputed activations: those inside the block that the backward pass reads, and those from which they are
  // computed. Outputs that other blocks read are kept, and so are outputs of collectives and small ones (statistics of
  // a batch, bit masks).
  std::set<TensorId> activations;
  std::vector<Op> ops;      // the forward ops that recompute them from kept tensors, in order
  std::int64_t inside = 0;  // bytes of the recomputed activations that the backward pass reads
  std::int64_t saved = 0;   // bytes that need not be kept until the backward pass
};

// Returns the blocks of a rank's training program, to which no reductions have been added, in forward order; without
// those that would save no memory.
std::vector<RecomputableBlock> recomputable_blocks(const Program& program);

}  // namespace trainctl
