// From a command to its ranks.
#include "cmd/launching.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "core/backend/select.h"
#include "core/base/build_id.h"
#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/log.h"
#include "parallel/launch/report.h"

namespace trainctl {
namespace {

// The command line of this process, with the program's own path in front.
std::vector<std::string> own_command() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  words.front() = own_path();
  return words;
}

// libgomp reads its settings when it is loaded: this process becomes itself again with them. Comes back where nothing
// is to be set, as the second time.
void start_again_with(const Variables::Map& environment) {
  if (environment.empty()) return;
  for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
  std::vector<std::string> words = own_command();
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execv(arguments.front(), arguments.data());  // where it fails, threads spin
}

// The text of a config that is no regular file: what this process was given, or what it reads now.
std::optional<std::string> text_of(const std::string& config) {
  // /dev/stdin and /dev/fd/N are other files to other processes.
  std::error_code failure;
  const bool own = config.starts_with("/dev/") || config.starts_with("/proc/");
  if (!own && (std::filesystem::is_regular_file(config, failure) || !std::filesystem::exists(config, failure)))
    return {};
  const Variables variables = Variables::of_process();
  const std::string passed = variables.text(config_variable);
  if (passed.starts_with(config + "\n")) return passed.substr(config.size() + 1);
  const Situation situation = find_situation(variables);
  if (situation.is_rank() && situation.ranks > 1) {
    throw Error(ErrorKind::config, Place{config, 0, 0}, "ranks cannot share a config that is no regular file",
                "write it to a file, or leave it to trainctl to start the ranks (trainctl run CONFIG --ranks N)");
  }
  return read_config_text(config);
}

// Gives the text to all that this process starts, and to itself where it starts again.
void pass_on(const std::string& config, const std::string& text) {
  constexpr std::size_t most = 100'000;  // Linux takes 128 KiB for a variable
  if (text.size() > most) {
    throw Error(ErrorKind::config, Place{config, 0, 0},
                format("the config has {}; one that is no regular file may have {}", byte_text(std::ssize(text)),
                       byte_text(most)),
                "write it to a file");
  }
  setenv(std::string(config_variable).c_str(), (config + "\n" + text).c_str(), 1);
}

}  // namespace

void add_launch_options(CLI::App& app, LaunchFlags& flags) {
  app.add_option("--ranks", flags.ranks, "How many ranks, or auto; wins over cluster.ranks")->type_name("N");
  app.add_option("--hosts", flags.hosts, "Hosts and their slots: node1:8,node2:8")->type_name("LIST");
  app.add_option("--device", flags.device, "Where ranks compute; wins over cluster.device")
      ->check(CLI::IsMember({"auto", "cpu", "cuda"}));
}

RunSpec load_run_spec(CommonOptions& common, const LaunchFlags& flags) {
  if (!flags.device.empty()) common.sets.push_back("cluster.device=" + flags.device);
  common.text = text_of(common.config);
  return load_run_spec(common.config, common.sets, common.text);
}

LaunchRequest launch_request(const ClusterOptions& cluster, const LaunchFlags& flags) {
  LaunchRequest request = launch_request(cluster, flags.ranks, flags.hosts);
  if (!request.hosts.empty() || request.slurm) return request;  // their GPUs are not this process's to see
  const FoundGpus found = find_gpus(name_of(cluster.device));
  request.gpus = static_cast<int>(found.gpus.size());
  if (cluster.device == DeviceChoice::cuda && request.gpus == 0) {
    refuse_without_gpu(found);
  }
  return request;
}

std::optional<LaunchPlan> plan_ranks(const ClusterOptions& cluster, const CommonOptions& common,
                                     const LaunchFlags& flags, const Situation& situation) {
  if (situation.started_by != StartedBy::user) return std::nullopt;
  if (common.text) pass_on(common.config, *common.text);
  LaunchRequest request = launch_request(cluster, flags);
  if (!common.config.empty()) request.forwarded = variables_of(common.config, common.sets, common.text);
  LaunchPlan plan = plan_launch(request);
  for (const std::string& warning : plan.warnings) log::warning(warning);
  if (!plan.mpirun.empty()) return plan;
  start_again_with(plan.environment);
  return std::nullopt;
}

Supervised run_ranks(const LaunchPlan& plan, const SupervisionOptions& options) {
  return run_supervised(plan, own_command(), options);
}

RankCommand rank_command(const std::string& name, const RunSpec& spec, const LaunchFlags& flags,
                         const RankFacts& options) {
  RankCommand command;
  command.facts = {{"the build of trainctl", build_id()},
                   {"the command", name},
                   {"--ranks", flags.ranks.empty() ? "not given" : flags.ranks}};
  command.facts.insert(command.facts.end(), options.begin(), options.end());
  add_document(command.facts, Value<RunSpec>::write(spec));
  command.stated_ranks = stated_ranks(spec.cluster, flags.ranks);
  return command;
}

std::optional<int> supervise_ranks(const ClusterOptions& cluster, const CommonOptions& common, const LaunchFlags& flags,
                                   const Situation& situation, bool trains) {
  const std::optional<LaunchPlan> plan = plan_ranks(cluster, common, flags, situation);
  if (!plan) return std::nullopt;
  Supervised ranks = run_ranks(*plan, {trains, common.json});
  if (const int code = ranks.end.exit_code;
      code != 0 && ranks.end.message.empty() && ranks.output.empty() && common.json) {
    const bool stopped = code == exit_code(ErrorKind::interrupted);
    ranks.end.message = stopped ? "stopped at once" : format("the ranks ended with exit code {}", code);
  }
  if (!ranks.end.message.empty()) return report(ranks.end, common.json, situation);
  answer(ranks.output);
  return ranks.end.exit_code;
}

}  // namespace trainctl
