// Merges the ranks' lists of GPUs.
#include "parallel/health/doctor/gpus.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/base/format.h"

namespace trainctl {

std::vector<HostGpu> gpus_of_host(const std::vector<Json>& info, const std::string& host) {
  std::vector<HostGpu> all;
  std::map<std::pair<std::string, std::string>, std::string> links;
  for (const Json& rank : info) {
    if (rank["host"] != host) continue;
    const Json& gpus = rank["gpus"];
    const Json rows = rank.value("links", Json::array());  // rows for the driver's GPUs, which come first
    for (std::size_t i = 0; i < gpus.size(); ++i) {
      const std::string uuid = gpus[i]["uuid"];
      auto known = std::find_if(all.begin(), all.end(), [&](const HostGpu& gpu) { return gpu.info["uuid"] == uuid; });
      if (known == all.end()) known = all.insert(all.end(), HostGpu{.info = gpus[i]});
      known->visible = known->visible || gpus[i].value("visible", false);
      if (rank["gpu"] == uuid)
        known->ranks += format("{}{}", known->ranks.empty() ? "" : ", ", rank["rank"].get<int>());
      for (std::size_t j = 0; i < rows.size() && j < rows[i].size(); ++j) {
        links[{uuid, gpus[j]["uuid"].get<std::string>()}] = rows[i][j];
      }
    }
  }
  for (HostGpu& gpu : all) {
    for (const HostGpu& other : all) {
      const auto link = links.find({gpu.info["uuid"], other.info["uuid"]});
      gpu.links.push_back(&gpu == &other ? "-" : link == links.end() ? "?" : link->second);
    }
  }
  return all;
}

}  // namespace trainctl
