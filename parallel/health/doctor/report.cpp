// Formats the doctor's findings.
#include "parallel/health/doctor/doctor.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "core/base/format.h"
#include "core/base/json.h"
#include "core/base/json_fwd.h"
#include "core/base/table.h"
#include "parallel/health/doctor/gpus.h"

namespace trainctl {
namespace {

Json as_json(const Problem& problem) {
  return {{"error", problem.stops_a_run},
          {"where", problem.where},
          {"message", problem.message},
          {"remedy", problem.remedy}};
}

std::string text(const Json& value, const char* otherwise = "none") {
  return value.is_string() ? value.get<std::string>() : otherwise;
}

std::string bytes(const Json& value, const char* otherwise = "not known") {
  return value.is_number() ? byte_text(value.get<std::int64_t>()) : otherwise;
}

std::string line(const char* title, const std::string& value) { return format("  {:<15}{}\n", title, value); }

std::string cuda_line(const Json& cuda) {
  if (!cuda["module"].get<bool>()) return "not usable: " + text(cuda["why"]);
  std::string all;
  for (const Json& library : cuda["libraries"]) {
    const std::string built = text(library["built"], ""), found = text(library["found"], "");
    all += format("{}{} {}", all.empty() ? "" : ", ", text(library["name"]), found.empty() ? "not found" : found);
    if (!built.empty() && built != found) all += format(" (built with {})", built);
  }
  return all;
}

// Returns the table of the GPUs of all hosts: the ranks that use them, and the connections between GPUs of one host.
std::string gpu_table(const std::vector<Json>& info, const std::vector<std::string>& hosts) {
  std::vector<std::pair<std::string, std::vector<HostGpu>>> all;
  std::size_t max_gpus = 0;
  for (const std::string& host : hosts) {
    all.emplace_back(host, gpus_of_host(info, host));
    max_gpus = std::max(max_gpus, all.back().second.size());
  }
  if (max_gpus == 0) return "";
  std::vector<TextTable::Column> columns = {{"host"}, {"GPU"}, {"model"}, {"memory", TextTable::Align::right},
                                            {"UUID"}, {"bus"}, {"rank"}};
  for (std::size_t other = 0; max_gpus > 1 && other < max_gpus; ++other) columns.push_back({format("to {}", other)});
  TextTable table(columns);
  for (const auto& [host, gpus] : all) {
    for (std::size_t i = 0; i < gpus.size(); ++i) {
      const HostGpu& gpu = gpus[i];
      std::vector<std::string> cells = {host,
                                        format("{}", i),
                                        text(gpu.info["name"]),
                                        bytes(gpu.info["memory_bytes"]),
                                        text(gpu.info["uuid"]),
                                        text(gpu.info["pci_bus_id"]),
                                        !gpu.ranks.empty() ? gpu.ranks
                                        : gpu.visible      ? "-"
                                                           : "not visible"};
      if (max_gpus > 1) cells.insert(cells.end(), gpu.links.begin(), gpu.links.end());
      cells.resize(columns.size());
      table.add(std::move(cells));
    }
  }
  return table.text() + "\n";
}

std::string host_text(const std::vector<Json>& info, const Json& rank) {
  const auto here =
      std::count_if(info.begin(), info.end(), [&rank](const Json& o) { return o["host"] == rank["host"]; });
  std::string all = format("{}, {} rank{}\n", text(rank["host"]), here, here == 1 ? "" : "s");
  all += line("trainctl", text(rank["version"]));
  all += line("MPI", format("{}, built with {}; mpirun: {}", text(rank["mpi"]["found"]), text(rank["mpi"]["built"]),
                            text(rank["mpi"]["mpirun"])));
  all += line("processor",
              format("{}; {} usable on the host", text(rank["processor"]), counted(rank["cores"].get<int>(), "core")));
  all += line("memory", format("{}, {} free; /dev/shm: {} free; lockable: {}", bytes(rank["memory_bytes"]["total"]),
                               bytes(rank["memory_bytes"]["free"]), bytes(rank["shared_memory_free_bytes"]),
                               bytes(rank["locked_memory_limit_bytes"], "all")));
  const Json& folder = rank["run_directory"];
  all += line("run directory", format("in {}, {} free{}", text(folder["path"]), bytes(folder["free_bytes"]),
                                      folder["writable"].get<bool>() ? "" : ", not writable"));
  const std::string why = text(rank["driver"]["why"], "");
  all += line("NVIDIA driver", why.empty() ? text(rank["driver"]["version"]) : why);
  all += line("CUDA", cuda_line(rank["cuda"]));
  return all;
}

// Returns the table of the network between every two hosts.
std::string network_table(const Json& pairs) {
  if (pairs.empty()) return "";
  TextTable table({{"hosts"},
                   {"all-reduce of 4 KiB", TextTable::Align::right},
                   {"of 16 MiB", TextTable::Align::right},
                   {"moves", TextTable::Align::right}});
  for (const Json& pair : pairs) {
    const double bytes = pair["large_bytes"], seconds = pair["large_seconds"];
    table.add({format("{}, {}", text(pair["hosts"][0]), text(pair["hosts"][1])),
               seconds_text(pair["small_seconds"].get<double>()), seconds_text(seconds),
               byte_text(std::llround(bytes / seconds)) + "/s"});
  }
  return table.text() + "\n";
}

std::string problems_text(std::span<const Problem> problems) {
  std::string all;
  for (const Problem& problem : problems) {
    all += format("{}: {}{}{}\n", problem.stops_a_run ? "error" : "note",
                  problem.where.empty() ? "" : problem.where + ": ", problem.message,
                  problem.remedy.empty() ? "" : "\n  -> " + problem.remedy);
  }
  return all;
}

}  // namespace

std::string doctor_json(const std::vector<Json>& info, const std::vector<Problem>& problems) {
  Json listed = Json::array();
  for (const Problem& problem : problems) listed.push_back(as_json(problem));
  return json_line({{"ok", !stops(problems)}, {"ranks", info}, {"problems", listed}});
}

std::string with_problem(const std::string& report, const Problem& problem) {
  Json all = parse_json(report);
  if (problem.stops_a_run) all["ok"] = false;
  all["problems"].push_back(as_json(problem));
  return json_line(all);
}

std::string findings_text(const std::vector<Json>& info, const std::vector<Problem>& problems) {
  std::string all;
  std::vector<std::string> hosts;
  for (const Json& rank : info) {
    const std::string host = rank["host"];
    if (std::find(hosts.begin(), hosts.end(), host) != hosts.end()) continue;
    hosts.push_back(host);
    all += host_text(info, rank) + "\n";
  }
  return all + gpu_table(info, hosts) + network_table(info.front().value("network", Json::array())) +
         problems_text(problems);
}

std::string verdict_text(const std::vector<Problem>& problems, std::size_t shown) {
  return problems_text(std::span(problems).subspan(shown)) +
         (stops(problems) ? "a run would not start\n" : "a run would start\n");
}

}  // namespace trainctl
