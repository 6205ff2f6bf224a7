// Finds what the arrays of a data set hold: tokens or values, and the kind of target.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "run/draft/draft.h"

namespace trainctl {

enum class TargetMeaning {
  class_number,      // one whole number: a class
  one_hot,           // [K] of which one value is 1 and the others are 0
  multi_hot,         // [K] of 0 and 1: any number of labels
  position_classes,  // whole numbers [P...]: a class for each position of the sample, a pixel or a step
  images,            // images of the height and width of the samples, whose pixels are values
  values             // numbers that are predicted as they are
};

struct ArrayLook {
  // Token ids are whole numbers from 0, in sequences whose positions all have about the same range.
  std::int64_t vocabulary = 0;  // token ids are below this; 0: samples are values
  TargetMeaning target = TargetMeaning::values;
  std::int64_t classes = 0;   // number of classes, for position_classes
  double largest = 0;         // the largest absolute value of the targets
  std::int64_t channels = 0;  // of targets that are images
  bool whole = false;         // targets are whole numbers by their type
  bool bytes = false;         // targets are of the type uint8
  // Targets that are values, but may be masks: for each position 0 or 1 as a float, or a one-hot vector.
  bool zero_one = false, one_hot_masks = false;
  // For values that may have been meant as classes: the smallest and the largest of at most 20 different whole numbers;
  // empty otherwise.
  std::optional<std::pair<std::int64_t, std::int64_t>> few_whole = {};
  std::string unreadable = {};  // how many samples hold NaN, infinity or numbers beyond float32; "" if none does
};

// Looks at x and y (or x_train and y_train) of a folder of .npy files or an .npz file; returns the defaults if one is
// missing. `targets`: the kind of targets that the user gives; one-hot and multi-hot targets are classes. Throws
// Error{data} if an array cannot be read, or if `targets` requests classes that the targets cannot be.
ArrayLook look_at_arrays(const std::string& path, TargetsAre targets);

}  // namespace trainctl
