// Parses lists of hosts.
#include "parallel/launch/hosts.h"

#include <unistd.h>

#include <algorithm>
#include <array>
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

constexpr std::size_t max_name_length = 255;  // limit on the length of a host name

// Parses a whole number of at least 0; empty if the text is not such a number.
std::optional<int> whole_number(std::string_view text) {
  int value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size() || value < 0) return {};
  return value;
}

// Parses a number from 1 to max_slots; empty if the text is not such a number.
std::optional<int> positive(std::string_view text) {
  const std::optional<int> value = whole_number(text);
  return value && *value >= 1 && *value <= max_slots ? value : std::nullopt;
}

// Hosts in the order in which they are first named.
class HostList {
 public:
  void add(std::string_view name, int slots) {
    const auto [location, is_new] = indices_.emplace(name, hosts_.size());
    if (is_new) hosts_.push_back({std::string(name), 0});
    int& sum = hosts_[location->second].slots;
    sum = std::min(sum + slots, max_slots + 1);  // total_slots() reports an excess
  }
  std::vector<Host> take() { return std::move(hosts_); }

 private:
  std::vector<Host> hosts_;
  std::unordered_map<std::string, std::size_t> indices_;
};

// Returns the words of a line of a hostfile; each '=' is a separate word.
std::vector<std::string> words_of_line(const std::string& line) {
  std::string spaced;
  for (const char c : line) spaced += c == '=' ? std::string(" = ") : std::string(1, c);
  std::istringstream stream(spaced);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

enum class HostKey { slots, max_slots, user };

// Recognizes the keys of OpenMPI's hostfiles that trainctl uses. In "max-slots" and similar keys OpenMPI also accepts
// '_'.
std::optional<HostKey> host_key(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  for (const std::string unit : {"slots", "cpus", "cpu", "count"}) {
    if (name == unit) return HostKey::slots;
    if (name == "max-" + unit || name == unit + "-max") return HostKey::max_slots;
  }
  if (name == "username" || name == "user-name" || name == "user") return HostKey::user;
  return {};
}

// Parses the host of a line; empty if the line is empty or a comment. Throws Error{config} without a location.
std::optional<Host> read_host_line(const std::string& line) {
  const std::vector<std::string> words = words_of_line(line.substr(0, line.find('#')));
  if (words.empty()) return {};
  Host host{words.front()};
  if (!is_host_name(host.name)) throw Error(ErrorKind::config, format("'{}' is not a valid host name", host.name));
  for (std::size_t i = 1; i < words.size(); i += 3) {
    const std::optional<HostKey> key = host_key(words[i]);
    if (!key || i + 1 == words.size() || words[i + 1] != "=")
      throw Error(ErrorKind::config, format("'{}' is not a known key, or has no '='", words[i]));
    const std::string value = i + 2 < words.size() ? words[i + 2] : "";
    const std::optional<int> count = positive(value);
    if (key != HostKey::user && !count) {
      throw Error(ErrorKind::config,
                  format("{} is '{}', but must be a number from 1 to {}", words[i], value, max_slots));
    }
    if (key == HostKey::slots) host.slots = *count;
    if (key == HostKey::user) host.name = value + "@" + host.name;
    if (!is_host_name(host.name)) throw Error(ErrorKind::config, format("'{}' is not a valid user name", value));
  }
  return host;
}

std::string_view without_spaces(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0) text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) text.remove_suffix(1);
  return text;
}

}  // namespace

bool is_host_name(std::string_view text) {
  const auto is_name = [](std::string_view part) {
    return !part.empty() && part.size() <= max_name_length && part.front() != '-' &&
           std::all_of(part.begin(), part.end(),
                       [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '.' || c == '_'; });
  };
  const std::size_t at = text.find('@');
  return at == std::string_view::npos ? is_name(text) : is_name(text.substr(0, at)) && is_name(text.substr(at + 1));
}

std::string this_host() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

std::string without_user(const std::string& host) { return host.substr(host.find('@') + 1); }

int total_slots(const std::vector<Host>& hosts) {
  std::int64_t sum = 0;
  for (const Host& host : hosts) sum += host.slots;
  if (sum <= max_slots) return static_cast<int>(sum);
  throw Error(ErrorKind::config,
              format("the hosts have {} slots in total, but at most {} are allowed", sum, max_slots));
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
      throw Error(ErrorKind::config, format("'{}' in '{}' is not a valid host", item, text),
                  "write hosts as node1:8,node2:8");
    }
    hosts.add(name, *slots);
    begin = end + 1;
  }
  return hosts.take();
}

std::vector<Host> parse_hostfile(std::string_view text, const std::string& file) {
  constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";  // some Windows editors write it first
  if (text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
  HostList hosts;
  std::istringstream lines{std::string(text)};
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    try {
      if (const std::optional<Host> host = read_host_line(line)) hosts.add(host->name, host->slots);
    } catch (const Error& error) {
      throw Error(error.kind(), SourceLocation{file, number, 1}, error.what(),
                  "write each line of a hostfile as NAME slots=N");
    }
  }
  std::vector<Host> found = hosts.take();
  if (found.empty()) throw Error(ErrorKind::config, SourceLocation{file, 0, 0}, "the hostfile names no host");
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
    if (!count || !times || (sum += std::int64_t{*count} * *times) > max_slots) return {};
    counts.insert(counts.end(), static_cast<std::size_t>(*times), *count);
    begin = end + 1;
  }
  return counts;
}

std::vector<std::string> expand_names(std::string_view text) {
  constexpr std::size_t max_bytes = 64 << 20;  // of the names of ranges, which may be far longer than the text
  std::vector<std::string> names;
  std::size_t bytes = 0;
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
      if (!low || !high || *high < *low) return {};
      const std::size_t count = static_cast<std::size_t>(*high - *low) + 1, length = stem.size() + first.size();
      if (length > max_name_length || names.size() + count > max_slots || (bytes += count * length) > max_bytes) {
        return {};
      }
      for (std::int64_t number = *low; number <= *high; ++number) {
        names.push_back(stem + format("{:0{}}", number, first.size()));
      }
    }
    at = list_end + 1;
    if (at < text.size() && text[at++] != ',') return {};  // the rest of a name after ] is not supported
  }
  const bool good = names.size() <= max_slots && std::all_of(names.begin(), names.end(), is_host_name);
  return good ? names : std::vector<std::string>{};
}

namespace {

[[noreturn]] void refuse_variable(const char* name, const std::string& value, const std::string& what) {
  throw Error(ErrorKind::config, format("{} is '{}', but {}", name, terminal_word(value.substr(0, 40)), what),
              "SLURM sets this variable: unset it, and SLURM_JOB_ID, if this is not a SLURM job");
}

// Whether a text is a list of nodes as SLURM writes it, such as a,n[1-3,07]-ib. Such a list may be one that
// expand_names() does not support.
bool is_node_list(std::string_view text) {
  std::size_t begin = 0;  // of the present item, or of the present range within brackets
  bool in_brackets = false;
  for (std::size_t at = 0; at <= text.size(); ++at) {
    const char c = at < text.size() ? text[at] : ',';
    if (in_brackets && (c == ',' || c == ']') && at < text.size()) {
      const std::string_view part = text.substr(begin, at - begin);
      const std::size_t dash = std::min(part.find('-'), part.size());
      const auto low = whole_number(part.substr(0, dash));
      const auto high = dash < part.size() ? whole_number(part.substr(dash + 1)) : low;
      if (!low || !high || *high < *low) return false;
      begin = at + 1;
      in_brackets = c == ',';
      if (!in_brackets) begin = std::string_view::npos;  // the rest of the item may be empty
    } else if (in_brackets) {
      if (at == text.size()) return false;
    } else if (c == '[') {
      in_brackets = true;
      begin = at + 1;
    } else if (c == ',') {
      if (begin == at) return false;
      begin = at + 1;
    } else if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-' && c != '.' && c != '_') {
      return false;
    }
  }
  return true;
}

// Returns the names of the job's nodes; empty if they are unknown. Throws Error{config} for a text that is no list.
std::vector<std::string> names_of_nodes(const Variables& variables) {
  constexpr const char* name = "SLURM_JOB_NODELIST";
  const std::string text = variables.text(name);
  if (!text.empty() && !is_node_list(text)) refuse_variable(name, text, "it must be names of nodes such as a,n[1-3]");
  return expand_names(text);
}

// Returns the number of tasks of each node; empty if the job's variables do not define it. Throws Error{config} if a
// number exceeds the limits of a job.
std::vector<int> tasks_of_nodes(const Variables& variables) {
  constexpr const char *tasks_name = "SLURM_TASKS_PER_NODE", *nodes_name = "SLURM_JOB_NUM_NODES";
  const std::string tasks = variables.text(tasks_name), nodes = variables.text(nodes_name);
  if (auto counts = expand_counts(tasks)) return std::move(*counts);
  if (!tasks.empty()) {
    const bool of_counts = tasks.find_first_not_of("0123456789,(x)") == std::string::npos;
    refuse_variable(tasks_name, tasks,
                    of_counts ? format("it must have the form 2(x3),1 for a job of at most {} tasks", max_slots)
                              : "it must be counts of tasks such as 2(x3),1");
  }
  const std::optional<int> count = nodes.empty() ? 1 : positive(nodes);
  if (!count) refuse_variable(nodes_name, nodes, format("a job has 1 to {} nodes", max_slots));
  return std::vector<int>(static_cast<std::size_t>(*count), 1);
}

}  // namespace

void SlurmJob::leave_out(const std::string& node) {
  const auto found = std::find(names.begin(), names.end(), node);
  if (found == names.end() || names.size() != slots.size()) return;
  slots.erase(slots.begin() + (found - names.begin()));
  names.erase(found);
  is_part = true;
}

std::optional<SlurmJob> find_slurm_job(const Variables& variables) {
  if (!variables.has("SLURM_JOB_ID")) return {};
  return SlurmJob{tasks_of_nodes(variables), names_of_nodes(variables)};
}

}  // namespace trainctl
