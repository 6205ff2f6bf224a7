// Facts about targets, and the forms in which targets reach a loss.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/tensor/shape.h"

namespace trainctl {

// The values of data.label_mode. `integer` leaves the form of class numbers to the loss, `categorical` and `binary`
// state a form; with `input` the target is the sample itself.
enum class LabelMode { integer, categorical, binary, input };

// The form of a sample's target in a batch.
enum class TargetEncoding {
  class_number,  // int32
  one_hot,       // float32 [classes], 1 at the class
  class_value,   // float32 [1], the class number
  values,        // float32 [K], as the data set has them
};

// Facts about the targets of a data set.
struct TargetInfo {
  std::int64_t classes = 0;  // number of classes; 0: targets are values, or nothing is known
  // Shape of one sample's target: [P...] of class numbers for positions P (a scalar without positions), or the shape of
  // its values. A dimension of 0: not known.
  Shape shape;
  LabelMode label_mode = LabelMode::integer;
  std::vector<std::string> class_names = {};  // may be empty
  bool mixed = false;                         // in training: classes are probabilities, which leaves no class numbers
};

}  // namespace trainctl
