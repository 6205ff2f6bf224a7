// Reading a run directory for a report.
#include "io/report/run_report.h"

#include <algorithm>
#include <filesystem>

#include "core/base/files.h"
#include "core/base/format.h"
#include "io/metrics/run_directory.h"

namespace trainctl {
namespace {

constexpr std::int64_t longest_file = 256 << 20;  // bytes
constexpr std::size_t most_warnings = 20;

// Lines of log.txt that are warnings or errors: their level stands behind date and time.
std::vector<std::string> warnings_of(const std::string& path) {
  if (!exists(path)) return {};
  const std::string text = read_file(path, longest_file);
  std::vector<std::string> lines;
  for (std::size_t begin = 0, end = 0; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const std::string line = text.substr(begin, end - begin);
    constexpr std::size_t level = std::string_view("2026-01-01 00:00:00.000 ").size();
    const bool serious =
        line.size() > level + 1 && (line[level] == 'W' || line[level] == 'E') && line[level + 1] == ' ';
    if (serious) lines.push_back(line);
  }
  if (lines.size() > most_warnings) lines.erase(lines.begin(), lines.end() - most_warnings);
  return lines;
}

void add_leaves(const std::string& path, const Node& node, std::vector<std::pair<std::string, std::string>>& leaves) {
  if (!node.is_map() || node.entries.empty()) return leaves.emplace_back(path, flow_text(node)), void();
  for (const Node::Entry& entry : node.entries) {
    if (path.empty() && (entry.key == "resolved" || entry.key == "name")) continue;
    add_leaves(path.empty() ? entry.key : path + "." + entry.key, entry.value, leaves);
  }
}

}  // namespace

std::string RunReport::name() const {
  std::filesystem::path path = std::filesystem::absolute(directory).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();  // behind a slash
  return path.filename().string();
}

RunReport load_run_report(const std::string& directory) {
  const std::string config = directory + "/config.yaml", metrics = directory + "/metrics.jsonl";
  if (!is_folder(directory) || !exists(config)) {
    throw Error(ErrorKind::data, Place{directory}, "this is no run directory: it has no config.yaml",
                "name a folder that `trainctl run` has made, such as runs/NAME");
  }
  RunReport run{
      directory, read_history(metrics), read_file(config, longest_file), load_run_config(directory), {}, {}, {}, {}};
  if (run.history.empty()) {
    throw Error(ErrorKind::data, Place{metrics}, "the run has not begun to train: no start is told here",
                "run it first: trainctl run " + config + " --run-dir " + directory);
  }
  if (const Node* resolved = run.config.find("resolved")) {
    if (const Node* names = resolved->find("class_names")) {
      for (const Node& name : names->items) run.class_names.push_back(name.text);
    }
  }
  run.warnings = warnings_of(directory + "/log.txt");
  return run;
}

std::vector<ConfigDifference> config_differences(const std::vector<RunReport>& runs) {
  std::vector<ConfigDifference> all;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    std::vector<std::pair<std::string, std::string>> leaves;
    add_leaves("", runs[i].config, leaves);
    for (auto& [key, value] : leaves) {
      auto found = std::find_if(all.begin(), all.end(), [&](const ConfigDifference& one) { return one.key == key; });
      if (found == all.end()) found = all.insert(all.end(), {key, std::vector<std::string>(runs.size())});
      found->values[i] = std::move(value);
    }
  }
  std::erase_if(all, [](const ConfigDifference& one) {
    return std::all_of(one.values.begin(), one.values.end(),
                       [&](const std::string& value) { return value == one.values.front(); });
  });
  return all;
}

std::vector<std::size_t> best_first(const std::vector<RunReport>& runs) {
  std::vector<std::size_t> order(runs.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::string monitor;
  for (auto run = runs.rbegin(); run != runs.rend(); ++run) {
    if (const auto best = run->history.best()) monitor = best->monitor;
  }
  // 0 for runs that can be compared.
  const auto rank = [&](std::size_t i) {
    const auto best = runs[i].history.best();
    return !best ? 2 : best->monitor != monitor ? 1 : 0;
  };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (rank(a) != rank(b)) return rank(a) < rank(b);
    if (rank(a) != 0) return false;
    const auto one = *runs[a].history.best(), other = *runs[b].history.best();
    return one.maximum ? one.value > other.value : one.value < other.value;
  });
  return order;
}

}  // namespace trainctl
