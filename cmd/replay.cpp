// trainctl replay: repeats a step of a run, bit for bit in reproducible mode, and shows what it computed.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <optional>

#include "cmd/common_options.h"
#include "cmd/one_of.h"
#include "cmd/subcommands.h"
#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "core/base/table.h"
#include "core/spec/units.h"
#include "io/checkpoint/load.h"
#include "parallel/launch/host/child_run.h"
#include "parallel/launch/host/process.h"
#include "parallel/launch/host/scratch.h"
#include "parallel/launch/plan.h"
#include "parallel/launch/ranks/report.h"
#include "parallel/launch/ranks/run_rank.h"
#include "parallel/launch/start_ranks.h"
#include "run/job/prepared_data.h"
#include "run/run_spec.h"
#include "run/training/kept_step.h"
#include "run/training/replay_watch.h"
#include "run/training/training.h"

namespace trainctl {
namespace {

// Options with which the command starts itself, hidden from its users.
constexpr const char* directory_option = "--replay-directory";
constexpr const char* from_option = "--replay-from";

struct ReplayOptions {
  CommonOptions common;
  LaunchFlags launch;
  std::string run;
  ReplayRequest request;
  int ranks = 1;
  std::string directory;       // directory of the repeated run; empty: the user has started this process
  std::string from = "never";  // checkpoint from which it trains; never: from the beginning
};

// Returns the newest whole checkpoint of the run from which the step can be reached; "never" if there is none. The
// state that was kept before the step is such a checkpoint.
std::string find_start(const std::string& run, std::int64_t step) {
  for (const std::string& directory : {kept_step_folder(run, step), run}) {
    if (!std::filesystem::exists(directory + "/checkpoints")) continue;
    for (const CheckpointFolder& folder : newest_checkpoints_first(directory)) {
      if (folder.step >= step) continue;
      try {
        load_checkpoint(folder.path);
        return folder.path;
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::data) throw;
      }
    }
  }
  return "never";
}

// Changes the run to one on `ranks` ranks of this host: the network is divided as before if the ranks allow it.
RunSpec replayed(RunSpec spec, int ranks) {
  spec.cluster.hosts.clear();
  spec.cluster.hostfile = {};
  spec.cluster.restarts.max = 0;
  spec.cluster.fixed_ranks.reset();
  spec.strategy.data = {};
  if (ranks % spec.cluster.ranks_of_replica != 0) {
    spec.strategy.pipeline.value = spec.strategy.tensor.value = spec.cluster.ranks_of_replica = 1;
    spec.strategy.place.clear();
    spec.strategy.micro_batches = {};
    spec.strategy.sequence_parallel = false;
  }
  const Node* batch = spec.resolved.find("batch_size");
  if (spec.train.batch_size_per_rank && batch != nullptr) {
    const auto* scaling = std::get_if<RateScaling>(&spec.train.scale_learning_rate);
    if (scaling && *scaling == RateScaling::by_ranks) spec.train.scale_learning_rate = *spec.train.batch_size_per_rank;
    spec.train.batch_size = parse_integer(batch->text);
    spec.train.batch_size_per_rank.reset();
  }
  if (spec.train.on_not_finite.value == OnNotFinite::rollback) spec.train.on_not_finite.value = OnNotFinite::stop;
  spec.log.callbacks.clear();
  spec.log.prometheus.reset();
  spec.log.tensorboard = false;
  return spec;
}

// Trains up to the step, in a process that replay has started, or as one of its ranks.
int train_to_step(const RunSpec& spec, ReplayOptions& options, const Situation& situation) {
  prepare_data_with_progress(spec.data);
  if (const std::optional<int> code =
          supervise_ranks(spec.cluster, options.launch, launched_config(options.common), situation, {false, false}))
    return *code;
  TrainingRequest training;
  training.config = Value<RunSpec>::write(spec);
  training.config_file = options.common.config;
  training.run_directory = options.directory;
  training.resume = options.from;
  training.progress = ProgressStyle::none;
  training.quiet = true;
  training.replay = &options.request;
  const RankCommand command =
      rank_command("replay", training.config, spec.cluster, options.launch,
                   {{"--step", std::to_string(options.request.step)}, {from_option, options.from}});
  return run_as_rank(situation, false, command, [&](RankContext& context) { return train(spec, training, context); });
}

std::string text_of(const Json& found) {
  const auto number = [](const Json& value) { return format("{:.9g}", number_of(value)); };
  std::string text = format(
      "step {} of {}, {}, on {}\n", found["step"].get<std::int64_t>(), found["run"].get<std::string>(),
      found["from"].is_null() ? "trained from the beginning" : "trained from " + found["from"].get<std::string>(),
      counted(found["ranks"].get<int>(), "rank"));
  text += format("  loss           {}\n  gradient norm  {}\n", number(found["loss"]), number(found["gradient_norm"]));
  if (const Json& tensor = found["not_finite"]; !tensor.is_null()) {
    text += format("  not finite     {}\n", to_text(not_finite_tensor(tensor)));
  }
  return text + format("  weights        {}\n", found["weights_sha256"].get<std::string>());
}

// Starts the run that repeats the step, and shows what it has printed.
int replay(const ReplayOptions& options) {
  const Signals signals;
  const ScratchFolder scratch(std::filesystem::temp_directory_path());
  const std::string from = find_start(options.run, options.request.step);
  std::vector<std::string> command{own_path(), "replay", options.run, "--quiet"};
  command.insert(command.end(),
                 {"--step", std::to_string(options.request.step), "--ranks", std::to_string(options.ranks),
                  directory_option, scratch.path() + "/run", from_option, from});
  if (!options.launch.device.empty()) command.insert(command.end(), {"--device", options.launch.device});
  for (const std::string& set : options.common.sets) command.insert(command.end(), {"--set", set});
  std::optional<Json> found;
  const ChildEnd end = run_child(signals, command, [&](std::string_view line) {
    const std::string_view beginning = replay_line;
    if (line.starts_with(beginning)) found = parse_json(line.substr(beginning.size()));
  });
  std::cerr << end.errors;
  if (end.exit_code != 0) return end.exit_code;
  if (!found) {
    throw Error(ErrorKind::config, format("the run has fewer than {} steps", options.request.step),
                "`trainctl inspect RUN_DIR` shows its steps");
  }
  (*found)["run"] = options.run;
  (*found)["ranks"] = options.ranks;
  (*found)["from"] = from == "never" ? Json() : Json(from);
  answer(options.common.json ? json_line(*found) : text_of(*found));
  return 0;
}

int run_replay(ReplayOptions& options) {
  options.run = std::filesystem::path(options.run).lexically_normal().string();
  if (options.run.ends_with('/')) options.run.pop_back();
  options.common.config = options.run + "/config.yaml";
  options.launch.ranks = std::to_string(options.ranks);
  const RunSpec spec = replayed(load_run_spec(options.common, options.launch), options.ranks);
  if (options.directory.empty()) return replay(options);
  return train_to_step(spec, options, find_situation(Variables::of_process()));
}

}  // namespace

Subcommand replay_subcommand() {
  return {"replay", "Repeats a step of a run on this machine, and shows what it computed",
          "trainctl replay runs/mnist --step 120", [](CLI::App& app) {
            auto options = std::make_shared<ReplayOptions>();
            app.add_option("RUN_DIR", options->run, "The run's directory")->required();
            app.add_option("--step", options->request.step, "The number of the step, counted from 1")
                ->required()
                ->type_name("N")
                ->check(CLI::PositiveNumber);
            app.add_option("--ranks", options->ranks, "Number of ranks, all on this machine; default: 1")
                ->type_name("N")
                ->check(CLI::PositiveNumber);
            app.add_option("--device", options->launch.device,
                           "The device that ranks compute on; overrides cluster.device")
                ->check(one_of({"auto", "cpu", "cuda"}));
            app.add_option("--set", options->common.sets, "Replaces a value of the config (repeatable)")
                ->type_name("PATH=VALUE")
                ->allow_extra_args(false);
            add_output_options(app, options->common);
            app.add_option(directory_option, options->directory)->group("");
            app.add_option(from_option, options->from)->group("");
            return [options] { return run_replay(*options); };
          }};
}

}  // namespace trainctl
