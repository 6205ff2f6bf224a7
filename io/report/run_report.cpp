// Reads a run directory for a report.
#include "io/report/run_report.h"

#include <algorithm>
#include <filesystem>

#include "core/base/files.h"
#include "core/base/format.h"
#include "io/metrics/run_directory.h"

namespace trainctl {
namespace {

constexpr std::int64_t max_file_bytes = 256 << 20;
constexpr std::size_t max_warnings = 20;

// Returns the lines of log.txt that are warnings or errors: their level follows date and time.
std::vector<std::string> warnings_of(const std::string& path) {
  if (!exists(path)) return {};
  const std::string text = read_file(path, max_file_bytes);
  std::vector<std::string> lines;
  for (std::size_t begin = 0, end = 0; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const std::string line = text.substr(begin, end - begin);
    constexpr std::size_t level = std::string_view("2026-01-01 00:00:00.000 ").size();
    const bool is_problem =
        line.size() > level + 1 && (line[level] == 'W' || line[level] == 'E') && line[level + 1] == ' ';
    if (is_problem) lines.push_back(line);
  }
  if (lines.size() > max_warnings) lines.erase(lines.begin(), lines.end() - max_warnings);
  return lines;
}

// The nodes at the same path of each config; null for a config without such a node.
using Nodes = std::vector<const Node*>;

std::string text_of(const Node* node) { return node == nullptr ? "" : flow_text(*node); }

bool all_present(const Nodes& nodes, bool (Node::*is)() const) {
  return std::all_of(nodes.begin(), nodes.end(), [is](const Node* node) { return node == nullptr || (node->*is)(); });
}

// Returns how many items at the beginning (or at the end) of all lists are equal, at most `max`.
std::size_t common_items(const Nodes& lists, bool at_end, std::size_t max) {
  const auto item = [at_end](const Node& list, std::size_t i) {
    return flow_text(at_end ? list.items[list.items.size() - 1 - i] : list.items[i]);
  };
  std::size_t count = 0;
  while (count < max && std::all_of(lists.begin(), lists.end(), [&](const Node* list) {
           return item(*list, count) == item(*lists.front(), count);
         })) {
    ++count;
  }
  return count;
}

void compare(const std::string& path, const Nodes& nodes, std::vector<ConfigDifference>& found);

// Compares items one by one, after leaving out the items that all lists begin and end with, so that an inserted item
// does not shift the later ones.
void compare_lists(const std::string& path, const Nodes& lists, std::vector<ConfigDifference>& found) {
  std::size_t shortest = lists.front()->items.size(), longest = 0;
  for (const Node* list : lists) {
    shortest = std::min(shortest, list->items.size());
    longest = std::max(longest, list->items.size());
  }
  const std::size_t begin = common_items(lists, false, shortest);
  const std::size_t end = common_items(lists, true, shortest - begin);
  for (std::size_t i = begin; i + end < longest; ++i) {
    Nodes items;
    for (const Node* list : lists) items.push_back(i + end < list->items.size() ? &list->items[i] : nullptr);
    compare(format("{}[{}]", path, i), items, found);
  }
}

// Whether all nodes are maps of the same kind. The kind of a list's item, such as a layer, is its first key.
bool are_maps_alike(const std::string& path, const Nodes& nodes) {
  std::string first;
  for (const Node* node : nodes) {
    if (node == nullptr || node->entries.empty()) continue;
    if (path.ends_with(']') && !first.empty() && node->entries[0].key != first) return false;
    first = node->entries[0].key;
  }
  return all_present(nodes, &Node::is_map) && !first.empty();
}

void compare_maps(const std::string& path, const Nodes& maps, std::vector<ConfigDifference>& found) {
  std::vector<std::string> keys;
  for (const Node* map : maps) {
    if (map == nullptr) continue;
    for (const Node::Entry& entry : map->entries) {
      if (path.empty() && (entry.key == "resolved" || entry.key == "name")) continue;
      if (std::find(keys.begin(), keys.end(), entry.key) == keys.end()) keys.push_back(entry.key);
    }
  }
  for (const std::string& key : keys) {
    Nodes values;
    for (const Node* map : maps) values.push_back(map == nullptr ? nullptr : map->find(key));
    compare(path.empty() ? key : path + "." + key, values, found);
  }
}

void compare(const std::string& path, const Nodes& nodes, std::vector<ConfigDifference>& found) {
  const auto holds_items = [](const Node* list) {
    return list->is_sequence() && std::ranges::any_of(list->items, &Node::is_map);
  };
  const auto same = [&](const Node* node) { return text_of(node) == text_of(nodes.front()); };
  if (std::all_of(nodes.begin(), nodes.end(), same)) return;
  const bool all_there = std::find(nodes.begin(), nodes.end(), nullptr) == nodes.end();
  if (are_maps_alike(path, nodes) && (all_there || !path.ends_with(']'))) return compare_maps(path, nodes, found);
  if (all_there && std::any_of(nodes.begin(), nodes.end(), holds_items)) return compare_lists(path, nodes, found);
  ConfigDifference difference{path, {}};
  for (const Node* node : nodes) difference.values.push_back(text_of(node));
  found.push_back(std::move(difference));
}

}  // namespace

std::string RunReport::name() const {
  std::filesystem::path path = std::filesystem::absolute(directory).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();  // the path ends with a slash
  return path.filename().string();
}

RunReport load_run_report(const std::string& directory) {
  const std::string config = directory + "/config.yaml", metrics = directory + "/metrics.jsonl";
  if (!is_folder(directory) || !exists(config)) {
    throw Error(ErrorKind::config, SourceLocation{directory},
                exists(directory) ? "this is not a run directory: it has no config.yaml" : "there is no such directory",
                "name a folder that `trainctl run` has made, such as runs/NAME");
  }
  RunReport run{
      directory, read_history(metrics), read_file(config, max_file_bytes), load_run_config(directory), {}, {}, {}, {}};
  if (run.history.empty()) {
    throw Error(ErrorKind::data, SourceLocation{metrics}, "the run has not begun to train: there is no start event",
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
  Nodes configs;
  for (const RunReport& run : runs) configs.push_back(&run.config);
  std::vector<ConfigDifference> found;
  compare("", configs, found);
  return found;
}

std::vector<std::size_t> best_first(const std::vector<RunReport>& runs) {
  std::vector<std::size_t> order(runs.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::string monitor;
  for (auto run = runs.rbegin(); run != runs.rend(); ++run) {
    if (const auto best = run->history.best()) monitor = best->monitor;
  }
  // 0: the run monitors the first run's metric; 1: it monitors another metric; 2: it has no best value.
  const auto group = [&](std::size_t i) {
    const auto best = runs[i].history.best();
    return !best ? 2 : best->monitor != monitor ? 1 : 0;
  };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (group(a) != group(b)) return group(a) < group(b);
    if (group(a) != 0) return false;
    const auto one = *runs[a].history.best(), other = *runs[b].history.best();
    return one.maximum ? one.value > other.value : one.value < other.value;
  });
  return order;
}

}  // namespace trainctl
