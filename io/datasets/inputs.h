// How the paths of samples without targets are understood.
#pragma once

#include <string>

namespace trainctl {

// Whether a path is an array (.npy, .npz, IDX), or a folder with an array x or x_test. Throws Error{data} if the folder
// cannot be read.
bool holds_input_array(const std::string& path);

}  // namespace trainctl
