// trainctl replay: repeats a step of a run, bit for bit in reproducible mode, and shows what it computed.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <string>

#include "cmd/common_options.h"
#include "cmd/number_checks.h"
#include "cmd/one_of.h"
#include "cmd/subcommands.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "parallel/launch/hosts.h"
#include "parallel/launch/plan.h"
#include "parallel/launch/ranks/report.h"
#include "run/replay/replay.h"
#include "run/run_spec.h"

namespace trainctl {
namespace {

struct ReplayOptions {
  CommonOptions common;
  LaunchFlags launch;
  std::string run;
  int ranks = 1;
  ReplayTraining training;
};

int run_replay(ReplayOptions& options) {
  options.run = std::filesystem::path(options.run).lexically_normal().string();
  if (options.run.ends_with('/')) options.run.pop_back();
  if (!exists(options.run)) {
    throw Error(ErrorKind::config, SourceLocation{options.run}, "there is no such directory",
                "name the directory of a run, such as runs/NAME");
  }
  options.common.config = options.run + "/config.yaml";
  options.launch.ranks = std::to_string(options.ranks);
  const RunSpec spec = replayed(load_run_spec(options.common, options.launch), options.ranks);
  if (!options.training.directory.empty()) {
    const Situation situation = find_situation(Variables::of_process());
    return train_to_step(options.common, spec, options.launch, options.training, situation);
  }
  Json found;
  const std::int64_t step = options.training.request.step;
  const int code = replay_step(options.common, options.launch, options.run, step, options.ranks, found);
  if (code == 0) answer(options.common.json ? json_line(found) : replay_text(found));
  return code;
}

}  // namespace

Subcommand replay_subcommand() {
  return {"replay", "Repeats a step of a run on this machine, and shows what it computed",
          "trainctl replay runs/mnist --step 120", [](CLI::App& app) {
            auto options = std::make_shared<ReplayOptions>();
            app.add_option("RUN_DIR", options->run, "The run's directory")->required();
            app.add_option("--step", options->training.request.step, "The number of the step, counted from 1")
                ->required()
                ->type_name("N")
                ->check(whole_number_from(1));
            app.add_option("--ranks", options->ranks, "Number of ranks, all on this machine; default: 1")
                ->type_name("N")
                ->check(CLI::Range(1, max_slots));
            app.add_option("--device", options->launch.device,
                           "The device that ranks compute on; overrides cluster.device")
                ->check(one_of({"auto", "cpu", "cuda"}));
            app.add_option("--set", options->common.sets, "Replaces a value of the config (repeatable)")
                ->type_name("PATH=VALUE")
                ->allow_extra_args(false);
            add_output_options(app, options->common);
            app.add_option(replay_directory_option, options->training.directory)->group("");
            app.add_option(replay_from_option, options->training.from)->group("");
            return [options] { return run_replay(*options); };
          }};
}

}  // namespace trainctl
