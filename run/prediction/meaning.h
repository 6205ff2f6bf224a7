// What the numbers mean that a network predicts, by the loss that it was trained with.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "core/layers/model/model.h"
#include "core/tensor/shape.h"

namespace trainctl {

struct RunSpec;

// Of one output.
struct OutputMeaning {
  enum class Kind {
    classes,    // probabilities of classes that exclude each other
    yes_or_no,  // one probability, of the second of two classes
    values,     // or independent probabilities
  };
  Kind kind = Kind::values;
  std::string output;  // its name; empty: the only one
  Shape positions;     // of classes: [] for a sample as a whole, [steps] of a sequence, [height, width] of an image
  Shape values;        // of what values_of() gives
  std::vector<std::string> names;                   // of the classes, or of the values; those of an image have none
  FinalActivation missing = FinalActivation::none;  // what the loss applies and the network does not end in

  bool has_classes() const { return kind != Kind::values; }
  // Whether it is a picture: a class for each pixel, or an image of one channel or three.
  bool is_mask() const;
  bool is_image() const;
  // "kind/" before the names of its columns; "" of the only output.
  std::string prefix() const { return output.empty() ? "" : output + "/"; }

  // The probabilities of all classes, position by position, or the values, from what the network gives for a sample.
  std::vector<float> values_of(std::span<const float> outputs) const;
};

// What the loss of an output applies to it and the network does not end in.
FinalActivation missing_activation(const RunSpec& spec, std::size_t output);

// Of an output, which gives numbers of this shape for a sample. Classes without names have numbers.
OutputMeaning meaning_of(const RunSpec& spec, std::size_t output, const Shape& sample,
                         const std::vector<std::string>& class_names);

}  // namespace trainctl
