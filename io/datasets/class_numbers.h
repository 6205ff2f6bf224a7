// Numbers the classes of samples.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "io/datasets/dataset.h"

namespace trainctl {

// The samples [0, count), with the name of each one's class, and its place for messages: "reviews.csv, line 12".
struct NamedSamples {
  std::int64_t count = 0;
  std::function<std::string(std::int64_t)> class_name, place;
  // Whether names that are all whole numbers are the numbers of the classes; false for the names of folders, of which
  // two are always two classes.
  bool may_state_numbers = true;
};

struct ClassNumbers {
  std::vector<std::string> names;    // in bytewise order; empty if the names state the numbers
  std::vector<std::int32_t> labels;  // of all samples
  std::int64_t classes = 0;
};

// Numbers the classes: by the numbers that all names state, or in bytewise order of the names. Held-out samples have
// the classes of the training split. Throws Error{data} with the place of a sample whose class the training split does
// not have, with the place of a name that is the same whole number as another one (1 and 1.0) unless they are folders,
// or with the path of the data set if the config sets another number of classes.
ClassNumbers number_classes(const NamedSamples& samples, const std::string& path, const DeclaredInfo& declared);

}  // namespace trainctl
