// The names of layers: prefixes of their tensors' names, by which other layers, outputs and checkpoints refer to them.
#pragma once

#include <string>
#include <vector>

#include "core/spec/choice.h"
#include "core/spec/reader.h"

namespace trainctl {

// "block/conv1", or the name alone where the path is empty.
std::string below(const std::string& path, const std::string& name);

// Whether it consists of letters, digits, '_', '-' and '.'.
bool is_name(const std::string& name);

// The names of the layers of one list: those that are stated, and for the others their kind, numbered from the second
// one on. Reports names that are no names, that stand twice or among `taken`; `path` is that of the list.
std::vector<std::string> layer_names(const std::vector<Choice>& layers, const std::string& path,
                                     const std::vector<std::string>& taken, Reader& reader);

}  // namespace trainctl
