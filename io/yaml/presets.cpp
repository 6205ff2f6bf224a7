// Loads presets by name or path.
#include "io/yaml/presets.h"

#include "core/base/files.h"
#include "core/base/format.h"
#include "core/spec/suggestion.h"
#include "io/yaml/yaml.h"

namespace trainctl {
namespace {

namespace fs = std::filesystem;

bool is_path(const std::string& name) { return name.find('/') != std::string::npos || name.ends_with(".yaml"); }

// Returns the path of a preset's file, "" if there is none. The path of a preset of trainctl is added to `files` under
// the preset's name, so that a process that gets `files` uses the same path.
std::string path_of_preset(const Node& preset, ConfigFiles& files) {
  if (is_path(preset.text)) return files.absolute((fs::path(preset.base_directory) / preset.text).string());
  if (const std::string* known = files.find(preset.text)) return *known;
  const auto found = find_in_configs(fs::path("models") / (preset.text + ".yaml"));
  if (!found) return "";
  files.add(preset.text, found->lexically_normal().string());
  return *files.find(preset.text);
}

// Says where the folder of presets, which is missing, was looked for.
std::string missing_presets() {
  std::error_code failure;
  const fs::path program = fs::read_symlink("/proc/self/exe", failure);
  return format(
      ", since trainctl's folder of presets was not found: neither configs/models nor share/trainctl/configs/models is "
      "in {} or in a folder above it; install the whole of trainctl there, or give the path of a preset's file",
      program.parent_path().string());
}

Node load_preset_file(const Node& preset, const VariableLookup& variables, Reader& reader, ConfigFiles& files) {
  const std::string path = path_of_preset(preset, files);
  FileType type = FileType::absent;
  try {
    if (!path.empty()) type = files.find(path) != nullptr ? FileType::regular : file_type(path, {ErrorKind::config});
  } catch (const Error& error) {
    reader.error(preset.location, format("preset {}", error.what()));
    return {};
  }
  if (type == FileType::regular) return load_yaml(path, variables, reader, files);
  if (is_path(preset.text)) {
    reader.error(preset.location, type == FileType::absent ? format("there is no preset file '{}'", path)
                                                           : format("preset '{}' is not a regular file", path));
    return {};
  }
  const std::vector<std::string> names = preset_names();
  std::string hint = suggestion(preset.text, names);
  if (hint.empty()) {
    hint = names.empty() ? missing_presets() : format("; there is {}, or a path to a file", join_or(names));
  }
  reader.error(preset.location, format("there is no preset '{}'{}", preset.text, hint));
  return {};
}

}  // namespace

std::optional<fs::path> find_in_configs(const fs::path& relative) {
  std::error_code failure;
  const fs::path program = fs::read_symlink("/proc/self/exe", failure);
  for (fs::path folder = program.parent_path(); !folder.empty(); folder = folder.parent_path()) {
    for (const char* configs : {"configs", "share/trainctl/configs"}) {
      fs::path candidate = folder / configs / relative;
      if (fs::exists(candidate, failure)) return candidate;
    }
    if (folder == folder.root_path()) break;
  }
  return {};
}

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  const auto folder = find_in_configs("models");
  if (!folder) return names;
  for (const FolderEntry& entry : list_folder(folder->string(), {ErrorKind::config})) {
    const fs::path file = entry.name;
    if (file.extension() == ".yaml") names.push_back(file.stem().string());
  }
  return names;
}

Node load_preset(const Node& preset, Reader& reader) {
  ConfigFiles files;
  return load_preset_file(preset, environment(), reader, files);
}

PresetLoader preset_loader(const VariableLookup& variables, ConfigFiles& files) {
  return [&variables, &files](const Node& preset, Reader& reader) {
    return load_preset_file(preset, variables, reader, files);
  };
}

}  // namespace trainctl
