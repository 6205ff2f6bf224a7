// NumPy's formats: .npy, an array behind a header that is a Python dictionary, and .npz, a zip archive of .npy files.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/datasets/arrays/array.h"

namespace trainctl {

// Reads an .npy file, which may be compressed with gzip. Throws Error{data}: not an .npy file, Fortran order, an
// element type other than integers and floats.
Array read_npy(const std::string& path);

// The position of `name` in a list of array names, or else of the only name that differs from it in case alone (x is
// often stored as X); nothing where there is none.
std::optional<std::size_t> find_name(const std::vector<std::string>& names, const std::string& name);

// The path of the .npy file of that name in a folder; "" where there is none.
std::string npy_in_folder(const std::string& folder, const std::string& name);

bool has_npz_array(const std::string& path, const std::string& name);
// Reads the array `name` of an .npz file. Throws Error{data} as read_npy() does, and where there is no such array.
Array read_npz(const std::string& path, const std::string& name);

}  // namespace trainctl
