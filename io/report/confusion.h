// Shows a confusion matrix on a page.
#pragma once

#include <string>
#include <vector>

#include "core/metrics/result.h"

namespace trainctl {

// Returns HTML with the whole matrix if it has at most 25 classes, and the pairs of classes that are confused most
// often. `names` are the names of the classes; if there is not one name for each class, their numbers are shown.
std::string confusion_of(const Table& matrix, const std::vector<std::string>& names);

}  // namespace trainctl
