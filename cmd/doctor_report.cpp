// Writing the doctor's findings.
#include "cmd/doctor_report.h"

#include <algorithm>
#include <set>

#include "cmd/table.h"
#include "core/base/format.h"
#include "core/base/json.h"

namespace trainctl {
namespace {

bool stops(const std::vector<Problem>& problems) {
  return std::any_of(problems.begin(), problems.end(), [](const Problem& problem) { return problem.stops_a_run; });
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

std::string ranks_of(const std::vector<Json>& facts, const std::string& host, const std::string& uuid) {
  std::string ranks;
  for (const Json& f : facts) {
    if (text(f["host"]) != host || text(f["gpu"], "") != uuid) continue;
    ranks += format("{}{}", ranks.empty() ? "" : ", ", f["rank"].get<int>());
  }
  return ranks;
}

// Its GPUs, with how they reach each other.
std::string gpu_table(const std::vector<Json>& facts, const Json& f) {
  std::vector<Table::Column> columns = {{"  GPU"}, {"model"}, {"memory", Table::Align::right},
                                        {"UUID"},  {"bus"},   {"rank"}};
  const std::size_t linked = f["links"].size();
  for (std::size_t other = 0; linked > 1 && other < linked; ++other) columns.push_back({format("to {}", other)});
  Table table(columns);
  for (std::size_t i = 0; i < f["gpus"].size(); ++i) {
    const Json& gpu = f["gpus"][i];
    const std::string rank = ranks_of(facts, f["host"], gpu["uuid"]);
    std::vector<std::string> cells = {
        format("  {}", i),          text(gpu["name"]),
        bytes(gpu["memory_bytes"]), text(gpu["uuid"]),
        text(gpu["pci_bus_id"]),    !gpu["visible"].get<bool>() ? "not visible" : rank.empty() ? "-" : rank};
    for (std::size_t other = 0; linked > 1 && other < linked; ++other)
      cells.push_back(i < linked ? text(f["links"][i][other]) : "");
    table.add(std::move(cells));
  }
  return table.text();
}

std::string host_text(const std::vector<Json>& facts, const Json& f) {
  const auto here = std::count_if(facts.begin(), facts.end(), [&f](const Json& o) { return o["host"] == f["host"]; });
  std::string all = format("{}, {} rank{}\n", text(f["host"]), here, here == 1 ? "" : "s");
  all += line("trainctl", text(f["version"]));
  all += line("MPI", format("{}, built with {}; mpirun: {}", text(f["mpi"]["found"]), text(f["mpi"]["built"]),
                            text(f["mpi"]["mpirun"])));
  all += line("processor", format("{}; of the host: {} cores", text(f["processor"]), f["cores"].get<int>()));
  all += line("memory", format("{}, {} free; /dev/shm: {} free; may be locked: {}", bytes(f["memory_bytes"]["total"]),
                               bytes(f["memory_bytes"]["free"]), bytes(f["shared_memory_free_bytes"]),
                               bytes(f["locked_memory_limit_bytes"], "all")));
  const Json& folder = f["run_directory"];
  all += line("run directory", format("in {}, {} free{}", text(folder["path"]), bytes(folder["free_bytes"]),
                                      folder["writable"].get<bool>() ? "" : ", not writable"));
  const std::string why = text(f["driver"]["why"], "");
  all += line("NVIDIA driver", why.empty() ? text(f["driver"]["version"]) : why);
  all += line("CUDA", cuda_line(f["cuda"]));
  if (!f["gpus"].empty()) all += gpu_table(facts, f);
  return all;
}

}  // namespace

std::string doctor_json(const std::vector<Json>& facts, const std::vector<Problem>& problems) {
  Json listed = Json::array();
  for (const Problem& problem : problems) {
    listed.push_back({{"error", problem.stops_a_run},
                      {"where", problem.where},
                      {"message", problem.message},
                      {"remedy", problem.remedy}});
  }
  return Json{{"ok", !stops(problems)}, {"ranks", facts}, {"problems", listed}}.dump() + "\n";
}

std::string doctor_text(const std::vector<Json>& facts, const std::vector<Problem>& problems) {
  std::string all;
  std::set<std::string> seen;
  for (const Json& f : facts) {
    if (seen.insert(f["host"]).second) all += host_text(facts, f) + "\n";
  }
  for (const Problem& problem : problems) {
    all += format("{}: {}{}{}\n", problem.stops_a_run ? "error" : "note",
                  problem.where.empty() ? "" : problem.where + ": ", problem.message,
                  problem.remedy.empty() ? "" : "\n  -> " + problem.remedy);
  }
  return all + (stops(problems) ? "a run would not start\n" : "a run would start\n");
}

}  // namespace trainctl
