// Decides how a data set's targets reach the loss, for `check`, training and evaluation alike.
#pragma once

#include <cstdint>

#include "core/graph/tensor_type.h"
#include "core/metrics/target_encoding.h"
#include "core/spec/values.h"
#include "core/tensor/shape.h"

namespace trainctl {

class Reader;
struct ResolvedLoss;

template <>
struct EnumNames<LabelMode> {
  static constexpr EnumName<LabelMode> names[] = {{LabelMode::integer, "int"},
                                                  {LabelMode::categorical, "categorical"},
                                                  {LabelMode::binary, "binary"},
                                                  {LabelMode::input, "input"}};
};

// Returns the encoding of a data set's targets for the loss of an output [n, P..., K] with positions P. Reports targets
// that do not fit, with the remedy, at the loss's config line.
TargetEncoding match_targets(const ResolvedLoss& loss, const Shape& output, const TargetInfo& targets, Reader& reader);

// Reports an error if there are weights for positions that an output [n, P..., K] does not have. `weight` is the shape
// of one sample's weights.
void match_weights(const ResolvedLoss& loss, const Shape& output, const Shape& weight, Reader& reader);

// The length of the targets of a loss over sequences, for an output [n, T, K]; T if the length is unknown.
std::int64_t target_length(const Shape& output, const TargetInfo& targets);

// The encoding of targets that the data set's metadata sets, without a loss.
TargetEncoding declared_encoding(const TargetInfo& targets);

// The type of a micro-batch's targets for an output [n, P..., K]: int32 [n, P...] or float32 [n, P..., K].
TensorType target_type(TargetEncoding encoding, const Shape& output);

// The type of one sample's target in an encoding, for a data set with these targets.
TensorType sample_target_type(TargetEncoding encoding, const TargetInfo& targets);

// Whether a loss needs values: whole numbers in the targets are then values, not classes.
bool takes_values(const Choice& loss);
// Whether a loss needs class numbers: several whole numbers in a target are then the classes of positions.
bool takes_class_numbers(const Choice& loss);

}  // namespace trainctl
