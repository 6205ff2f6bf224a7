// Placement rules: an op uses such a rule to describe how the dimensions of its inputs and outputs correspond.
//
// A rule names each dimension of each tensor with a letter: {{"ni", "io", "o+i"}, {"no+i"}} is a dense layer with a
// bias. Along one axis of the mesh, either all inputs and outputs are replicated, or the ranks split the dimension of
// one letter, for example n:
//   "n"    a tensor with that dimension is split along it;
//   "+n"   a tensor with the letter after a plus is partial: the tensor is the sum over that dimension;
//   "|n"   a tensor with the letter after a bar is varying: each rank has other values (statistics of its micro-batch);
//   else   the tensor is replicated.
// "." is a dimension that must not be split. A capital letter is not a dimension: {{"a+S"}, {"a+S"}} means that an op
// is linear, so that partial inputs result in partial outputs.
#pragma once

#include <string>
#include <vector>

#include "core/graph/placement.h"

namespace trainctl {

struct PlacementRule {
  std::vector<std::string> inputs, outputs;  // a name for each dimension, then optionally "+..." and "|..."
};

// The placements of the outputs according to the rule, or the problem if the placements of the inputs do not fit
// together.
OutputPlacements place_by(const PlacementRule& rule, const PlacementQuery& query);

// For an op that adds to or updates its outputs [first, end): checks that these outputs keep the placements that they
// had before the op (PlacementQuery::held). Returns `result`, or the problem.
OutputPlacements kept(OutputPlacements result, const PlacementQuery& query, std::size_t first, std::size_t end);
// If `accumulate` is true, checks all outputs as kept() does; otherwise returns `result` unchanged.
OutputPlacements kept_if(bool accumulate, OutputPlacements result, const PlacementQuery& query);

// Returns a letter for each dimension, such as "abcd".
std::string every_dimension(const TensorType& type);
// Returns "." for each dimension, such as "....".
std::string none_split(const TensorType& type);
// Returns a letter for each dimension except the last, such as "abc". The caller appends the name of the last
// dimension.
std::string rows(const TensorType& type);
// Returns a letter for the first dimension and "." for the others, such as "a...".
std::string samples(const TensorType& type);
// Returns letters for the first and the last dimension and "." for the others, such as "a..c".
std::string samples_and_channels(const TensorType& type);

// The placements of an elementwise op on inputs of the same shape. The op is linear in the inputs `linear` taken
// together: either all of these inputs and the output are partial, or no tensor is.
OutputPlacements place_elementwise(const PlacementQuery& query, const std::vector<std::size_t>& linear = {});
// The placements of an op with one input whose last dimension must not be split; `linear` tells whether the op is
// linear.
OutputPlacements place_rows(const PlacementQuery& query, bool linear);

}  // namespace trainctl
