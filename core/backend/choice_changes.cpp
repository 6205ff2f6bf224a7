// The comparison and the hash of kernel choices.
#include "core/backend/choice_changes.h"

#include <map>

#include "core/base/format.h"
#include "core/base/hash.h"

namespace trainctl {
namespace {

std::map<std::string_view, std::string_view> by_key(std::string_view text) {
  std::map<std::string_view, std::string_view> choices;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const std::size_t tab = line.find('\t');
    if (tab != std::string_view::npos) choices[line.substr(0, tab)] = line.substr(tab + 1);
  }
  return choices;
}

}  // namespace

std::vector<ChangedChoice> changed_choices(std::string_view before, std::string_view now) {
  const auto old = by_key(before);
  std::vector<ChangedChoice> changed;
  for (const auto& [key, implementation] : by_key(now)) {
    const auto found = old.find(key);
    if (found == old.end() || found->second == implementation) continue;
    changed.push_back({std::string(key), std::string(found->second), std::string(implementation)});
  }
  return changed;
}

std::string kernel_hash(std::string_view device, std::string_view choices) {
  const std::string text = format("{}\n{}", device, choices);
  return format("{:016x}", xxh3(text.data(), text.size()));
}

}  // namespace trainctl
