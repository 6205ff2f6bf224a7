// trainctl check: reports all errors of a config, then its layers and the memory of a rank. It starts no ranks,
// allocates no memory for the network and, unless --measure is given, runs no kernel.
#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>

#include "cmd/common_options.h"
#include "cmd/number_checks.h"
#include "cmd/one_of.h"
#include "cmd/subcommands.h"
#include "core/base/json.h"
#include "parallel/launch/plan.h"
#include "parallel/launch/ranks/report.h"
#include "run/job/checked.h"
#include "run/job/checked_report.h"
#include "run/run_spec.h"

namespace trainctl {
namespace {

struct CheckOptions {
  CommonOptions common;
  LaunchFlags launch;
  std::string dump;         // program, dot, or empty
  std::optional<int> rank;  // the rank whose programs are dumped
  bool measure = false;
};

int run_check(CheckOptions& options) {
  const RunSpec spec = load_run_spec(options.common, options.launch);
  const Checked checked = check_config(spec, options.launch, options.measure);
  if (checked.unfit && options.common.json) throw *checked.unfit;
  if (options.common.json) {
    answer(json_line(to_json(checked)));
  } else if (!options.dump.empty()) {
    answer(dumped_programs(checked, options.rank, options.dump == "dot"));
  } else if (!options.common.quiet) {
    answer(to_text(spec, checked));
  }
  if (checked.unfit) throw *checked.unfit;
  return 0;
}

}  // namespace

Subcommand check_subcommand() {
  return {"check", "Checks a config and shows its layers, parameters and memory, without starting anything",
          "trainctl check mnist.yaml --ranks 4 --set train.batch_size=256", [](CLI::App& app) {
            auto options = std::make_shared<CheckOptions>();
            add_config_options(app, options->common);
            add_output_options(app, options->common);
            add_launch_options(app, options->launch);
            app.add_flag("--measure", options->measure,
                         "Times the kernels that are not chosen yet, as the first run would, so that memory is exact");
            app.add_option("--dump", options->dump,
                           "Shows what a rank executes, op by op: program as text, dot as a graph of its training step "
                           "for Graphviz")
                ->check(one_of({"program", "dot"}));
            app.add_option("--dump-rank", options->rank, "The rank that --dump shows; default: the last one")
                ->check(whole_number_from(0));
            return [options] { return run_check(*options); };
          }};
}

}  // namespace trainctl
