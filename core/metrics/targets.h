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

// What is known of a data set's targets.
struct TargetFacts {
  std::int64_t classes = 0;  // 0: targets are values, or nothing is known
  Shape values;              // of one sample, where targets are values; a count of 0: not known
  LabelMode label_mode = LabelMode::integer;
};

// The form in which targets of a data set reach a loss behind an output [n, K]. Reports what does not fit, with the
// remedy, at the loss's place.
TargetForm match_targets(const ResolvedLoss& loss, const Shape& output, const TargetFacts& targets, Reader& reader);

// The form that label_mode alone stands for: of class numbers that no loss asks for.
TargetForm stated_form(LabelMode label_mode, std::int64_t classes);

// The type of a micro-batch's targets behind an output [n, K]: int32 [n] or float32 [n, K].
TensorType target_type(TargetForm form, const Shape& output);

// The type of one sample's target: of a data set with so many classes, or with targets of the shape `values`.
TensorType sample_target_type(TargetForm form, std::int64_t classes, const Shape& values);

// Whether the loss takes values, so that whole numbers are values too and not classes.
bool takes_values(const Choice& loss);

}  // namespace trainctl
