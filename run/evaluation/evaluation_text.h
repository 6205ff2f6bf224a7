// Formats an evaluation as text and as JSON.
#pragma once

#include <string>
#include <vector>

#include "core/base/json_fwd.h"

namespace trainctl {

struct Evaluation;

// Names of classes. If there are not as many names as classes, classes are shown by number.
using ClassNames = std::vector<std::string>;

// Returns a line for each value and, for each confusion matrix, the matrix and the scores of each class.
std::string to_text(const Evaluation& found, const ClassNames& names);

// Returns an object of the values and confusion matrices by name; its "classes" has the scores of each class, by
// matrix.
Json to_json(const Evaluation& found, const ClassNames& names);

}  // namespace trainctl
