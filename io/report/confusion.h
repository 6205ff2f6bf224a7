// The confusion matrix on a page.
#pragma once

#include <string>
#include <vector>

#include "core/metrics/result.h"

namespace trainctl {

// How often samples of each class were taken for which: the whole matrix where it has up to 25 classes, and the classes
// that are taken for each other most often. `names` are those of the classes; numbers where they are not those of all.
// HTML.
std::string confusion_of(const Table& matrix, const std::vector<std::string>& names);

}  // namespace trainctl
