// Presets: networks in files, with parameters.
//
//   parameters: {classes: 10, dropout: 0.5}    # names and defaults; if a default is null, the user must set the value
//   shape: [32, 32, 3]                         # shape of a sample, for checking the preset on its own
//   layers:
//     - dense: {units: $classes}               # `$` and a name is replaced by the parameter's value
//   names: {torchvision: [predictions -> fc]}  # rules for the layers' names in files of weights (name_rules.h)
//   products: {width: [heads, head_size]}      # parameters that must be the product of two others
#pragma once

#include <functional>

#include "core/base/document.h"
#include "core/spec/reader.h"

namespace trainctl {

// Finds and reads the file that a preset names: a scalar, the preset's name or a path relative to the node's
// base_directory. Returns null after reporting a file that is missing or is not YAML.
using PresetLoader = std::function<Node(const Node& preset, Reader& reader)>;

// Returns a `model` section with `preset` and `with` replaced by the preset's `layers`. The preset's `names` are added
// to `weights`, unless `weights` has `names` of its own. Without a preset, returns the section itself. Every value
// keeps its source location, in `with` or in the preset's file. Unknown, missing, surplus and contradictory parameters
// are reported, and the section is then returned unchanged.
Node expand_preset(const Node& model, const PresetLoader& load, Reader& reader);

}  // namespace trainctl
