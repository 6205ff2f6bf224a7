// Finds what is installed or lies in the source tree beside the program: presets, data.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/layers/model/preset.h"
#include "io/yaml/yaml.h"

namespace trainctl {

// The first FOLDER/configs/RELATIVE or FOLDER/share/trainctl/configs/RELATIVE that exists, for FOLDER from the
// program's own upwards: a build in the source tree and an installation both find theirs, wherever they were moved.
std::optional<std::filesystem::path> find_in_configs(const std::filesystem::path& relative);

// The names of all presets, in bytewise order; none where no folder of them is found.
std::vector<std::string> preset_names();

// A preset named `vgg16` is configs/models/vgg16.yaml; a name with a slash or an ending is a path, relative to the file
// that names it. Reports one that is not there, with the presets that are.
Node load_preset(const Node& preset, Reader& reader);

// The same with these variables, and with the texts that `files` has; others are added to it. Refers to both.
PresetLoader preset_loader(const VariableLookup& variables, ConfigFiles& files);

}  // namespace trainctl
