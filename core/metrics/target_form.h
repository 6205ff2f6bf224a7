// What is known of targets, and the forms in which they reach a loss.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/tensor/shape.h"

namespace trainctl {

// What data.label_mode states. `integer` is no more than the class number, which takes the form that the loss wants;
// the others are a form of their own.
enum class LabelMode { integer, categorical, binary };

// What a sample's target is in a batch.
enum class TargetForm {
  class_number,  // int32
  one_hot,       // float32 [classes], 1 at the class
  class_value,   // float32 [1], the class number
  values,        // float32 [K], as the data set has them
};

// What is known of a data set's targets.
struct TargetFacts {
  std::int64_t classes = 0;  // 0: targets are values, or nothing is known
  // Of one sample's target: [P...] of class numbers for positions P, of which there may be none, or of values; a count
  // of 0: not known.
  Shape shape;
  LabelMode label_mode = LabelMode::integer;
  std::vector<std::string> class_names = {};  // may be empty
};

}  // namespace trainctl
