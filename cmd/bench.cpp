// trainctl bench: starts ranks and measures a config's step, ops or data, or the communication between the ranks.
#include <CLI/CLI.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "cmd/common_options.h"
#include "cmd/one_of.h"
#include "cmd/subcommands.h"
#include "core/spec/units.h"
#include "parallel/launch/plan.h"
#include "parallel/launch/ranks/report.h"
#include "parallel/launch/ranks/run_rank.h"
#include "parallel/launch/start_ranks.h"
#include "run/bench/bench.h"
#include "run/job/phases.h"
#include "run/run_spec.h"

namespace trainctl {
namespace {

struct BenchOptions {
  CommonOptions common;
  LaunchFlags launch;
  std::string what;
  double seconds = 3;  // to measure for
  int phase = 0;       // counted from 1; 0: the last one
};

const std::map<std::string, BenchSubject> subjects = {{"step", BenchSubject::step},
                                                      {"ops", BenchSubject::ops},
                                                      {"data", BenchSubject::data},
                                                      {"comm", BenchSubject::communication}};

int run_bench(BenchOptions& options) {
  const RunSpec spec = chosen_phase(load_run_spec(options.common, options.launch), options.phase);
  const Situation situation = find_situation(Variables::of_process());
  if (const std::optional<int> code = supervise_ranks(spec.cluster, options.launch, launched_config(options.common),
                                                      situation, {false, options.common.json}))
    return *code;
  RankCommand command =
      rank_command("bench " + options.what, Value<RunSpec>::write(spec), spec.cluster, options.launch);
  command.ends_start_itself = true;
  return run_as_rank(situation, options.common.json, command, [&](RankContext& context) {
    const std::string found = bench(spec, subjects.at(options.what), options.seconds, options.common.json, context);
    if (context.world.rank() == 0) answer(found);
    return 0;
  });
}

// A check for CLI11: returns why the text is refused, or "".
std::string check_seconds(const std::string& text) {
  const auto seconds = parse_number(text);
  return seconds && *seconds > 0 && *seconds <= 86400 ? ""
                                                      : "must be a number of seconds, more than 0 and at most 86400";
}

}  // namespace

Subcommand bench_subcommand() {
  return {"bench", "Measures a config's step, its ops, its data, or the communication of its ranks",
          "trainctl bench step mnist.yaml --ranks 2", [](CLI::App& app) {
            auto options = std::make_shared<BenchOptions>();
            app.add_option("what", options->what, "What to measure: step, ops, data or comm")
                ->required()
                ->check(one_of({"step", "ops", "data", "comm"}));
            add_config_options(app, options->common);
            add_output_options(app, options->common);
            add_launch_options(app, options->launch);
            app.add_option("--seconds", options->seconds, "Seconds to measure for; default: 3")->check(check_seconds);
            add_phase_option(app, options->phase);
            return [options] { return run_bench(*options); };
          }};
}

}  // namespace trainctl
