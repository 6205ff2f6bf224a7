// trainctl launch: prints the file with which a cluster's own tools start a run, or submits it.
#include <CLI/CLI.hpp>
#include <memory>
#include <utility>

#include "cmd/launch/launch.h"
#include "cmd/one_of.h"
#include "cmd/subcommands.h"
#include "core/base/error.h"
#include "core/base/format.h"
#include "core/spec/units.h"
#include "parallel/launch/hosts.h"

namespace trainctl {
namespace {

struct LaunchCommand {
  std::string where;
  LaunchOptions options;
  // Options, each with the only value of `where` that accepts it.
  std::vector<std::pair<const CLI::Option*, std::string>> only_for;
};

// A check for CLI11: returns why the text is refused, or "".
std::string check_count(const std::string& text) {
  const auto count = parse_integer(text);
  return count && *count >= 1 && *count <= max_slots ? "" : format("must be a number from 1 to {}", max_slots);
}

int launch(LaunchCommand& command) {
  LaunchOptions& options = command.options;
  for (const auto& [option, where] : command.only_for) {
    if (option->count() == 0 || where == command.where) continue;
    throw Error(ErrorKind::config, format("{} is only for launch {}", option->get_name(), where), "leave it out");
  }
  if (command.where == "tf-config") return launch_tf_config(options);
  if (options.common.config.empty()) {
    throw Error(ErrorKind::config, format("launch {} requires a config", command.where),
                format("trainctl launch {} CONFIG", command.where));
  }
  return command.where == "slurm" ? launch_slurm(options) : launch_kubernetes(options);
}

void add_job_options(CLI::App& app, LaunchCommand& command) {
  LaunchOptions& options = command.options;
  JobOptions& job = options.job;
  app.add_option("--nodes", job.nodes, "Number of the job's nodes (in Kubernetes: workers)")->check(check_count);
  app.add_option("--gpus-per-node", job.gpus_per_node, "GPUs of each node; each has one rank unless --ranks is given")
      ->check(check_count);
  app.add_option("--ranks", job.ranks, "Number of ranks; overrides cluster.ranks")->type_name("N");
  app.add_option("--cpus-per-task", job.cpus_per_task, "CPU cores of each rank")->check(check_count);
  app.add_option("--run-dir", job.run_directory, "The run's directory; default: runs/<name>")->type_name("PATH");
  const auto only = [&command](CLI::Option* option, const char* where) {
    command.only_for.emplace_back(option, where);
    return option;
  };
  only(app.add_option("--time", job.time, "SLURM: the time limit in sbatch's format: 90, 4:00:00, 2-12:00:00"), "slurm")
      ->type_name("TIME");
  only(app.add_option("--array", job.array, "SLURM: an array of jobs, such as 1-8, each with its own run directory"),
       "slurm")
      ->type_name("TASKS");
  only(app.add_option("--sbatch", job.sbatch, "SLURM: another option for sbatch, such as partition=gpu (repeatable)"),
       "slurm")
      ->type_name("OPTION=VALUE")
      ->allow_extra_args(false);
  only(app.add_flag("--submit", options.submit, "SLURM: submits the job instead of printing its script"), "slurm");
  only(app.add_flag("--wait", options.wait, "SLURM: follows the log of the job that --submit submits, to its end"),
       "slurm");
  only(app.add_option("--image", job.image, "Kubernetes: the image of the pods; default: trainctl:<version>"),
       "kubernetes")
      ->type_name("NAME");
  only(app.add_option("--volume", job.volume, "Kubernetes: the volume claim that holds config, data and runs"),
       "kubernetes")
      ->type_name("CLAIM")
      ->capture_default_str();
  only(app.add_flag("--dockerfile", options.dockerfile, "Kubernetes: prints the image's Dockerfile instead"),
       "kubernetes");
}

}  // namespace

Subcommand launch_subcommand() {
  return {"launch", "Prints the file with which SLURM or Kubernetes starts a run, or submits it to SLURM",
          "trainctl launch slurm mnist.yaml --nodes 2 --ranks 8 --time 4:00:00 --submit", [](CLI::App& app) {
            auto command = std::make_shared<LaunchCommand>();
            app.add_option("WHERE", command->where,
                           "slurm: a batch script; kubernetes: an MPIJob of Kubeflow's operator; tf-config: the "
                           "tasks that TF_CONFIG names")
                ->required()
                ->check(one_of({"slurm", "kubernetes", "tf-config"}));
            add_config_options(app, command->options.common);
            app.get_option("CONFIG")->required(false);
            add_output_options(app, command->options.common);
            add_job_options(app, *command);
            return [command] { return launch(*command); };
          }};
}

}  // namespace trainctl
