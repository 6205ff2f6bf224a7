// Reads the JSON that describes a saved network in a .keras or whole-model .h5 file.
#pragma once

#include <string>

#include "core/base/json_fwd.h"
#include "io/datasets/arrays/bytes.h"
#include "io/weights/hdf5_file.h"

namespace trainctl {

// Returns the network as in config.json of a .keras file: an object with "class_name", "config" and "keras_version",
// and with "compile_config" if the network was compiled. Its length and nesting are limited. Throws Error{data} if the
// file cannot be read, is damaged, or holds only weights.
Json read_saved_model(const std::string& path);

// Return the network in an open file in the same format; null if the file holds only weights. `path` is the file's name
// in messages.
Json saved_model_in_hdf5(const Hdf5File& file, const std::string& path);
Json saved_model_in_zip(const Bytes& archive, const std::string& path);

}  // namespace trainctl
