// Suggests known names for an unknown name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trainctl {

// Returns the name in `names` that the user probably meant, or "" if no name is similar. Tries in this order: the name
// that corresponds to a word of PyTorch, Keras or everyday use ("Linear": dense, "gpu": cuda), the only name that
// begins with `name`, a name that differs by a typing error, the longest name that `name` ends with
// ("top_1_accuracy": accuracy), and the nearest name by edit distance.
std::string nearest(std::string_view name, const std::vector<std::string>& names);

// Returns text such as "; did you mean 'units'?", or "" if no name is similar.
std::string suggestion(std::string_view name, const std::vector<std::string>& names);

}  // namespace trainctl
