// Names that a user has probably meant by a name that is unknown.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trainctl {

// The one of `names` that the user has probably meant; "" if none is near. In this order: the name that a word of
// PyTorch, Keras or everyday use stands for ("Linear": dense, "gpu": cuda), the single name that begins with `name`,
// one that differs by a typing error, the longest one that `name` ends with ("sparse_categorical_accuracy": accuracy),
// and the nearest one by edit distance.
std::string nearest(std::string_view name, const std::vector<std::string>& names);

// "; did you mean 'units'?", or "" if no name is near.
std::string suggestion(std::string_view name, const std::vector<std::string>& names);

}  // namespace trainctl
