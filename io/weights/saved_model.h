// What Keras says about a network that it saved: the JSON in a .keras or whole-model .h5 file.
#pragma once

#include <string>

#include "core/base/json_fwd.h"
#include "io/datasets/arrays/bytes.h"
#include "io/weights/hdf5_file.h"

namespace trainctl {

// The file's network as in a .keras file's config.json: an object with "class_name" and "config"; with "compile_config"
// where the network was compiled, and "keras_version". Its length and nesting are bounded. Throws Error{data} where the
// file cannot be read, is damaged, or holds weights alone.
Json read_saved_model(const std::string& path);

// Likewise, of a file that is open; null if it holds weights alone. `path` is its name in messages.
Json saved_model_in_hdf5(const Hdf5File& file, const std::string& path);
Json saved_model_in_zip(const Bytes& archive, const std::string& path);

}  // namespace trainctl
