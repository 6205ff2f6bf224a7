// The names of layers: prefixes of their tensors' names, by which other layers, outputs and checkpoints refer to them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/spec/choice.h"
#include "core/spec/reader.h"

namespace trainctl {

// "path/name", or the name alone where the path is empty.
std::string below(const std::string& path, const std::string& name);

// Whether the name consists of letters of any script (in UTF-8), digits, '_', '-' and '.'.
bool is_name(const std::string& name);

// The text with a '_' for each character that no name may hold.
std::string as_name(std::string_view text);

// A layer that is used several times, always with the same weights: what the use of this number, from 1 on, is called.
// The first use has the layer's own name, further ones are "c1@2", "c1@3".
std::string use_of(const std::string& name, int number);

// The path of the layer whose use has this path: that of its weights. "block@2/c1@3" is a use of "block/c1".
std::string without_uses(const std::string& path);

// How many blocks above a layer, which has this path, the one lies that a pattern of layer names (`conv*`) names: 0 for
// the layer itself; -1 where it names none.
int blocks_above(const std::string& pattern, std::string path);

// The names of the layers of one list: a stated name, or the layer's kind, numbered from the second of its kind on. A
// name that is stated again is the same layer's next use. Reports invalid names, and names that are among `taken`.
// `path` is the path of the list, "" for the model's.
std::vector<std::string> layer_names(const std::vector<Choice>& layers, const std::string& path,
                                     const std::vector<std::string>& taken, Reader& reader);

}  // namespace trainctl
