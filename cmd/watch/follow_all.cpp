// Following all runs of a folder.
#include <sstream>

#include "cmd/watch/follow.h"
#include "cmd/watch/pause.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "io/metrics/watch/running_runs.h"
#include "io/metrics/watch/screen.h"
#include "io/metrics/watch/watch_text.h"
#include "parallel/launch/ranks/stop.h"

namespace trainctl {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

}  // namespace

int follow_all(const std::string& folder, bool quiet) {
  const StopRequest stop;
  RunningRuns running(folder);
  Screen screen(quiet);
  for (;;) {
    const std::vector<const WatchedRun*> runs = running.look();
    for (const std::string& problem : running.take_problems()) screen.print(problem);
    if (runs.empty()) {
      screen.print("no run is running in " + folder);
      return 0;
    }
    const std::vector<std::string> table = lines_of(runs_table(runs, wall_seconds()));
    if (!screen.is_live()) {
      for (const std::string& line : table) screen.print(line);
      return 0;
    }
    screen.show(table);
    if (stop.pending()) return exit_code(ErrorKind::interrupted);
    pause_for(1000);
  }
}

}  // namespace trainctl
