// Formats NCCL's choices of links as tables: the networks of the hosts, and the connections between ranks.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "core/base/format.h"
#include "core/base/json.h"
#include "core/base/table.h"
#include "parallel/health/doctor/doctor.h"
#include "parallel/health/doctor/text_of.h"

namespace trainctl {
namespace {

std::string yes_no(const Json& value) { return !value.is_boolean() ? "not known" : value.get<bool>() ? "yes" : "no"; }

// Joins the first six of the texts, followed by the number of the others.
std::string first_of(const std::vector<std::string>& texts) {
  constexpr std::size_t longest = 6;
  std::string all;
  for (std::size_t i = 0; i < texts.size() && i < longest; ++i) all += (i == 0 ? "" : ", ") + texts[i];
  if (texts.size() > longest) all += format(" and {} more", texts.size() - longest);
  return all;
}

// Says which ranks' choices are not shown, and why.
std::string not_shown_text(const std::vector<Json>& info) {
  std::map<std::string, std::vector<std::string>> ranks_of;
  for (const Json& rank : info) {
    if (!rank.contains("nccl")) continue;
    const std::string why = text_of(rank["nccl"]["why_not_shown"]);
    if (!why.empty()) ranks_of[why].push_back(format("{}", rank["rank"].get<int>()));
  }
  std::string all;
  for (const auto& [why, ranks] : ranks_of) {
    all += format("NCCL's choices of links on rank{} {} are not shown: {}\n", ranks.size() == 1 ? "" : "s",
                  first_of(ranks), why);
  }
  return all;
}

// Returns the table of the networks between hosts; each host has the row of its first rank.
std::string networks_table(const std::vector<Json>& info) {
  TextTable table({{"host"}, {"NCCL"}, {"network"}, {"devices"}, {"GPUDirect RDMA"}, {"NVLink multicast"}});
  std::set<std::string> seen;
  for (const Json& rank : info) {
    const Json choices = rank.value("nccl", Json::object());
    if (!choices.contains("connections") || !seen.insert(rank["host"]).second) continue;
    std::vector<std::string> devices;
    for (const Json& device : choices["devices"]) devices.push_back(device);
    table.add({rank["host"], text_of(choices["version"]), text_of(choices["network"]), first_of(devices),
               yes_no(choices["gpudirect_rdma"]), yes_no(choices["nvlink_multicast"])});
  }
  return seen.empty() ? "" : table.text() + "\n";
}

// What a connection uses: its link, its device, and whether the device accesses the memory of the GPU.
std::string use_text(const Json& connection) {
  std::string use = connection["link"];
  if (connection["device"].is_string()) use += " " + text_of(connection["device"]);
  if (!connection["gpudirect_rdma"].is_boolean() || connection["link"] == "TCP") return use;
  return use + (connection["gpudirect_rdma"].get<bool>() ? ", GPUDirect RDMA" : ", host memory");
}

// Returns the table of the connections. A row has all pairs of ranks of a host, or on different hosts, that are
// connected in the same way.
std::string connections_table(const std::vector<Json>& info) {
  struct Row {
    std::set<std::pair<int, int>> pairs;
    int channels = 0;
  };
  std::map<std::tuple<std::string, std::string, std::string>, Row> rows;  // by host, use and NCCL's name
  for (const Json& rank : info) {
    for (const Json& connection : rank.value("nccl", Json::object()).value("connections", Json::array())) {
      const std::string host = connection["gpu_link"].is_null() ? "between hosts" : text_of(rank["host"]);
      Row& row = rows[{host, use_text(connection), connection["via"]}];
      const int from = connection["from"], to = connection["to"];
      row.pairs.insert(std::minmax(from, to));
      row.channels = std::max(row.channels, connection["channels"].get<int>());
    }
  }
  if (rows.empty()) return "";
  TextTable table(
      {{"host"}, {"ranks"}, {"data moves through"}, {"NCCL's name"}, {"channels", TextTable::Align::right}});
  for (const auto& [key, row] : rows) {
    std::vector<std::string> pairs;
    for (const auto& [one, other] : row.pairs) pairs.push_back(format("{}-{}", one, other));
    const auto& [host, use, via] = key;
    table.add({host, first_of(pairs), use, via, format("{}", row.channels)});
  }
  return table.text() + "\n";
}

}  // namespace

std::string nccl_text(const std::vector<Json>& info) {
  return networks_table(info) + connections_table(info) + not_shown_text(info);
}

}  // namespace trainctl
