// NumPy's formats: .npy, an array behind a header that is a Python dictionary, and .npz, a zip archive of them.
#pragma once

#include <memory>
#include <string>

#include "io/datasets/array.h"

namespace trainctl {

// Reads an .npy file (may be gzip). Throws Error{data}: no .npy file, Fortran order, types other than integers and
// floats.
Array read_npy(const std::string& path);

bool has_npz_array(const std::string& path, const std::string& name);
// Reads the array `name` of an .npz file.
Array read_npz(const std::string& path, const std::string& name);

}  // namespace trainctl
