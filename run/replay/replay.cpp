// Finds the checkpoint before a step, starts the run that repeats the step, and reads what it has printed.
#include "run/replay/replay.h"

#include <cmath>
#include <filesystem>
#include <iostream>
#include <optional>
#include <variant>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "core/base/table.h"
#include "core/exec/observe/not_finite.h"
#include "core/spec/units.h"
#include "io/checkpoint/load.h"
#include "parallel/launch/host/child_run.h"
#include "parallel/launch/host/process.h"
#include "parallel/launch/host/scratch.h"
#include "parallel/launch/plan.h"
#include "run/given_config.h"
#include "run/replay/recorded_step.h"
#include "run/run_spec.h"
#include "run/training/kept_step.h"
#include "run/training/observed_training.h"
#include "run/training/training.h"

namespace trainctl {
namespace {

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

}  // namespace

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
  spec.faults.clear();
  spec.log.callbacks.clear();
  spec.log.prometheus.reset();
  spec.log.tensorboard = false;
  return spec;
}

int replay_step(const GivenConfig& given, const LaunchFlags& launch, const std::string& run, std::int64_t step,
                int ranks, Json& found) {
  const Signals signals;
  const ScratchFolder scratch(std::filesystem::temp_directory_path());
  const std::string from = find_start(run, step);
  std::vector<std::string> command{own_path(), "replay", run, "--quiet"};
  command.insert(command.end(), {"--step", std::to_string(step), "--ranks", std::to_string(ranks),
                                 replay_directory_option, scratch.path() + "/run", replay_from_option, from});
  if (!launch.device.empty()) command.insert(command.end(), {"--device", launch.device});
  for (const std::string& set : given.sets) command.insert(command.end(), {"--set", set});
  const ChildEnd end = run_child(signals, command, [&](std::string_view line) {
    const std::string_view beginning = replay_line;
    if (line.starts_with(beginning)) found = parse_json(line.substr(beginning.size()));
  });
  std::cerr << end.errors;
  if (end.exit_code != 0) return end.exit_code;
  if (found.is_null()) {
    throw Error(ErrorKind::config, format("the run has fewer than {}", counted(step, "step")),
                "`trainctl inspect RUN_DIR` shows its steps");
  }
  const std::optional<RecordedNotFinite> recorded = recorded_not_finite(run, step);
  found["recorded"] = recorded ? to_json(*recorded) : Json();
  found["run"] = run;
  found["ranks"] = ranks;
  found["from"] = from == "never" ? Json() : Json(from);
  return 0;
}

std::string replay_text(const Json& found) {
  const auto number = [](const Json& value) { return format("{:.9g}", number_of(value)); };
  std::string text = format(
      "step {} of {}, {}, on {}\n", found["step"].get<std::int64_t>(), found["run"].get<std::string>(),
      found["from"].is_null() ? "trained from the beginning" : "trained from " + found["from"].get<std::string>(),
      counted(found["ranks"].get<int>(), "rank"));
  text += format("  loss           {}\n  gradient norm  {}\n", number(found["loss"]), number(found["gradient_norm"]));
  if (const Json& tensor = found["not_finite"]; !tensor.is_null()) {
    text += format("  not finite     {}\n", to_text(not_finite_tensor(tensor)));
  }
  if (const Json& recorded = found["recorded"]; !recorded.is_null()) {
    const bool is_finite = std::isfinite(number_of(found["loss"])) && std::isfinite(number_of(found["gradient_norm"]));
    text += format("  recorded       {}\n", recorded_text(recorded, is_finite));
  }
  return text + format("  weights        {}\n", found["weights_sha256"].get<std::string>());
}

int train_to_step(const GivenConfig& given, const RunSpec& spec, const LaunchFlags& launch,
                  const ReplayTraining& replay, const Situation& situation) {
  TrainingRequest training;
  training.run_directory = replay.directory;
  training.resume = replay.from;
  training.replay = &replay.request;
  const RankValues values = {{"--step", std::to_string(replay.request.step)}, {replay_from_option, replay.from}};
  return train_observed("replay", values, given, spec, launch, training, situation);
}

}  // namespace trainctl
