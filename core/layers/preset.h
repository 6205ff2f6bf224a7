// Presets: networks in files, with parameters.
//
//   parameters: {classes: 10, dropout: 0.5}    # names and defaults; a null default must be given by the user
//   shape: [32, 32, 3]                         # of a sample: what the preset is checked with on its own
//   layers:
//     - dense: {units: $classes}               # a value that is `$` and a name stands for the parameter
#pragma once

#include <functional>

#include "core/base/document.h"
#include "core/spec/reader.h"

namespace trainctl {

// Finds and reads the file that a preset names (a scalar: a name, or a path relative to the node's base_directory).
// Reports a file that is not there or no YAML, and then gives null.
using PresetLoader = std::function<Node(const Node& preset, Reader& reader)>;

// A `model` section with `preset` and `with` replaced by the preset's `layers`; without a preset, the section as it is.
// Values keep their places: those that `with` gives point there, all others into the preset's file. Unknown, missing
// and surplus names are reported, and the section then comes back as it was.
Node expand_preset(const Node& model, const PresetLoader& load, Reader& reader);

}  // namespace trainctl
