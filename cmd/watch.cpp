// trainctl watch: shows the progress of runs that other processes train.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "cmd/common_options.h"
#include "cmd/subcommands.h"
#include "core/base/error.h"
#include "core/base/json.h"
#include "io/metrics/watch/follow.h"
#include "io/metrics/watch/running_runs.h"
#include "io/metrics/watch/watch_text.h"
#include "parallel/launch/ranks/report.h"
#include "parallel/launch/ranks/stop.h"

namespace trainctl {
namespace {

struct WatchOptions {
  CommonOptions common;
  std::string directory;  // empty: all runs under runs/
};

constexpr const char* all_runs = "runs";

// Removes the slash that a shell appends when it completes a name.
std::string without_slash(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

Json present_state(const std::string& directory) {
  if (!directory.empty()) {
    WatchedRun run(directory);
    run.look([](RunEvent) {});
    return to_json(run);
  }
  RunningRuns running(all_runs);
  Json json{{"runs", Json::array()}};
  for (const WatchedRun* run : running.look()) json["runs"].push_back(to_json(*run));
  json["problems"] = running.take_problems();
  return json;
}

int watch(const WatchOptions& options) {
  const std::string directory = without_slash(options.directory);
  if (options.common.json) {
    answer(json_line(present_state(directory)));
    return 0;
  }
  const StopRequest stop;
  const auto stop_requested = [&stop] { return stop.pending(); };
  const bool quiet = options.common.quiet;
  const bool finished =
      directory.empty() ? follow_all(all_runs, quiet, stop_requested) : follow_run(directory, quiet, stop_requested);
  return finished ? 0 : exit_code(ErrorKind::interrupted);
}

}  // namespace

Subcommand watch_subcommand() {
  return {"watch", "Shows the progress of a run that another process trains, or of all such runs",
          "trainctl watch runs/mnist\n  trainctl watch", [](CLI::App& app) {
            auto options = std::make_shared<WatchOptions>();
            app.add_option("run", options->directory,
                           "The directory of a run to watch until it ends; default: shows a table of all running runs "
                           "under runs/")
                ->type_name("RUN_DIR");
            add_output_options(app, options->common);
            return [options] { return watch(*options); };
          }};
}

}  // namespace trainctl
