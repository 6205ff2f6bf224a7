// trainctl verify-scaling: checks that a config produces the same weights, bit for bit, on several numbers of ranks.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <sstream>

#include "cmd/one_of.h"
#include "cmd/scaling/scaling_runs.h"
#include "cmd/subcommands.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "core/base/table.h"
#include "core/spec/units.h"
#include "parallel/launch/plan.h"
#include "parallel/launch/ranks/report.h"
#include "parallel/launch/ranks/run_rank.h"
#include "parallel/launch/start_ranks.h"
#include "run/job/checked.h"
#include "run/job/prepared_data.h"
#include "run/run_spec.h"
#include "run/training/training.h"

namespace trainctl {
namespace {

struct VerifyOptions {
  CommonOptions common;
  LaunchFlags launch;      // launch.ranks is a list
  ScalingRequest request;  // request for each run
  std::string directory;   // run directory if verify-scaling started this process; empty: the user started it
  std::vector<int> ranks{1, 2, 4};
};

// Reads a list such as "1,2,4". Returns why the text is refused, or "".
std::string read_ranks(const std::string& text, VerifyOptions& options) {
  options.launch.ranks = text;
  options.ranks.clear();
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    const auto ranks = parse_integer(word);
    if (!ranks || *ranks < 1 || *ranks > max_slots)
      return format("'{}' is not a number of ranks; write a list such as 1,2,4", word);
    if (std::find(options.ranks.begin(), options.ranks.end(), *ranks) != options.ranks.end()) {
      return format("{} ranks are given twice", *ranks);
    }
    options.ranks.push_back(static_cast<int>(*ranks));
  }
  return options.ranks.empty() || text.ends_with(',') ? "must be numbers of ranks, such as 1,2,4" : "";
}

std::string read_steps(const std::string& text, VerifyOptions& options) {
  const auto steps = parse_integer(text);
  if (!steps || *steps < 1) return "must be a number of steps, at least 1";
  options.request.steps = *steps;
  return "";
}

// Checks the config for every number of ranks before the first run.
void check_all(const RunSpec& spec, const VerifyOptions& options) {
  if (options.ranks.size() < 2) {
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
  for (const int ranks : options.ranks) {
    LaunchFlags launch = options.launch;
    launch.ranks = std::to_string(ranks);
    if (const Checked checked = check_config(without_copies, launch, false); checked.unfit) throw *checked.unfit;
  }
}

// Executes one of the runs, in a process that verify-scaling has started, or as one of its ranks.
int run_scaled(const RunSpec& spec, const VerifyOptions& options, const Situation& situation) {
  prepare_data_with_progress(spec.data);
  if (const std::optional<int> code =
          supervise_ranks(spec.cluster, options.launch, launched_config(options.common), situation, {false, false}))
    return *code;
  TrainingRequest training;
  training.config = Value<RunSpec>::write(spec);
  training.config_file = options.common.config;
  training.run_directory = options.directory;
  training.resume = "never";
  training.progress = ProgressStyle::none;
  training.quiet = true;
  training.scaling = &options.request;
  const RankCommand command = rank_command("verify-scaling", training.config, spec.cluster, options.launch,
                                           {{"--steps", std::to_string(options.request.steps)},
                                            {scaling_trace_option, options.request.traces ? "given" : "not given"},
                                            {scaling_values_option, options.request.tensor}});
  return run_as_rank(situation, false, command, [&](RankContext& context) { return train(spec, training, context); });
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

Json json_of(const std::vector<ScaledRun>& runs, const std::optional<ScalingDifference>& difference) {
  Json hashes = Json::object();
  for (const ScaledRun& run : runs) hashes[std::to_string(run.ranks)] = run.steps.rbegin()->second.weights;
  return {{"ok", !difference},
          {"steps", runs.front().steps.rbegin()->first},
          {"hashes", hashes},
          {"first_difference", difference ? to_json(*difference) : Json()}};
}

int verify(VerifyOptions& options, const RunSpec& spec, const Situation& situation) {
  if (situation.started_by != StartedBy::user) {
    throw Error(ErrorKind::config, "verify-scaling starts its ranks itself", "start it without mpirun or srun");
  }
  ScalingRuns starter(options.common);  // before kernels start threads, which would receive the signals to stop
  check_all(spec, options);
  std::vector<ScaledRun> runs;
  for (const int ranks : options.ranks) runs.push_back(starter.run(ranks, options.request));
  std::optional<ScalingDifference> difference;
  for (const ScaledRun& run : runs) {
    const std::optional<std::int64_t> step = first_difference(runs.front(), run);
    if (!step) continue;
    difference = find_difference(starter, runs.front(), run, *step);
    break;
  }
  if (options.common.json) {
    answer(json_line(json_of(runs, difference)));
  } else if (!options.common.quiet) {
    answer(table_of(runs) + "\n" +
           (difference ? difference->text()
                       : format("the same weights and optimizer state, bit for bit, after each of {}\n",
                                counted(runs.front().steps.rbegin()->first, "step"))));
  }
  return difference ? exit_code(ErrorKind::answer_is_no) : 0;
}

int verify_scaling(VerifyOptions& options) {
  const RunSpec spec = load_run_spec(options.common, options.launch);
  const Situation situation = find_situation(Variables::of_process());
  if (!options.directory.empty()) return run_scaled(spec, options, situation);
  return verify(options, spec, situation);
}

}  // namespace

Subcommand verify_scaling_subcommand() {
  return {"verify-scaling", "Trains some steps on several numbers of ranks, and compares the weights bit for bit",
          "trainctl verify-scaling mnist.yaml --ranks 1,2,4 --steps 20", [](CLI::App& app) {
            auto options = std::make_shared<VerifyOptions>();
            options->request.steps = 20;
            add_config_options(app, options->common);
            add_output_options(app, options->common);
            const auto checked = [options](auto read) {
              return [options, read](const std::string& text) { return read(text, *options); };
            };
            app.add_option("--ranks", "Numbers of ranks; the others are compared with the first; default: 1,2,4")
                ->type_name("LIST")
                ->check(checked(read_ranks));
            app.add_option("--steps", "Steps of each run, at most those of the config; default: 20")
                ->type_name("N")
                ->check(checked(read_steps));
            app.add_option("--device", options->launch.device,
                           "The device that ranks compute on; overrides cluster.device")
                ->check(one_of({"auto", "cpu", "cuda"}));
            app.add_option(scaling_directory_option, options->directory)->group("");
            app.add_flag(scaling_trace_option, options->request.traces)->group("");
            app.add_option(scaling_values_option, options->request.tensor)->group("");
            return [options] { return verify_scaling(*options); };
          }};
}

}  // namespace trainctl
