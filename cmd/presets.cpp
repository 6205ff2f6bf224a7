// Presets by name or path.
#include "cmd/presets.h"

#include <algorithm>

#include "core/base/format.h"
#include "io/yaml/yaml.h"

namespace trainctl {
namespace {

namespace fs = std::filesystem;

// The names of all presets, for messages.
std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  const auto folder = find_in_configs("models");
  if (!folder) return names;
  std::error_code failure;
  for (fs::directory_iterator entry(*folder, failure); !failure && entry != fs::directory_iterator();
       entry.increment(failure)) {
    if (entry->path().extension() == ".yaml") names.push_back(entry->path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool is_path(const std::string& name) { return name.find('/') != std::string::npos || name.ends_with(".yaml"); }

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

Node load_preset(const Node& preset, Reader& reader) {
  const auto file = is_path(preset.text) ? fs::path(preset.base_directory) / preset.text
                                         : find_in_configs(fs::path("models") / (preset.text + ".yaml")).value_or("");
  std::error_code failure;
  const fs::file_type type = fs::status(file, failure).type();
  if (type == fs::file_type::regular) return load_yaml(file.lexically_normal().string(), environment(), reader);
  if (is_path(preset.text)) {
    const std::string shown = file.lexically_normal().string();
    const bool absent = type == fs::file_type::not_found;
    reader.error(preset.place, absent    ? format("there is no preset file '{}'", shown)
                               : failure ? format("preset '{}' cannot be read: {}", shown, failure.message())
                                         : format("preset '{}' is no regular file", shown));
    return {};
  }
  const std::vector<std::string> names = preset_names();
  std::string hint = suggestion(preset.text, names);
  if (hint.empty() && !names.empty()) hint = format("; there is {}, or a path to a file", join_or(names));
  reader.error(preset.place, format("there is no preset '{}'{}", preset.text, hint));
  return {};
}

}  // namespace trainctl
