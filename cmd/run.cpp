// trainctl run: trains a network, as the supervisor of ranks, as one of the ranks, or as a single process.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <memory>

#include "cmd/common_options.h"
#include "cmd/subcommands.h"
#include "core/base/error.h"
#include "core/base/format.h"
#include "parallel/launch/agent/agent.h"
#include "parallel/launch/agent/secret.h"
#include "parallel/launch/plan.h"
#include "parallel/launch/ranks/report.h"
#include "parallel/launch/ranks/run_rank.h"
#include "parallel/launch/ranks/stop.h"
#include "parallel/launch/start_ranks.h"
#include "run/job/prepared_data.h"
#include "run/run_spec.h"
#include "run/training/next_state.h"
#include "run/training/training.h"

namespace trainctl {
namespace {

struct RunOptions {
  CommonOptions common;
  LaunchFlags launch;
  TrainingRequest training;
};

const std::map<std::string, ProgressStyle> progress_styles = {{"auto", ProgressStyle::automatic},
                                                              {"bar", ProgressStyle::bar},
                                                              {"plain", ProgressStyle::plain},
                                                              {"none", ProgressStyle::none}};

// All ranks must record the same steps, since their records are gathered.
RankValues profile_values(const TrainingRequest& request) {
  return {{"--profile", format("{}:{}", request.profile_first, request.profile_end)}};
}

int run(RunOptions& options) {
  const Variables variables = Variables::of_process();
  const Situation situation = find_situation(variables);
  const bool json = options.common.json;
  const StopAtOnce unstarted(json ? STDOUT_FILENO : STDERR_FILENO, unstarted_message(json, situation),
                             exit_code(ErrorKind::stopped));
  const RunSpec spec = load_run_spec(options.common, options.launch);
  options.launch.reads_tf_config = situation.started_by == StartedBy::user;
  if (const auto tasks = tf_config_for(spec.cluster, options.launch, variables); tasks && !tasks->is_chief()) {
    const AgentPatience patience{.start = spec.cluster.start_deadline(), .stop = spec.cluster.deadline()};
    return serve_as_agent(*tasks, secret_for(*tasks, variables), patience);
  }
  prepare_data_with_progress(spec.data);
  const SupervisionOptions supervision{
      .holds_output = json, .keeps_copies = spec.checkpoint.memory_every.has_value(), .next_state = next_state_of};
  if (const std::optional<int> code =
          supervise_ranks(spec.cluster, options.launch, launched_config(options.common), situation, supervision))
    return *code;
  options.training.config = Value<RunSpec>::write(spec);
  options.training.config_file = options.common.config;
  options.training.quiet = options.common.quiet;
  options.training.terminal = {situation.terminal_columns, situation.terminal};
  options.training.json = json;
  options.training.restart = situation.restart;
  options.training.generation = {situation.launch, situation.attempt,
                                 most_restarts_of(spec.cluster, options.launch) > 0};
  RankCommand command =
      rank_command("run", Value<RunSpec>::write(spec), spec.cluster, options.launch, profile_values(options.training));
  command.ends_start_itself = true;
  command.ending = std::chrono::milliseconds(static_cast<std::int64_t>(seconds_at_end(spec.log.callbacks) * 1e3));
  return run_as_rank(situation, json, command,
                     [&](RankContext& context) { return train(spec, options.training, context); });
}

// Reads the value of --profile: "10:20" means steps 10 to 19, counted from 0. Returns why it is refused, or "".
std::string read_profile(const std::string& text, TrainingRequest& request) {
  const std::size_t colon = text.find(':');
  const auto first = parse_integer(text.substr(0, colon));
  const auto end = colon == std::string::npos ? std::nullopt : parse_integer(text.substr(colon + 1));
  if (!first || !end || *first < 0) return "must be FIRST:END, two step numbers, such as 10:20";
  request.profile_first = *first;
  request.profile_end = *end;
  return request.profile_end > request.profile_first ? "" : "must be FIRST:END with END greater than FIRST";
}

}  // namespace

Subcommand run_subcommand() {
  return {"run", "Trains the network that a config describes", "trainctl run mnist.yaml --set train.epochs=3",
          [](CLI::App& app) {
            auto options = std::make_shared<RunOptions>();
            TrainingRequest& training = options->training;
            add_config_options(app, options->common);
            add_output_options(app, options->common);
            add_launch_options(app, options->launch);
            app.add_option("--run-dir", training.run_directory, "The run's directory; default: runs/<name>")
                ->type_name("PATH");
            app.add_option(
                   "--resume", training.resume,
                   "auto: continues an unfinished run of the same config; never: starts a new run; PATH: continues "
                   "from this checkpoint")
                ->type_name("auto|never|PATH");
            app.add_option("--max-restarts", options->launch.max_restarts,
                           "How often the ranks start again after a failure; overrides cluster.restarts")
                ->type_name("N")
                ->check(CLI::Range(0, most_restarts));
            app.add_option("--progress", training.progress, "How progress is shown")
                ->transform(CLI::CheckedTransformer(progress_styles))
                ->option_text("auto|bar|plain|none");
            app.add_option("--profile", "Records steps FIRST to END - 1 and writes timeline.json, which Perfetto opens")
                ->type_name("FIRST:END")
                ->check([&training](const std::string& text) { return read_profile(text, training); });
            return [options] { return run(*options); };
          }};
}

}  // namespace trainctl
