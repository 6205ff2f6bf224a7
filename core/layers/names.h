// The names of layers: prefixes of their tensors' names, by which other layers, outputs and checkpoints refer to them.
#pragma once

#include <string>
#include <vector>

#include "core/spec/choice.h"
#include "core/spec/reader.h"

namespace trainctl {

// "path/name", or the name alone where the path is empty.
std::string below(const std::string& path, const std::string& name);

// Whether the name consists of letters, digits, '_', '-' and '.'.
bool is_name(const std::string& name);

// The names of the layers of one list: a stated name, or the layer's kind, numbered from the second of its kind on.
// Reports invalid names, and names that occur twice or are among `taken`. `path` is the path of the list, "" for the
// model's.
std::vector<std::string> layer_names(const std::vector<Choice>& layers, const std::string& path,
                                     const std::vector<std::string>& taken, Reader& reader);

}  // namespace trainctl
