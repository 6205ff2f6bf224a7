// Rules of placement: how the dimensions of an op's inputs and outputs hang together, for every op to state its own.
//
// A rule names each dimension of each tensor with a letter: {{"ni", "io", "o+i"}, {"no+i"}} is a dense layer with a
// bias. On one axis of the mesh either all inputs are replicated, and so are the outputs, or the ranks hold parts of
// one letter:
//   "n"    a tensor with that dimension is split along it;
//   "+n"   one with the letter behind a plus is partial: the whole is a sum over the letter;
//   "|n"   one with the letter behind a bar varies: each rank has a value of its own (statistics of its micro-batch);
//   else   the tensor is replicated.
// "." stands for a dimension that the op needs whole. A capital letter is no dimension: {{"a+S"}, {"a+S"}} says that an
// op is linear, so that summands go in and summands come out.
#pragma once

#include <string>
#include <vector>

#include "core/graph/placement.h"

namespace trainctl {

struct PlacementRule {
  std::vector<std::string> inputs, outputs;  // a name for each dimension, then "+..." and then "|..." where they apply
};

// How the outputs lie by the rule, or which inputs do not go together.
OutputPlacements place_by(const PlacementRule& rule, const PlacementQuery& query);

// The result where outputs [first, end) of it lie as they lay before, since the op adds to them or updates them; else
// the problem.
OutputPlacements kept(OutputPlacements result, const PlacementQuery& query, std::size_t first, std::size_t end);
// The same of an op whose every output is added to, where `accumulate`; else the result as it is.
OutputPlacements kept_if(bool accumulate, OutputPlacements result, const PlacementQuery& query);

// A letter for each dimension: "abcd".
std::string every_dimension(const TensorType& type);
// A letter for each dimension but the last, which is not named: "abc".
std::string rows(const TensorType& type);
// The first dimension has a letter: "a...".
std::string samples(const TensorType& type);
// The first dimension and the last have letters: "a..c".
std::string samples_and_channels(const TensorType& type);

// Ops on one element of each input at a time, all of one shape; linear in the inputs of `linear`, if any, together: all
// of these are partial, or none.
OutputPlacements place_elementwise(const PlacementQuery& query, const std::vector<std::size_t>& linear = {});
// Ops of one input and any outputs that need each row (the last dimension) whole, linear in the input or not.
OutputPlacements place_rows(const PlacementQuery& query, bool linear);

}  // namespace trainctl
