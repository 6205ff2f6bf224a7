// The names of layers, which are prefixes of their tensors' names; other layers, outputs and checkpoints refer to them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/spec/choice.h"
#include "core/spec/reader.h"

namespace trainctl {

// Returns "path/name", or just the name if the path is empty.
std::string below(const std::string& path, const std::string& name);

// Whether the name consists of letters of any script (in UTF-8), digits, '_', '-' and '.'.
bool is_name(const std::string& name);

// Returns the text with a '_' instead of each character that a name may not contain.
std::string as_name(std::string_view text);

// Returns the name of a use of a layer; `number` counts the uses from 1. The first use has the layer's own name, later
// uses are "c1@2", "c1@3". All uses share the layer's weights.
std::string use_of(const std::string& name, int number);

// Returns the path of a layer, which is also the path of its weights, from the path of one of its uses: "block/c1" for
// "block@2/c1@3".
std::string without_uses(const std::string& path);

// Returns the number of levels from the layer with this path up to the nearest block that a pattern of layer names
// (`conv*`) matches: 0 if it matches the layer itself; -1 if it matches neither the layer nor a block that contains the
// layer.
int blocks_above(const std::string& pattern, std::string path);

// Returns the names of the layers of one list: the name in the config, or the layer's kind, numbered from the second
// layer of its kind on. A name that occurs again means the next use of the same layer. Reports invalid names, and names
// that are in `taken`. `path` is the path of the list, "" for the model's own list.
std::vector<std::string> layer_names(const std::vector<Choice>& layers, const std::string& path,
                                     const std::vector<std::string>& taken, Reader& reader);

}  // namespace trainctl
