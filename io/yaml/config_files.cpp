// Packs the texts of a config's files as JSON.
#include "io/yaml/config_files.h"

#include <filesystem>
#include <system_error>

#include "core/base/json.h"

namespace trainctl {
namespace fs = std::filesystem;

ConfigFiles::ConfigFiles() {
  std::error_code failure;
  directory_ = fs::current_path(failure).string();
}

ConfigFiles ConfigFiles::of(const std::string& file, std::string text) {
  ConfigFiles files;
  files.add(files.absolute(file), std::move(text));
  return files;
}

std::string ConfigFiles::absolute(const std::string& path) const {
  return (fs::path(directory_) / path).lexically_normal().string();
}

const std::string* ConfigFiles::find(const std::string& name) const {
  const auto found = texts_.find(name);
  return found == texts_.end() ? nullptr : &found->second;
}

std::string ConfigFiles::pack() const { return json_text({{"directory", directory_}, {"files", texts_}}); }

std::optional<ConfigFiles> ConfigFiles::unpack(const std::string& packed) {
  try {
    const Json json = parse_json(packed);
    ConfigFiles files;
    files.directory_ = json.at("directory").get<std::string>();
    files.texts_ = json.at("files").get<std::map<std::string, std::string>>();
    return files;
  } catch (const Json::exception&) {
    return {};
  }
}

}  // namespace trainctl
