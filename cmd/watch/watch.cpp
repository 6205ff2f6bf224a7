// trainctl watch: runs that are trained elsewhere, as they go on.
#include <CLI/CLI.hpp>
#include <memory>

#include "cmd/subcommands.h"
#include "cmd/watch/follow.h"
#include "core/base/json.h"
#include "core/base/json_fwd.h"
#include "io/metrics/watch/running_runs.h"
#include "io/metrics/watch/watch_text.h"
#include "parallel/launch/ranks/report.h"

namespace trainctl {
namespace {

struct WatchOptions {
  CommonOptions common;
  std::string directory;  // empty: all runs under runs/
};

constexpr const char* all_runs = "runs";

// Without the slash that a shell completes.
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
  return directory.empty() ? follow_all(all_runs, options.common.quiet) : follow_run(directory, options.common.quiet);
}

}  // namespace

Subcommand watch_subcommand() {
  return {"watch", "Shows a run that goes on elsewhere, or all that do", "trainctl watch runs/mnist\n  trainctl watch",
          [](CLI::App& app) {
            auto options = std::make_shared<WatchOptions>();
            app.add_option("run", options->directory,
                           "The directory of a run, which is followed to its end; without it: a table of those under "
                           "runs/ that are running")
                ->type_name("RUN_DIR");
            add_output_options(app, options->common);
            return [options] { return watch(*options); };
          }};
}

}  // namespace trainctl
