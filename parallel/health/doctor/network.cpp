// Measures the network between every two hosts, in rounds of disjoint pairs.
#include "parallel/health/doctor/doctor.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "core/backend/select.h"
#include "core/base/json.h"
#include "parallel/bench/collectives.h"
#include "parallel/comm/select.h"
#include "parallel/comm/text.h"
#include "parallel/health/doctor/pairs.h"

namespace trainctl {
namespace {

// Returns the first rank of each host, in the order of ranks.
std::vector<int> first_ranks(const std::vector<std::string>& hosts) {
  std::vector<int> first;
  std::set<std::string> seen;
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
    if (seen.insert(hosts[rank]).second) first.push_back(static_cast<int>(rank));
  }
  return first;
}

Json measure_pair(Communicator& pair, Backend& backend, Stream& stream) {
  const auto rows = bench_collective(pair, backend, stream,
                                     {.first_bytes = 4 << 10, .last_bytes = 16 << 20, .factor = 4 << 10, .batches = 3});
  return {{"small_seconds", rows.front().seconds},
          {"large_seconds", rows.back().seconds},
          {"large_bytes", rows.back().bytes}};
}

}  // namespace

Json measure_network(World& world, Stream& stream) {
  const std::vector<std::string>& hosts = world.hosts();
  const std::vector<int> first = first_ranks(hosts);
  const int count = static_cast<int>(first.size());
  Json pairs = Json::array();
  if (count < 2) return pairs;
  const auto backend = make_backend("cpu");
  const auto found = std::find(first.begin(), first.end(), world.rank());
  const int own = found == first.end() ? -1 : static_cast<int>(found - first.begin());
  for (int round = 0; round < rounds_of(count); ++round) {
    const int other = own < 0 ? count : opponent(own, round, count);
    const bool plays = other < count;
    const auto pair = world.communicator().split(plays ? std::min(own, other) : count + world.rank(), world.rank());
    if (!plays) continue;
    Json result = measure_pair(*pair, *backend, *backend->compute_stream());
    if (own > other) continue;
    const auto host = [&](int player) {
      return hosts[static_cast<std::size_t>(first[static_cast<std::size_t>(player)])];
    };
    result["hosts"] = {host(own), host(other)};
    pairs.push_back(std::move(result));
  }
  Json all = Json::array();
  for (const std::string& text : gather_texts(json_text(pairs), world.communicator(), stream)) {
    for (Json& pair : parse_json(text)) all.push_back(std::move(pair));
  }
  return all;
}

}  // namespace trainctl
