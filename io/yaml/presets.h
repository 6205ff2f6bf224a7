// Finds presets and data that are installed with the program or are in its source tree.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/layers/model/preset.h"
#include "io/yaml/yaml.h"

namespace trainctl {

// Returns the first existing path FOLDER/configs/RELATIVE or FOLDER/share/trainctl/configs/RELATIVE, where FOLDER is
// the program's folder or one of its parents. This works for builds in the source tree and for installations, also
// after they were moved.
std::optional<std::filesystem::path> find_in_configs(const std::filesystem::path& relative);

// Returns the names of all presets in bytewise order; empty if their folder is not found.
std::vector<std::string> preset_names();

// Loads a preset. The name `vgg16` means configs/models/vgg16.yaml; a name with a slash or the ending .yaml is a path
// relative to the file that contains the name. If the preset does not exist, the error lists the existing ones.
Node load_preset(const Node& preset, Reader& reader);

// Returns a function that loads presets with these variables. Texts that are in `files` are used; other files are read,
// and their texts are added to `files`. The function keeps references to both arguments.
PresetLoader preset_loader(const VariableLookup& variables, ConfigFiles& files);

}  // namespace trainctl
