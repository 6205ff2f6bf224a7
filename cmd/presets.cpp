// Finding what comes with trainctl.
#include "cmd/presets.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "core/base/format.h"
#include "io/yaml/yaml.h"

namespace trainctl {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> preset_names(const fs::path& folder) {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

std::string shipped_configs() {
  const fs::path program = fs::read_symlink("/proc/self/exe");
  const fs::path installed = program.parent_path().parent_path() / "share/trainctl/configs";
  if (fs::exists(installed / "models")) return installed.string();
  // In a build folder: some level above it.
  for (fs::path folder = program.parent_path(); folder != folder.root_path(); folder = folder.parent_path()) {
    if (fs::exists(folder / "configs/models")) return (folder / "configs").string();
  }
  throw Error(ErrorKind::internal,
              "the folder configs/ that comes with trainctl was not found near " + program.string());
}

Node load_preset(const Node& preset, Reader& reader) {
  const std::string& name = preset.text;
  if (name.find('/') != std::string::npos || name.ends_with(".yaml")) {
    const fs::path file = (fs::path(preset.base_directory) / name).lexically_normal();
    if (fs::is_regular_file(file)) return load_yaml(file.string(), environment(), reader);
    reader.error(preset.place, format("preset file '{}' does not exist", file.string()));
    return {};
  }
  const fs::path folder = fs::path(shipped_configs()) / "models";
  const std::vector<std::string> names = preset_names(folder);
  if (std::find(names.begin(), names.end(), name) != names.end()) {
    return load_yaml((folder / (name + ".yaml")).string(), environment(), reader);
  }
  std::string hint = suggestion(name, names);
  if (hint.empty()) hint = "; there is " + join_or(names);
  reader.error(preset.place, format("unknown preset '{}'{}", name, hint));
  return {};
}

}  // namespace trainctl
