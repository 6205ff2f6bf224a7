// What `eval` prints of an evaluation, as text and as JSON.
#pragma once

#include <string>
#include <vector>

#include "core/base/json_fwd.h"

namespace trainctl {

struct Evaluation;

// Names of classes; where they are not those of all, classes have numbers.
using ClassNames = std::vector<std::string>;

// A line for each value, and each table of classes with what it says of each class.
std::string to_text(const Evaluation& found, const ClassNames& names);

// An object of values and tables by name, and of "classes": for each table its classes' scores.
Json to_json(const Evaluation& found, const ClassNames& names);

}  // namespace trainctl
