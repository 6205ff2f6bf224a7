// Checks a config for a job whose ranks do not exist yet.
#include "run/launch/job.h"

#include <fstream>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/log.h"
#include "parallel/launch/plan.h"
#include "run/given_config.h"
#include "run/job/job.h"
#include "run/job/phases.h"
#include "run/planning/planned_runs.h"
#include "run/run_spec.h"

namespace trainctl {
namespace {

int count_ranks(const JobOptions& options, const ClusterOptions& cluster) {
  const auto refuse = [](const std::string& what, const std::string& remedy) {
    throw Error(ErrorKind::config, what, remedy);
  };
  const int gpus = options.nodes * options.gpus_per_node;
  if (gpus > 0 && cluster.device == DeviceChoice::cpu) {
    refuse("the config computes on the CPU (cluster.device), and --gpus-per-node asks for GPUs",
           "leave one of them out");
  }
  if (gpus == 0 && cluster.device == DeviceChoice::cuda) {
    refuse("the config computes on GPUs (cluster.device)", "give the number of GPUs of a node: --gpus-per-node N");
  }
  // --gpus-per-node overrides `cluster.ranks`, which is for the machine where the config was written.
  const bool reads_config = !options.ranks.empty() || gpus == 0;
  const std::optional<int> ranks = reads_config ? requested_ranks(cluster, options.ranks) : gpus;
  if (!ranks && gpus > 0) return gpus;
  if (!ranks) {
    refuse("the number of the job's ranks is not given",
           "add --ranks N, or --gpus-per-node N for one rank on each GPU");
  }
  if (*ranks < options.nodes) {
    refuse(format("{} nodes are more than {} ranks", options.nodes, *ranks),
           "use more ranks (--ranks), or fewer nodes (--nodes)");
  }
  return *ranks;
}

}  // namespace

int checked_ranks(const JobOptions& options, const RunSpec& spec) {
  const int ranks = count_ranks(options, spec.cluster);
  const RunSpec phase = in_phase(spec, 0);
  bool at_hand = true;
  const DataInfo data = known_data(phase, phase.train.global_batch(ranks), at_hand);
  if (!at_hand) {
    log::warning(
        "the data is not available here: whether the network and the batch work on these ranks is checked when the job "
        "starts");
    return ranks;
  }
  const int per_node = (ranks + options.nodes - 1) / options.nodes;
  require_layers_within_nodes(phase.strategy, ranks, per_node);
  const bool gpus = options.gpus_per_node > 0;
  configured_run({phase, data, ranks, per_node, {.on_host = !gpus, .asynchronous = gpus}});
  return ranks;
}

std::vector<std::string> run_arguments(const GivenConfig& given, const JobOptions& options,
                                       const std::vector<std::string>& settings) {
  std::vector<std::string> words = {"run", given.config, "--ranks", "auto"};
  if (!options.run_directory.empty()) words.insert(words.end(), {"--run-dir", options.run_directory});
  for (const std::string& setting : given.sets) words.insert(words.end(), {"--set", setting});
  for (const std::string& setting : settings) words.insert(words.end(), {"--set", setting});
  return words;
}

std::vector<std::string> this_command() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  if (!words.empty()) words.front() = "trainctl";
  return words;
}

}  // namespace trainctl
