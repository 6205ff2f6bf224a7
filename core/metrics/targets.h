// How the targets of a data set meet the loss: the one place that decides it, for `check`, training and evaluation
// alike.
#pragma once

#include <cstdint>

#include "core/metrics/loss.h"
#include "core/metrics/target_form.h"
#include "core/spec/values.h"
#include "core/tensor/shape.h"

namespace trainctl {

template <>
struct EnumNames<LabelMode> {
  static constexpr EnumName<LabelMode> names[] = {
      {LabelMode::integer, "int"}, {LabelMode::categorical, "categorical"}, {LabelMode::binary, "binary"}};
};

// The form in which targets of a data set reach a loss behind an output [n, P..., K] of samples with positions P.
// Reports what does not fit, with the remedy, at the loss's place.
TargetForm match_targets(const ResolvedLoss& loss, const Shape& output, const TargetFacts& targets, Reader& reader);

// Reports weights of positions that an output [n, P..., K] does not have. `weight`: of one sample.
void match_weights(const ResolvedLoss& loss, const Shape& output, const Shape& weight, Reader& reader);

// The form that label_mode alone stands for: of class numbers that no loss asks for.
TargetForm stated_form(LabelMode label_mode, std::int64_t classes);

// The type of a micro-batch's targets behind an output [n, P..., K]: int32 [n, P...] or float32 [n, P..., K].
TensorType target_type(TargetForm form, const Shape& output);

// The type of one sample's target, of a data set with such targets.
TensorType sample_target_type(TargetForm form, const TargetFacts& targets);

// Whether the loss takes values, so that whole numbers are values too and not classes.
bool takes_values(const Choice& loss);
// Whether it takes class numbers, so that several whole numbers are those of positions.
bool takes_class_numbers(const Choice& loss);

}  // namespace trainctl
