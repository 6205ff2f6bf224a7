// trainctl rehearse: lets standard faults happen to short runs of a config, and shows what was lost.
#include <CLI/CLI.hpp>
#include <memory>

#include "cmd/common_options.h"
#include "cmd/number_checks.h"
#include "cmd/subcommands.h"
#include "core/base/error.h"
#include "core/base/json.h"
#include "parallel/launch/plan.h"
#include "parallel/launch/ranks/report.h"
#include "run/rehearsal/rehearse.h"
#include "run/run_spec.h"

namespace trainctl {
namespace {

struct RehearseOptions {
  CommonOptions common;
  LaunchFlags launch;
  RehearsalRequest request;
};

int run_rehearse(RehearseOptions& options) {
  const RunSpec spec = load_run_spec(options.common, options.launch);
  if (find_situation(Variables::of_process()).started_by != StartedBy::user) {
    throw Error(ErrorKind::config, "rehearse starts its ranks itself", "start it without mpirun or srun");
  }
  const RehearsalResult rehearsed = rehearse(options.common, options.launch, spec, options.request);
  answer(options.common.json ? json_line(to_json(rehearsed)) : to_text(rehearsed));
  return rehearsed.survived() ? 0 : exit_code(ErrorKind::answer_is_no);
}

}  // namespace

Subcommand rehearse_subcommand() {
  return {"rehearse", "Lets faults happen to short runs of a config, and shows what was lost and how long it took",
          "trainctl rehearse mnist.yaml --ranks 2", [](CLI::App& app) {
            auto options = std::make_shared<RehearseOptions>();
            add_config_options(app, options->common);
            add_output_options(app, options->common);
            add_launch_options(app, options->launch);
            app.add_option("--steps", options->request.steps,
                           "Steps of each run, at most those of the config; default: 20")
                ->type_name("N")
                ->check(CLI::Range(least_rehearsed_steps, std::int64_t{1} << 40));
            app.add_option("--timeout", options->request.timeout,
                           "Seconds after which a rank that hangs is given up, if cluster.timeout is longer; default: "
                           "30")
                ->type_name("S")
                ->check(number_between(1, 1e6));
            app.add_flag("--keep", options->request.keeps, "Keeps the runs, in runs/<name>-rehearsal");
            return [options] { return run_rehearse(*options); };
          }};
}

}  // namespace trainctl
