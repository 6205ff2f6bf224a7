// The forms in which targets reach a loss.
#pragma once

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

}  // namespace trainctl
