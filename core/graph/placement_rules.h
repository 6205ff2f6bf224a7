// Placement rules: every op states by such a rule how the dimensions of its inputs and outputs correspond.
//
// A rule names each dimension of each tensor with a letter: {{"ni", "io", "o+i"}, {"no+i"}} is a dense layer with a
// bias. On one axis of the mesh either all inputs are replicated, and so are the outputs, or the ranks hold parts of
// one letter:
//   "n"    a tensor with that dimension is split along it;
//   "+n"   a tensor with the letter behind a plus is partial: the whole is a sum over the letter;
//   "|n"   a tensor with the letter behind a bar varies: each rank has a value of its own (a micro-batch's statistics);
//   else   the tensor is replicated.
// "." stands for a dimension that the op needs whole. A capital letter is no dimension: {{"a+S"}, {"a+S"}} says that an
// op is linear, so that partial inputs give partial outputs.
#pragma once

#include <string>
#include <vector>

#include "core/graph/placement.h"

namespace trainctl {

struct PlacementRule {
  std::vector<std::string> inputs, outputs;  // a name for each dimension, then "+..." and then "|..." where they apply
};

// The placements of the outputs by the rule, or which inputs' placements do not fit together.
OutputPlacements place_by(const PlacementRule& rule, const PlacementQuery& query);

// Checks that outputs [first, end) keep the placements that they had before the op (PlacementQuery::held), which adds
// to them or updates them. Returns the result, or the problem.
OutputPlacements kept(OutputPlacements result, const PlacementQuery& query, std::size_t first, std::size_t end);
// The same check for all outputs where `accumulate` is true; else returns the result unchanged.
OutputPlacements kept_if(bool accumulate, OutputPlacements result, const PlacementQuery& query);

// A letter for each dimension: "abcd".
std::string every_dimension(const TensorType& type);
// "." for each dimension: "....".
std::string none_split(const TensorType& type);
// A letter for each dimension but the last, for which the caller adds a name: "abc".
std::string rows(const TensorType& type);
// A letter for the first dimension, "." for the others: "a...".
std::string samples(const TensorType& type);
// A letter for the first and the last dimension: "a..c".
std::string samples_and_channels(const TensorType& type);

// Placements of an op that works element by element on inputs of one shape. The op is linear in the inputs listed in
// `linear` taken together: all of these inputs may be partial, and then the output is, or none may.
OutputPlacements place_elementwise(const PlacementQuery& query, const std::vector<std::size_t>& linear = {});
// Placements of an op with one input that needs whole rows (the last dimension), and is linear in the input or not.
OutputPlacements place_rows(const PlacementQuery& query, bool linear);

}  // namespace trainctl
