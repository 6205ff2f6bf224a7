// trainctl verify-scaling: checks that a config produces the same weights, bit for bit, on several numbers of ranks.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "cmd/common_options.h"
#include "cmd/one_of.h"
#include "cmd/subcommands.h"
#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "core/spec/units.h"
#include "parallel/launch/plan.h"
#include "parallel/launch/ranks/report.h"
#include "run/run_spec.h"
#include "run/scaling/verify_scaling.h"

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

int verify_scaling(VerifyOptions& options) {
  const CommonOptions& common = options.common;
  const RunSpec spec = load_run_spec(options.common, options.launch);
  const Situation situation = find_situation(Variables::of_process());
  if (!options.directory.empty()) {
    return train_scaled(common, spec, options.launch, options.request, options.directory, situation);
  }
  if (situation.started_by != StartedBy::user) {
    throw Error(ErrorKind::config, "verify-scaling starts its ranks itself", "start it without mpirun or srun");
  }
  const ScalingComparison found =
      compare_scaling(common, spec, options.launch, options.ranks, options.request, common.quiet);
  if (common.json) {
    answer(json_line(to_json(found)));
  } else if (!common.quiet) {
    answer(to_text(found));
  }
  return found.difference ? exit_code(ErrorKind::answer_is_no) : 0;
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
