// Finds names of classes that may mean the same class.
#pragma once

#include <string>
#include <vector>

namespace trainctl {

// Returns a warning about names that differ in upper and lower case only, such as "Cat" and "cat"; "" if there are
// none. Single letters are taken for different classes.
std::string spelling_warning(const std::vector<std::string>& class_names);

}  // namespace trainctl
