// The blocks of a network, and which of their activations can be computed again for the backward pass.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "core/program/program.h"

namespace trainctl {

// A run of forward ops: a residual block or the body of a `repeat`, the innermost one; of layers outside of these a
// segment of consecutive ones, cut so that what is kept between segments and the largest segment together take least
// memory (Chen et al., 2016: about sqrt(n) segments of n equal layers).
struct RecomputableBlock {
  std::string name;  // the block's path, or that of the segment's first layer
  // What the backward pass reads of the block's inside, and what that is computed from. Outputs that other blocks read
  // are kept, and so are those of collectives and small ones (statistics of a batch, masks by bits).
  std::set<TensorId> activations;
  std::vector<Op> ops;      // the forward ops that compute these again from what is kept, in their order
  std::int64_t inside = 0;  // bytes of what the backward pass reads
  std::int64_t saved = 0;   // bytes by which what is kept until the backward pass shrinks
};

// The blocks of a training program of one rank, in forward order, before gradients are reduced; without those of which
// nothing would be saved.
std::vector<RecomputableBlock> recomputable_blocks(const Program& program);

}  // namespace trainctl
