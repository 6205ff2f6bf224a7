// Counts the positions of outputs whose losses leave out different positions, before the forward pass of a step.
#pragma once

#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "core/graph/mesh.h"

namespace trainctl {

// An output whose loss is divided by the number of its own positions.
struct CountedOutput {
  std::string name;              // of its tensors
  TensorId counted = no_tensor;  // float32 [N, P...], whose sum is the count; no_tensor: another stage has the output
  // Float32 scalar, role scalar, written by the ops: the step's count divided by the output's count, times the loss
  // scale; 0 if no position counts.
  TensorId factor = no_tensor;
  SourceLocation location;  // of its loss
};

// The divisor of a step's gradients.
struct StepCount {
  TensorId counted = no_tensor;  // its sum over a step is the count: sample numbers, or weights of samples or positions
  bool is_here = true;           // whether this stage of the pipeline counts
  TensorId loss_scale = no_tensor;  // float16 only
};

// The ops that count, in the order in which they run.
struct PositionCountOps {
  std::vector<Op> zero;          // for counts to which this rank adds nothing
  std::vector<Op> first, later;  // for the first micro-batch, which overwrites the counts, and the others
  std::vector<Op> last;          // add the counts of all ranks and compute the factors
};

// Adds the tensors of the counts to the graph. `makers`: the ops that compute `counted`, and all ops that these depend
// on; the result has copies of them, which write tensors of their own. A rank without samples (`counts` is false) has
// the counts 0. Throws a config error if a mask depends on parameters or on another stage of the pipeline.
PositionCountOps count_positions(Graph& graph, const std::vector<CountedOutput>& outputs, const StepCount& step,
                                 const std::vector<Op>& makers, const MeshRank& rank, bool counts);

}  // namespace trainctl
