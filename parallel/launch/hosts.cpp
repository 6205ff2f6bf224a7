// Reading lists of hosts.
#include "parallel/launch/hosts.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>
#include <unordered_map>
#include <utility>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/terminal_text.h"
#include "parallel/launch/options.h"

namespace trainctl {
namespace {

constexpr std::size_t longest_name = 255;  // of a host

// A number from 0, or nothing.
std::optional<int> whole_number(std::string_view text) {
  int value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size() || value < 0) return {};
  return value;
}

// A number from 1 to most_slots, or nothing.
std::optional<int> positive(std::string_view text) {
  const std::optional<int> value = whole_number(text);
  return value && *value >= 1 && *value <= most_slots ? value : std::nullopt;
}

// Hosts in the order in which they are named first.
class HostList {
 public:
  void add(std::string_view name, int slots) {
    const auto [place, is_new] = places_.emplace(name, hosts_.size());
    if (is_new) hosts_.push_back({std::string(name), 0});
    int& sum = hosts_[place->second].slots;
    sum = std::min(sum + slots, most_slots + 1);  // too many are found when all are added up
  }
  std::vector<Host> take() { return std::move(hosts_); }

 private:
  std::vector<Host> hosts_;
  std::unordered_map<std::string, std::size_t> places_;
};

std::string_view without_spaces(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0) text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) text.remove_suffix(1);
  return text;
}

}  // namespace

bool is_host_name(std::string_view text) {
  return !text.empty() && text.size() <= longest_name && text.front() != '-' &&
         std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '.' || c == '_'; });
}

int total_slots(const std::vector<Host>& hosts) {
  std::int64_t sum = 0;
  for (const Host& host : hosts) sum += host.slots;
  if (sum <= most_slots) return static_cast<int>(sum);
  throw Error(ErrorKind::config, format("the hosts have {} slots together, and {} are the most", sum, most_slots));
}

std::vector<Host> parse_hosts(std::string_view text) {
  HostList hosts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view item = without_spaces(text.substr(begin, end - begin));
    const std::size_t colon = item.find(':');
    const std::string_view name = item.substr(0, colon);
    const std::optional<int> slots = colon == std::string_view::npos ? 1 : positive(item.substr(colon + 1));
    if (!is_host_name(name) || !slots) {
      throw Error(ErrorKind::config, format("'{}' is no host in '{}'", item, text), "write hosts as node1:8,node2:8");
    }
    hosts.add(name, *slots);
    begin = end + 1;
  }
  return hosts.take();
}

std::vector<Host> parse_hostfile(std::string_view text, const std::string& file) {
  HostList hosts;
  std::istringstream lines{std::string(text)};
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string name;
    if (!(words >> name)) continue;
    const Place place{file, number, 1};
    if (!is_host_name(name)) throw Error(ErrorKind::config, place, format("'{}' is no name of a host", name));
    std::optional<int> slots = 1;
    for (std::string word; words >> word;) {
      if (word.starts_with("slots=")) slots = positive(std::string_view(word).substr(6));
      if (!slots ||
          (!word.starts_with("slots=") && !word.starts_with("max_slots=") && !word.starts_with("max-slots="))) {
        throw Error(ErrorKind::config, place, format("'{}' is not understood", word),
                    "a line of a hostfile is a name and slots=N");
      }
    }
    hosts.add(name, *slots);
  }
  std::vector<Host> found = hosts.take();
  if (found.empty()) throw Error(ErrorKind::config, Place{file, 0, 0}, "names no host");
  return found;
}

std::vector<Host> read_hostfile(const std::string& path) {
  constexpr std::int64_t most = 16'000'000;
  return parse_hostfile(read_file(path, most, {ErrorKind::config, "see cluster.hostfile"}), path);
}

std::optional<std::vector<int>> expand_counts(std::string_view text) {
  std::vector<int> counts;
  std::int64_t sum = 0;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    std::string_view item = text.substr(begin, end - begin);
    std::optional<int> times = 1;
    if (const std::size_t repeat = item.find("(x"); repeat != std::string_view::npos && item.back() == ')') {
      times = positive(item.substr(repeat + 2, item.size() - repeat - 3));
      item = item.substr(0, repeat);
    }
    const std::optional<int> count = positive(item);
    if (!count || !times || (sum += std::int64_t{*count} * *times) > most_slots) return {};
    counts.insert(counts.end(), static_cast<std::size_t>(*times), *count);
    begin = end + 1;
  }
  return counts;
}

std::vector<std::string> expand_names(std::string_view text) {
  std::vector<std::string> names;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t name_end = std::min(text.find_first_of("[,", at), text.size());
    const std::string stem(text.substr(at, name_end - at));
    at = name_end + 1;
    if (name_end == text.size() || text[name_end] == ',') {
      names.push_back(stem);
      continue;
    }
    const std::size_t list_end = text.find(']', at);
    if (list_end == std::string_view::npos) return {};
    std::istringstream ranges{std::string(text.substr(at, list_end - at))};
    for (std::string range; std::getline(ranges, range, ',');) {
      const std::size_t dash = std::min(range.find('-'), range.size());
      const std::string first = range.substr(0, dash), last = dash < range.size() ? range.substr(dash + 1) : first;
      const auto low = whole_number(first), high = whole_number(last);
      if (!low || !high || *high < *low || names.size() + static_cast<std::size_t>(*high - *low) > most_slots ||
          stem.size() + first.size() > longest_name) {
        return {};
      }
      for (int number = *low; number <= *high; ++number) {
        names.push_back(stem + format("{:0{}}", number, first.size()));
      }
    }
    at = list_end + 1;
    if (at < text.size() && text[at++] != ',') return {};  // a name in two parts
  }
  const bool good = names.size() <= most_slots && std::all_of(names.begin(), names.end(), is_host_name);
  return good ? names : std::vector<std::string>{};
}

namespace {

[[noreturn]] void refuse_variable(const char* name, const std::string& value, const std::string& what) {
  throw Error(ErrorKind::config, format("{} is '{}', and {}", name, terminal_word(value.substr(0, 40)), what),
              "SLURM sets this variable: unset it, and SLURM_JOB_ID, if no job of SLURM runs here");
}

// The tasks of each node, as far as a job tells them. Throws Error{config} if no job can have as many.
std::vector<int> tasks_of_nodes(const Variables& variables) {
  constexpr const char *tasks_name = "SLURM_TASKS_PER_NODE", *nodes_name = "SLURM_JOB_NUM_NODES";
  const std::string tasks = variables.text(tasks_name), nodes = variables.text(nodes_name);
  if (auto counts = expand_counts(tasks)) return std::move(*counts);
  if (!tasks.empty()) refuse_variable(tasks_name, tasks, format("a job has counts of up to {} tasks", most_slots));
  const std::optional<int> count = nodes.empty() ? 1 : positive(nodes);
  if (!count) refuse_variable(nodes_name, nodes, format("a job has 1 to {} nodes", most_slots));
  return std::vector<int>(static_cast<std::size_t>(*count), 1);
}

}  // namespace

std::optional<SlurmJob> find_slurm_job(const Variables& variables) {
  if (!variables.has("SLURM_JOB_ID")) return {};
  return SlurmJob{tasks_of_nodes(variables), expand_names(variables.text("SLURM_JOB_NODELIST"))};
}

}  // namespace trainctl
