// Metadata of targets, and the encodings in which a batch holds targets for a loss.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/tensor/shape.h"

namespace trainctl {

// The values of data.label_mode. `integer` leaves the encoding of class numbers to the loss, `categorical` and `binary`
// set an encoding; with `input` the target is the sample itself.
enum class LabelMode { integer, categorical, binary, input };

// The encoding of a sample's target in a batch.
enum class TargetEncoding {
  class_number,  // int32
  one_hot,       // float32 [classes], 1 at the class
  class_value,   // float32 [1], the class number
  values,        // float32 [K], the values in the data set
};

// Metadata of the targets of a data set.
struct TargetInfo {
  std::int64_t classes = 0;  // number of classes; 0: targets are values, or unknown
  // Shape of one sample's target: [P...] for class numbers at positions P (a scalar if there are no positions), or the
  // shape of the target's values. A dimension of 0 is unknown.
  Shape shape;
  LabelMode label_mode = LabelMode::integer;
  std::vector<std::string> class_names = {};  // may be empty
  // If targets are tokens of text: returns the number of bytes of text for which each token stands. Else empty.
  std::function<std::shared_ptr<const std::vector<float>>()> token_bytes = {};
  // If targets are sequences for ctc: the most steps that a target needs, and the name of its sample. Else 0.
  std::int64_t min_steps = 0;
  std::string min_steps_of = {};
  bool mixed = false;  // whether training mixes samples: targets are then probabilities, not class numbers
};

}  // namespace trainctl
