// What the numbers mean that a network predicts, by the loss that it was trained with.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cmd/run_spec.h"

namespace trainctl {

struct OutputMeaning {
  enum class Kind {
    classes,    // probabilities of classes that exclude each other
    yes_or_no,  // one probability, of the second of two classes
    values,     // or independent probabilities
  };
  Kind kind = Kind::values;
  std::vector<std::string> names;                   // of the classes, or of the values
  FinalActivation missing = FinalActivation::none;  // what the loss applies and the network does not end in

  // The probabilities of all classes, or the values, from what the network gives for a sample.
  std::vector<float> values_of(std::span<const float> outputs) const;
};

// What the loss of an output applies to it and the network does not end in.
FinalActivation missing_activation(const RunSpec& spec, std::size_t output);

// Of the model's only output, which gives so many numbers for a sample. Classes without names have numbers.
OutputMeaning meaning_of(const RunSpec& spec, std::int64_t outputs, const std::vector<std::string>& class_names);

}  // namespace trainctl
