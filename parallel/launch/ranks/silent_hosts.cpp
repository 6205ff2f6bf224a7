// Looks up the hosts of the ranks that an error of a communicator names.
#include "parallel/launch/ranks/silent_hosts.h"

#include <regex>
#include <set>

#include "core/base/format.h"

namespace trainctl {
namespace {

struct SilentRank {
  int number = 0;
  bool has_host = false;  // the error names it, too
};

// "rank 2 did not answer", "ranks 2, 3 did not answer", "rank 0 on h1, rank 1 on h2 did not arrive"
std::vector<SilentRank> named_in(const std::string& error) {
  static const std::regex named(R"(ranks? ([0-9].*?) did not (?:arrive|answer))");
  static const std::regex one(R"((?:^|, |rank )([0-9]{1,9})( on [^ ,]+)?)");
  std::smatch match;
  std::vector<SilentRank> ranks;
  if (!std::regex_search(error, match, named)) return ranks;
  const std::string names = match[1];
  for (std::sregex_iterator each(names.begin(), names.end(), one), end; each != end; ++each) {
    ranks.push_back({std::stoi((*each)[1]), (*each)[2].length() > 0});
  }
  return ranks;
}

}  // namespace

std::vector<int> silent_ranks(const std::string& error) {
  std::vector<int> numbers;
  for (const SilentRank& rank : named_in(error)) numbers.push_back(rank.number);
  return numbers;
}

std::string silent_hosts(const std::string& error, int own, const std::vector<std::string>& hosts, bool network_up) {
  std::set<std::string> others(hosts.begin(), hosts.end());
  const std::string& here = hosts[static_cast<std::size_t>(own)];
  others.erase(here);
  const std::vector<SilentRank> ranks = named_in(error);
  if (others.empty() || ranks.empty()) return "";
  if (!network_up) return format("; it is {} that is cut off: no network interface of it is up", here);
  std::string text;
  std::set<std::string> silent;
  for (const SilentRank& rank : ranks) {
    if (rank.number >= static_cast<int>(hosts.size())) return "";
    const std::string& host = hosts[static_cast<std::size_t>(rank.number)];
    if (!rank.has_host) text += format("; rank {} runs on {}", rank.number, host);
    silent.insert(host);
  }
  silent.erase(here);
  if (others.size() > 1 && silent == others) text += format("; no other host answers: {} itself may be cut off", here);
  return text;
}

}  // namespace trainctl
