// trainctl inspect: shows the contents of a checkpoint and verifies them, compares two checkpoints, or shows what the
// ranks of a run did last.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "cmd/common_options.h"
#include "cmd/subcommands.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/json_fwd.h"
#include "core/base/log.h"
#include "io/checkpoint/comparison.h"
#include "io/checkpoint/inspection.h"
#include "io/checkpoint/load.h"
#include "parallel/health/flights.h"
#include "parallel/launch/ranks/report.h"
#include "run/job/trained_network.h"

namespace trainctl {
namespace {

struct InspectOptions {
  CommonOptions common;
  std::string path;
  std::string other;    // the checkpoint to compare with; empty: none
  bool flight = false;  // shows the flight records of the run
};

// Throws Error{config} if the path does not exist.
void require_existing(const std::string& path) {
  if (exists(path)) return;
  throw Error(ErrorKind::config, SourceLocation{path}, "there is no such directory",
              "name a checkpoint, or the directory of a run");
}

// Compares two checkpoints, which are verified while they are read.
int compare(const InspectOptions& options) {
  const std::string first = run_of(options.path), second = run_of(options.other);
  require_existing(first);
  require_existing(second);
  const CheckpointComparison comparison = compare(load_named_checkpoint(first), load_named_checkpoint(second));
  if (options.common.json) {
    answer(json_line(to_json(comparison)));
  } else if (!options.common.quiet) {
    answer(to_text(comparison));
  }
  return comparison.equal() ? 0 : exit_code(ErrorKind::answer_is_no);
}

int inspect(const std::string& path, const CommonOptions& options) {
  const std::vector<Inspection> found = inspect_all(run_of(path));
  const bool ok = std::all_of(found.begin(), found.end(), [](const auto& one) { return one.problem.empty(); });
  std::string text;
  if (options.json) {
    Json json{{"ok", ok}, {"checkpoints", Json::array()}};
    for (const Inspection& one : found) json["checkpoints"].push_back(to_json(one));
    text = json_text(json, 2) + "\n";
  } else {
    if (found[0].manifest && !options.quiet) text = describe(found[0]);
    for (const Inspection& one : found) {
      text += (one.problem.empty() ? one.path + ": whole, every hash verified" : one.problem) + "\n";
    }
  }
  answer(text);
  return ok ? 0 : exit_code(ErrorKind::answer_is_no);
}

// Shows what the ranks of a run did last.
int show_flights(const std::string& path, const CommonOptions& options) {
  const std::string run = run_of(path);
  require_existing(run);
  const Flights flights = read_flights(run + "/flight");
  if (options.json) {
    answer(json_text(flights_json(flights), 2) + "\n");
  } else if (!options.quiet) {
    answer(describe_flights(flights));
  }
  return 0;
}

int inspect(const InspectOptions& options) {
  if (options.flight) return show_flights(options.path, options.common);
  return options.other.empty() ? inspect(options.path, options.common) : compare(options);
}

}  // namespace

Subcommand inspect_subcommand() {
  return {
      "inspect",
      "Shows the contents of a checkpoint and verifies them, compares two checkpoints, or shows what the ranks did "
      "last",
      "trainctl inspect runs/mnist\n  trainctl inspect runs/mnist runs/mnist-2 --json\n  trainctl inspect runs/mnist "
      "--flight",
      [](CLI::App& app) {
        auto options = std::make_shared<InspectOptions>();
        app.add_option("path", options->path,
                       "A checkpoint; or a run directory, or a config for its newest run: shows the newest checkpoint "
                       "in detail and verifies all")
            ->required()
            ->type_name("RUN_DIR|CHECKPOINT|CONFIG");
        auto* const other =
            app.add_option("other", options->other,
                           "Another checkpoint: compares both tensor by tensor, and exits with code 1 if they differ")
                ->type_name("RUN_DIR|CHECKPOINT|CONFIG");
        app.add_flag("--flight", options->flight,
                     "Shows from the flight records in a run directory what each rank did last, and the first "
                     "collective that only some ranks have entered")
            ->excludes(other);
        add_output_options(app, options->common);
        return [options] { return inspect(*options); };
      }};
}

}  // namespace trainctl
