// Searches runs/ for the run of a config.
#include "io/metrics/find_run.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/format.h"
#include "core/spec/units.h"
#include "io/checkpoint/atomic_file.h"
#include "io/checkpoint/store.h"
#include "io/metrics/run_directory.h"
#include "io/yaml/yaml.h"

namespace trainctl {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t shown_differences = 4;

// Returns 1 for runs/<name>, N for runs/<name>-N; no value for other folders.
std::optional<std::int64_t> run_number_of(const std::string& folder, const std::string& name) {
  if (folder == name) return 1;
  if (!folder.starts_with(name + "-")) return std::nullopt;
  const std::string digits = folder.substr(name.size() + 1);
  if (digits.empty() || digits.find_first_not_of("0123456789") != std::string::npos) return std::nullopt;
  const auto number = parse_integer(digits);
  return number && *number > 1 ? number : std::nullopt;
}

// Returns the directories of runs of this name that have a checkpoint, the newest first.
std::vector<std::string> runs_of(const std::string& name) {
  std::vector<std::pair<std::int64_t, std::string>> found;
  if (!exists("runs")) return {};
  for (const FolderEntry& folder : list_folder("runs")) {
    const std::string path = "runs/" + folder.name;
    const auto number = run_number_of(folder.name, name);
    std::error_code ignored;
    if (!number || !fs::exists(path + "/config.yaml", ignored) || list_checkpoints(path).empty()) continue;
    found.emplace_back(*number, path);
  }
  std::sort(found.rbegin(), found.rend());
  std::vector<std::string> paths;
  for (auto& [number, path] : found) paths.push_back(std::move(path));
  return paths;
}

std::vector<std::string> differences_of_model(const Node& before, const Node& now) {
  const auto model = [](const Node& config) {
    const Node* found = config.find("model");
    Node map = map_node();
    append(map, "model", found == nullptr ? Node{} : *found);
    return map;
  };
  return differences(model(before), model(now));
}

std::string first_lines(const std::vector<std::string>& lines) {
  std::string text;
  for (std::size_t i = 0; i < std::min(lines.size(), shown_differences); ++i) text += "\n  " + lines[i];
  if (lines.size() > shown_differences) text += format("\n  and {} more", lines.size() - shown_differences);
  return text;
}

}  // namespace

NewestRun find_newest_run(const std::string& name, const Node& config) {
  NewestRun found;
  for (const std::string& run : runs_of(name)) {
    const Node before = load_run_config(run);
    std::vector<std::string> differ = deciding_differences(before, config);
    if (differ.empty()) return {RunOfConfig{run, {}}, "", {}};
    std::vector<std::string> model = differences_of_model(before, config);
    if (model.empty() && !found.run) found.run = {run, std::move(differ)};
    if (found.other.empty()) found.other = run;
    if (!model.empty() && found.differences.empty()) found.differences = std::move(model);
  }
  return found;
}

RunOfConfig newest_run(const std::string& name, const Node& config, const std::string& config_file) {
  const NewestRun found = find_newest_run(name, config);
  if (found.run) return *found.run;
  if (found.other.empty()) {
    throw Error(ErrorKind::data, SourceLocation{"runs/" + name}, "there is no run with a checkpoint",
                "train first (trainctl run), or name the directory of a run or the folder of a checkpoint");
  }
  throw Error(
      ErrorKind::config, SourceLocation{config_file},
      format("its model differs from the model of {}/config.yaml:{}\n", found.other, first_lines(found.differences)),
      "train it first (trainctl run), or name the directory of a run of this model");
}

std::string run_of_checkpoint(const std::string& checkpoint) {
  std::error_code ignored;
  fs::path folder = fs::absolute(checkpoint, ignored).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();  // the path ends with a slash
  for (;; folder = folder.parent_path()) {
    if (fs::exists(folder / "config.yaml", ignored) && fs::exists(folder / "checkpoints", ignored)) {
      return folder.string();
    }
    if (folder.filename() != "checkpoints" && folder.parent_path().filename() != "checkpoints") return "";
  }
}

std::optional<std::vector<std::string>> key_differences(const std::string& checkpoint, const Node& config) {
  const std::string run = run_of_checkpoint(checkpoint);
  if (run.empty()) return std::nullopt;
  return deciding_differences(load_run_config(run), config);
}

std::vector<std::string> model_differences(const std::string& checkpoint, const Node& config) {
  const std::string run = run_of_checkpoint(checkpoint);
  return run.empty() ? std::vector<std::string>() : differences_of_model(load_run_config(run), config);
}

}  // namespace trainctl
