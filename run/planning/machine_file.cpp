// Finding and reading a machine's file.
#include "run/planning/machine_file.h"

#include <filesystem>
#include <vector>

#include "core/base/files.h"
#include "core/base/format.h"
#include "core/spec/suggestion.h"
#include "io/yaml/presets.h"
#include "io/yaml/yaml.h"

namespace trainctl {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> machine_names() {
  std::vector<std::string> names;
  const auto folder = find_in_configs("machines");
  if (!folder) return names;
  for (const FolderEntry& entry : list_folder(folder->string(), {ErrorKind::config})) {
    const fs::path file = entry.name;
    if (file.extension() == ".yaml") names.push_back(file.stem().string());
  }
  return names;
}

std::string path_of(const std::string& name) {
  if (name.find('/') != std::string::npos || name.ends_with(".yaml")) return name;
  if (const auto found = find_in_configs(fs::path("machines") / (name + ".yaml"))) return found->string();
  const std::vector<std::string> names = machine_names();
  throw Error(ErrorKind::config, format("there is no machine '{}'{}", name, suggestion(name, names)),
              format("use {}, or the path of a file like them", join_or(names)));
}

}  // namespace

Machine load_machine(const std::string& name) {
  Reader reader;
  const Node document = load_yaml(path_of(name), environment(), reader);
  reader.throw_if_failed();
  Machine machine;
  const ReadingContext context(reader, "the machine");
  Value<Machine>::read(document, reader, machine);
  reader.throw_if_failed();
  return machine;
}

}  // namespace trainctl
