// NumPy's formats: .npy, an array behind a header that is a Python dictionary, and .npz, a zip archive of them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/datasets/array.h"

namespace trainctl {

// Reads an .npy file (may be gzip). Throws Error{data}: no .npy file, Fortran order, types other than integers and
// floats.
Array read_npy(const std::string& path);

// An array is found under its name, or else under the only name that differs from it by case alone: x is often X.
std::optional<std::size_t> find_name(const std::vector<std::string>& names, const std::string& name);

// The .npy file of that name in a folder; "" where there is none.
std::string npy_in_folder(const std::string& folder, const std::string& name);

bool has_npz_array(const std::string& path, const std::string& name);
// Reads the array `name` of an .npz file.
Array read_npz(const std::string& path, const std::string& name);

}  // namespace trainctl
