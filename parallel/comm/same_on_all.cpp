// Compares values over ranks: first their hashes, and their texts only if these differ.
#include "parallel/comm/same_on_all.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/hash.h"
#include "parallel/comm/text.h"

namespace trainctl {
namespace {

constexpr std::size_t max_differences = 8;    // number of differences that are shown
constexpr std::size_t max_value_bytes = 120;  // number of bytes that are shown of a value
constexpr char terminator = '\0';             // ends each name and value, see without_terminators()

std::string without_terminators(std::string text) {
  std::replace(text.begin(), text.end(), terminator, ' ');
  return text;
}

std::string joined(const RankValues& values) {
  std::string text;
  for (const auto& [name, value] : values) {
    text += without_terminators(name) + terminator + without_terminators(value) + terminator;
  }
  return text;
}

RankValues split(const std::string& text) {
  RankValues values;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t name_end = text.find(terminator, at);
    const std::size_t value_end = text.find(terminator, name_end + 1);
    values.emplace_back(text.substr(at, name_end - at), text.substr(name_end + 1, value_end - name_end - 1));
    at = value_end + 1;
  }
  return values;
}

std::string shown(const std::string* value) {
  if (value == nullptr) return "absent";
  return value->size() <= max_value_bytes ? *value : value->substr(0, max_value_bytes) + "...";
}

std::int64_t minimum_over_ranks(std::int64_t mine, Communicator& world, Stream& stream) {
  world.all_reduce({&mine, DType::int64, 1}, Reduction::minimum, stream);
  stream.synchronize();
  return mine;
}

void add_node(RankValues& values, const Node& node, const std::string& path) {
  const std::string prefix = path.empty() ? "" : path + ".";
  if (node.is_map() && !node.entries.empty()) {
    for (const Node::Entry& entry : node.entries) add_node(values, entry.value, prefix + entry.key);
  } else if (node.is_sequence() && !node.items.empty()) {
    for (std::size_t i = 0; i < node.items.size(); ++i) add_node(values, node.items[i], prefix + std::to_string(i));
  } else {
    const bool absolute_path = node.is_scalar() && node.text.starts_with('/');
    values.emplace_back(path, absolute_path ? "a path" : flow_text(node));
  }
}

}  // namespace

void add_document(RankValues& values, const Node& document) { add_node(values, document, ""); }

std::vector<std::string> describe_differences(const RankValues& first, const RankValues& other, int rank,
                                              const std::string& host) {
  std::map<std::string_view, const std::string*> theirs;
  for (const auto& [name, value] : other) theirs.emplace(name, &value);
  std::vector<std::string> lines;
  const auto add = [&](const std::string& name, const std::string* before, const std::string* now) {
    lines.push_back(format("{} is {} on rank 0 and {} on rank {} ({})", name, shown(before), shown(now), rank, host));
  };
  for (const auto& [name, value] : first) {
    const auto found = theirs.find(name);
    const std::string* now = found == theirs.end() ? nullptr : found->second;
    if (now == nullptr || *now != value) add(name, &value, now);
    if (now != nullptr) theirs.erase(found);
  }
  for (const auto& [name, value] : other) {
    if (theirs.contains(name)) add(name, nullptr, &value);
  }
  return lines;
}

void require_same_on_all(const RankValues& mine, const std::vector<std::string>& hosts, Communicator& world,
                         Stream& stream) {
  const std::string text = joined(mine);
  const auto hash = static_cast<std::int64_t>(xxh3(text.data(), text.size()));
  std::array<std::int64_t, 2> bounds{hash, ~hash};  // the maximum of the complements gives the smallest hash
  world.all_reduce({bounds.data(), DType::int64, 2}, Reduction::maximum, stream);
  stream.synchronize();
  if (bounds[0] == ~bounds[1]) return;

  const std::string text_of_first = broadcast_text(text, 0, world, stream);
  const bool differs = text_of_first != text;
  std::int64_t differing_ranks = differs ? 1 : 0;
  world.all_reduce({&differing_ranks, DType::int64, 1}, Reduction::sum, stream);
  const std::int64_t none = std::numeric_limits<std::int64_t>::max();
  const auto reporting_rank = static_cast<int>(minimum_over_ranks(differs ? world.rank() : none, world, stream));
  std::string message = "the ranks were started differently:";
  if (reporting_rank == world.rank()) {
    const std::vector<std::string> lines = describe_differences(split(text_of_first), split(text), reporting_rank,
                                                                hosts[static_cast<std::size_t>(reporting_rank)]);
    for (std::size_t i = 0; i < std::min(lines.size(), max_differences); ++i) message += "\n  " + lines[i];
    if (lines.size() > max_differences)
      message += format("\n  and {} more differences", lines.size() - max_differences);
    if (differing_ranks > 1) message += format("\n  and {} more ranks differ from rank 0", differing_ranks - 1);
  }
  throw CollectiveError(ErrorKind::config, broadcast_text(message, reporting_rank, world, stream),
                        "give all ranks the same trainctl, config, options and data (copy files with cp -p or rsync "
                        "-a, which keep their modification times)");
}

}  // namespace trainctl
