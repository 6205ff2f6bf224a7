// NumPy's formats: .npy, a header that is a Python dictionary followed by an array, and .npz, a zip archive of .npy
// files.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/datasets/arrays/array.h"

namespace trainctl {

// Reads an .npy file, which may be compressed with gzip. An array in Fortran order is read into memory. Throws
// Error{data} if it is not an .npy file, or its elements are neither integers nor floats.
Array read_npy(const std::string& path);

// The header of an .npy file, version 1.0 of the format, after which the elements follow. `type` is NumPy's name of
// their type, such as "<f4".
std::string npy_header(std::string_view type, const Shape& shape);

// Returns the position of `name` in a list of array names. Otherwise, if exactly one name differs from `name` only in
// case (x is often stored as X), returns the position of that name. Returns nullopt if there is no such name.
std::optional<std::size_t> find_name(const std::vector<std::string>& names, const std::string& name);

// Returns the path of the .npy file of that name in a folder; "" if there is none.
std::string npy_in_folder(const std::string& folder, const std::string& name);

// Whether an .npz file has the array `name`. Throws Error{data} if the file cannot be read or is not a zip archive.
bool has_npz_array(const std::string& path, const std::string& name);
// Reads the array `name` of an .npz file. Throws Error{data} for the same reasons as read_npy(), and if there is no
// such array.
Array read_npz(const std::string& path, const std::string& name);

}  // namespace trainctl
