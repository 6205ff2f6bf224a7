// The meaning of the numbers that a network predicts, by the loss that it was trained with.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "core/layers/model/model.h"
#include "core/tensor/shape.h"

namespace trainctl {

struct RunSpec;

// The meaning of one output.
struct OutputMeaning {
  enum class Kind {
    decoded,    // values of classes at each step, from which a sequence of classes is decoded
    classes,    // probabilities of classes that exclude each other
    yes_or_no,  // one probability, of the second of two classes
    values,     // values, or independent probabilities
  };
  Kind kind = Kind::values;
  std::string output;  // its name; empty if it is the only one
  Shape positions;     // positions with a class: [] for a sample, [steps] of a sequence, [height, width] of an image
  int mask_index = 0;  // of a sequence that is decoded: the class that is the blank
  // Between the names of the classes of a decoded sequence: nothing between characters, a space between numbers.
  std::string separator = {};
  Shape values;                    // the shape of the result of values_of()
  std::vector<std::string> names;  // names of the classes or values; empty for the values of an image
  FinalActivation missing =
      FinalActivation::none;  // the activation that the loss applies and the network does not end in

  bool has_classes() const { return kind != Kind::values; }
  bool is_decoded() const { return kind == Kind::decoded; }
  // Whether it is a picture: a class for each pixel, or an image of one channel or three.
  bool is_mask() const;
  bool is_image() const;
  // The prefix of its column names: "NAME/", or "" if it is the only output.
  std::string prefix() const { return output.empty() ? "" : output + "/"; }

  // Computes the probabilities of all classes, position by position, or the values, from the network's outputs for a
  // sample.
  std::vector<float> values_of(std::span<const float> outputs) const;
};

// The activation that the loss of an output applies to it and the network does not end in.
FinalActivation missing_activation(const RunSpec& spec, std::size_t output);

// The meaning of an output of shape `sample` for each sample. Classes without names are named by their numbers.
OutputMeaning meaning_of(const RunSpec& spec, std::size_t output, const Shape& sample,
                         const std::vector<std::string>& class_names);

}  // namespace trainctl
