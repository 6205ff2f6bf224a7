// Looks up the hosts of the ranks that an error of a communicator names.
#include "parallel/launch/silent_hosts.h"

#include <regex>
#include <set>

#include "core/base/format.h"

namespace trainctl {

std::string silent_hosts(const std::string& error, int own, const std::vector<std::string>& hosts, bool network_up) {
  // "rank 2 did not answer", "ranks 2, 3 did not answer", "rank 0 on h1, rank 1 on h2 did not arrive"
  static const std::regex named(R"(ranks? ([0-9].*?) did not (?:arrive|answer))");
  static const std::regex one(R"((?:^|, |rank )([0-9]+)( on [^ ,]+)?)");
  std::set<std::string> others(hosts.begin(), hosts.end());
  const std::string& here = hosts[static_cast<std::size_t>(own)];
  others.erase(here);
  std::smatch match;
  if (others.empty() || !std::regex_search(error, match, named)) return "";
  if (!network_up) return format("; it is {} that is cut off: no network interface of it is up", here);
  const std::string names = match[1];
  std::string text;
  std::set<std::string> silent;
  for (std::sregex_iterator each(names.begin(), names.end(), one), end; each != end; ++each) {
    const std::size_t rank = std::stoull((*each)[1]);
    if (rank >= hosts.size()) return "";
    if ((*each)[2].length() == 0) text += format("; rank {} runs on {}", rank, hosts[rank]);
    silent.insert(hosts[rank]);
  }
  silent.erase(here);
  if (others.size() > 1 && silent == others) text += format("; no other host answers: {} itself may be cut off", here);
  return text;
}

}  // namespace trainctl
