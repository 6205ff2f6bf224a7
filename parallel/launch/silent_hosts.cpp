// Looks up the hosts of the ranks that an error of a communicator names.
#include "parallel/launch/silent_hosts.h"

#include <regex>
#include <set>
#include <sstream>

#include "core/base/format.h"

namespace trainctl {

std::string silent_hosts(const std::string& error, int own, const std::vector<std::string>& hosts) {
  static const std::regex named(R"(ranks? ([0-9]+(?:, [0-9]+)*) did not (?:arrive|answer))");
  std::set<std::string> others(hosts.begin(), hosts.end());
  const std::string& here = hosts[static_cast<std::size_t>(own)];
  others.erase(here);
  std::smatch match;
  if (others.empty() || !std::regex_search(error, match, named)) return "";
  std::istringstream words(match[1]);
  std::string text;
  std::set<std::string> silent;
  for (std::string word; std::getline(words, word, ',');) {
    const std::size_t rank = std::stoull(word);
    if (rank >= hosts.size()) return "";
    text += format("; rank {} runs on {}", rank, hosts[rank]);
    silent.insert(hosts[rank]);
  }
  silent.erase(here);
  if (others.size() > 1 && silent == others) text += format("; no other host answers: {} itself may be cut off", here);
  return text;
}

}  // namespace trainctl
