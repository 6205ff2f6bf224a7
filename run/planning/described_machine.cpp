// Finds and reads the file of a machine, and predicts the memory and the times of ranks there.
#include "run/planning/described_machine.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <vector>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/table.h"
#include "core/spec/reader.h"
#include "core/spec/suggestion.h"
#include "io/yaml/presets.h"
#include "io/yaml/yaml.h"
#include "parallel/plan/roofline.h"
#include "run/job/job.h"
#include "run/planning/planned_runs.h"

namespace trainctl {
namespace {

std::vector<std::string> machine_names() {
  std::vector<std::string> names;
  const auto folder = find_in_configs("machines");
  if (!folder) return names;
  for (const FolderEntry& entry : list_folder(folder->string(), {ErrorKind::config})) {
    const std::filesystem::path file = entry.name;
    if (file.extension() == ".yaml") names.push_back(file.stem().string());
  }
  return names;
}

std::string path_of(const std::string& name) {
  if (name.find('/') != std::string::npos || name.ends_with(".yaml")) return name;
  if (const auto found = find_in_configs(std::filesystem::path("machines") / (name + ".yaml"))) return found->string();
  const std::vector<std::string> names = machine_names();
  throw Error(ErrorKind::config, format("there is no machine '{}'{}", name, suggestion(name, names)),
              names.empty()
                  ? "trainctl's folder configs/machines was not found near the program: give the path of a file"
                  : format("use {}, or the path of a file like them", join_or(names)));
}

}  // namespace

Machine load_machine(const std::string& name) {
  Reader reader;
  const Node document = load_yaml(path_of(name), environment(), reader);
  reader.throw_if_failed();
  Machine machine;
  const ReadingContext context(reader, "the machine");
  Value<Machine>::read(document, reader, machine);
  reader.throw_if_failed();
  return machine;
}

int ranks_per_node(int ranks, int nodes, const Machine& machine, const std::string& name) {
  const int devices = machine.node.devices;
  const int least = (ranks + devices - 1) / devices;
  if (nodes != 0 && nodes < least) {
    throw Error(ErrorKind::config,
                format("{} of '{}' have {} devices, fewer than {}", counted(nodes, "node"), name, nodes * devices,
                       counted(ranks, "rank")),
                format("use at least {} nodes", least));
  }
  if (nodes > ranks) {
    throw Error(ErrorKind::config, format("{} nodes are more than the {} ranks that would run on them", nodes, ranks),
                "use more ranks (--ranks), or fewer nodes");
  }
  const int used = nodes == 0 ? least : nodes;
  if (used > 1 && !machine.network) {
    throw Error(ErrorKind::config,
                format("'{}' describes one node of {} devices, without a network to other nodes", name, devices),
                format("plan for at most {} ranks, or add `network` to the machine's file", devices));
  }
  return nodes == 0 ? std::min(ranks, devices) : (ranks + used - 1) / used;
}

PlanTarget described_target(const PlanRequest& request, const Machine& machine, const std::string& name) {
  PlanTarget target;
  target.about = machine.about.empty() ? name : machine.about;
  target.nodes.ranks_per_node = request.ranks_per_node;
  target.memory = request.memory;
  target.storage = machine.host.storage * 1e9;
  target.costs = std::make_shared<RooflineCosts>(
      machine, RooflineUse{request.spec.train.tf32, request.spec.data.dataset.as<DatasetOptions>().holds_image_files(),
                           request.ranks_per_node});
  target.compile = [&request](const std::vector<Program>& programs, const BatchDivision& division) {
    Compiled compiled =
        with_host_memory(compile_without_kernels(programs, request.device), request.spec, request.data, division);
    // The rank represents all ranks of its stage, of which the one in the first replica writes the most.
    const MeshRank writer(division.rank.mesh, division.rank.index_in_replica());
    compiled.memory.staged = staged_bytes(compiled, request.spec.checkpoint, writer);
    return compiled;
  };
  return target;
}

}  // namespace trainctl
