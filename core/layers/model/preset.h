// Presets: networks in files, with parameters.
//
//   parameters: {classes: 10, dropout: 0.5}    # names and defaults; a null default must be given by the user
//   shape: [32, 32, 3]                         # of a sample: what the preset is checked with on its own
//   layers:
//     - dense: {units: $classes}               # a value that is `$` and a name stands for the parameter
//   names: {torchvision: [predictions -> fc]}  # of the layers in files of weights (core/layers/model/name_rules.h)
#pragma once

#include <functional>

#include "core/base/document.h"
#include "core/spec/reader.h"

namespace trainctl {

// Finds and reads the file that a preset names: a scalar, the preset's name or a path relative to the node's
// base_directory. Returns null after reporting a file that is missing or is not YAML.
using PresetLoader = std::function<Node(const Node& preset, Reader& reader)>;

// Returns a `model` section with `preset` and `with` replaced by the preset's `layers`, and the preset's `names` in
// `weights`, unless that has its own; without a preset, the section itself. Every value keeps its place: in `with`, or
// in the preset's file. Unknown, missing and surplus parameters are reported, and the section is then returned
// unchanged.
Node expand_preset(const Node& model, const PresetLoader& load, Reader& reader);

}  // namespace trainctl
