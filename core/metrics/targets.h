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

// The form in which the targets of a data set reach a loss behind an output [n, P..., K] with positions P. Reports
// targets that do not fit, with the remedy, at the loss's line.
TargetEncoding match_targets(const ResolvedLoss& loss, const Shape& output, const TargetInfo& targets, Reader& reader);

// Reports weights of positions that an output [n, P..., K] does not have. `weight` is the shape of one sample's
// weights.
void match_weights(const ResolvedLoss& loss, const Shape& output, const Shape& weight, Reader& reader);

// The form of targets without a loss.
TargetEncoding declared_encoding(const TargetInfo& targets);

// The type of a micro-batch's targets for an output [n, P..., K]: int32 [n, P...] or float32 [n, P..., K].
TensorType target_type(TargetEncoding form, const Shape& output);

// The type of one sample's target in a form, for a data set with these targets.
TensorType sample_target_type(TargetEncoding form, const TargetInfo& targets);

// Whether a loss takes values: whole numbers in the targets are then values, not classes.
bool takes_values(const Choice& loss);
// Whether a loss takes class numbers: several whole numbers in a target are then the classes of positions.
bool takes_class_numbers(const Choice& loss);

}  // namespace trainctl
