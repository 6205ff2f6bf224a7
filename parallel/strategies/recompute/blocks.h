// Finds the blocks of a network and the activations in them that can be recomputed for the backward pass.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "core/program/program.h"

namespace trainctl {

// A run of consecutive forward ops: the innermost residual block or body of a `repeat`, or a segment of layers outside
// of such blocks. Segments are chosen such that the tensors that are kept between segments and the largest segment
// together need the least memory (Chen et al., 2016: about sqrt(n) segments of n equal layers).
struct RecomputableBlock {
  std::string name;  // path of the block, or of the segment's first layer
  // The recomputed activations: activations inside the block that the backward pass reads, and activations from which
  // these are computed. Outputs that other blocks read are kept, as are outputs of collectives and small outputs
  // (statistics of a batch, bit masks).
  std::set<TensorId> activations;
  std::vector<Op> ops;      // the forward ops that recompute them from kept tensors, in order
  std::int64_t inside = 0;  // bytes of the recomputed activations that the backward pass reads
  std::int64_t saved = 0;   // bytes that need not be kept until the backward pass
};

// Returns the blocks of a rank's training program in forward order, without blocks that would save no memory. No
// reductions may have been added to the program.
std::vector<RecomputableBlock> recomputable_blocks(const Program& program);

}  // namespace trainctl
