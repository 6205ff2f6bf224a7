// trainctl bench: what is measured, and how its ranks start.
#include "cmd/bench.h"

#include <CLI/CLI.hpp>

#include "cmd/launching.h"
#include "cmd/subcommands.h"
#include "core/spec/units.h"

namespace trainctl {
namespace {

struct BenchOptions {
  CommonOptions common;
  LaunchFlags launch;
  BenchRequest request;
  std::string what;
};

int run_bench(BenchOptions& options) {
  options.request.json = options.common.json;
  const RunSpec spec = load_run_spec(options.common, options.launch);
  const Situation situation = find_situation(Variables::of_process());
  if (const std::optional<int> code = supervise_ranks(spec.cluster, options.common, options.launch, situation, false))
    return *code;
  return run_as_rank(situation, options.common.json, rank_command("bench " + options.what, spec, options.launch),
                     [&](RankContext& context) {
                       if (options.what == "step") return bench_step(spec, options.request, context);
                       if (options.what == "ops") return bench_ops(spec, options.request, context);
                       return bench_comm(spec, options.request, context);
                     });
}

// As CLI11 wants it: why the text is refused, or "".
std::string check_seconds(const std::string& text) {
  const auto seconds = parse_number(text);
  return seconds && *seconds > 0 && *seconds <= 86400 ? "" : "wants a number of seconds, more than 0 and at most 86400";
}

}  // namespace

Subcommand bench_subcommand() {
  return {"bench", "Measures a config's step, its ops, or the communication of its ranks",
          "trainctl bench step configs/mnist-mlp.yaml --ranks 2", [](CLI::App& app) {
            auto options = std::make_shared<BenchOptions>();
            app.add_option("what", options->what, "step, ops or comm")
                ->required()
                ->check(CLI::IsMember({"step", "ops", "comm"}));
            add_config_options(app, options->common);
            add_output_options(app, options->common);
            add_launch_options(app, options->launch);
            app.add_option("--seconds", options->request.seconds, "How long it measures")->check(check_seconds);
            return [options] { return run_bench(*options); };
          }};
}

}  // namespace trainctl
