// Runs a config on each number of ranks, and shows where the runs differ.
#include "run/scaling/verify_scaling.h"

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "core/base/table.h"
#include "parallel/launch/plan.h"
#include "run/given_config.h"
#include "run/job/checked.h"
#include "run/run_spec.h"
#include "run/training/observed_training.h"
#include "run/training/training.h"

namespace trainctl {
namespace {

// Checks the config for every number of ranks before the first run.
void check_all(const RunSpec& spec, const LaunchFlags& launch, const std::vector<int>& numbers) {
  if (numbers.size() < 2) {
    throw Error(ErrorKind::config, "a single number of ranks has nothing to be compared with",
                "give several: --ranks 1,2");
  }
  if (spec.train.batch_size_per_rank) {
    throw Error(
        ErrorKind::config,
        "train.batch_size_per_rank makes the size of the batch, and so the weights, depend on the number of ranks",
        "set train.batch_size, of all ranks together, instead");
  }
  RunSpec without_copies = spec;  // the runs keep no copies in memory
  without_copies.checkpoint.memory_every.reset();
  for (const int ranks : numbers) {
    LaunchFlags own = launch;
    own.ranks = std::to_string(ranks);
    if (const Checked checked = check_config(without_copies, own, false); checked.unfit) throw *checked.unfit;
  }
}

std::string table_of(const std::vector<ScaledRun>& runs) {
  TextTable table(
      {{"ranks", TextTable::Align::right}, {"step", TextTable::Align::right}, {"sha256 of the weights"}, {""}});
  for (const ScaledRun& run : runs) {
    const auto& [step, hashes] = *run.steps.rbegin();
    const std::optional<std::int64_t> differs = first_difference(runs.front(), run);
    const std::string verdict = &run == &runs.front() ? ""
                                : differs             ? format("differs from step {} on", *differs)
                                                      : "equal";
    table.add({std::to_string(run.ranks), std::to_string(step), hashes.weights, verdict});
  }
  return table.text();
}

}  // namespace

ScalingComparison compare_scaling(const GivenConfig& given, const RunSpec& spec, const LaunchFlags& launch,
                                  const std::vector<int>& ranks, const ScalingRequest& request, bool quiet) {
  ScalingRuns starter(given, quiet);  // before kernels start threads, which would receive the signals to stop
  check_all(spec, launch, ranks);
  ScalingComparison comparison;
  for (const int number : ranks) comparison.runs.push_back(starter.run(number, request));
  for (const ScaledRun& run : comparison.runs) {
    const std::optional<std::int64_t> step = first_difference(comparison.runs.front(), run);
    if (!step) continue;
    comparison.difference = find_difference(starter, comparison.runs.front(), run, *step);
    break;
  }
  return comparison;
}

std::string to_text(const ScalingComparison& comparison) {
  return table_of(comparison.runs) + "\n" +
         (comparison.difference ? comparison.difference->text()
                                : format("the same weights and optimizer state, bit for bit, after each of {}\n",
                                         counted(comparison.runs.front().steps.rbegin()->first, "step")));
}

Json to_json(const ScalingComparison& comparison) {
  const auto& [runs, difference] = comparison;
  Json hashes = Json::object();
  for (const ScaledRun& run : runs) hashes[std::to_string(run.ranks)] = run.steps.rbegin()->second.weights;
  return {{"ok", !difference},
          {"steps", runs.front().steps.rbegin()->first},
          {"hashes", hashes},
          {"first_difference", difference ? to_json(*difference) : Json()}};
}

int train_scaled(const GivenConfig& given, const RunSpec& spec, const LaunchFlags& launch,
                 const ScalingRequest& request, const std::string& directory, const Situation& situation) {
  TrainingRequest training;
  training.run_directory = directory;
  training.resume = "never";
  training.scaling = &request;
  const RankValues values = {{"--steps", std::to_string(request.steps)},
                             {scaling_trace_option, request.traces ? "given" : "not given"},
                             {scaling_values_option, request.tensor}};
  return train_observed("verify-scaling", values, given, spec, launch, training, situation);
}

}  // namespace trainctl
