// Looks at runs again and again, and shows what has changed.
#include "io/metrics/watch/follow.h"

#include <poll.h>

#include <cstddef>
#include <deque>
#include <sstream>
#include <vector>

#include "core/base/clock.h"
#include "core/base/format.h"
#include "io/metrics/due.h"
#include "io/metrics/watch/running_runs.h"
#include "io/metrics/watch/screen.h"
#include "io/metrics/watch/watch_text.h"

namespace trainctl {
namespace {

// Waits for a time, or until a signal arrives.
void pause_for(int milliseconds) { poll(nullptr, 0, milliseconds); }

constexpr std::size_t earlier_epochs = 10;  // largest number of earlier epochs that the first look shows
constexpr double restart_seconds = 15;      // a process that has been gone for longer is not expected to restart

// Prints the lines of a run, event by event.
class RunLines {
 public:
  RunLines(const WatchedRun& run, Screen& screen) : run_(run), screen_(screen) {}

  void take(RunEvent event) {
    const RunRecord& record = run_.record();
    if (event == RunEvent::anew) screen_.print(run_.directory() + ": the run begins anew");
    if (event == RunEvent::start && looked_) screen_.print(head_line(run_));
    if (event == RunEvent::epoch) {
      add(epoch_line(*record.epoch, epoch_count(record.start->total_steps, record.start->steps_per_epoch)));
    }
    if (event == RunEvent::step && looked_ && !screen_.is_live() && rate_(seconds_now())) {
      screen_.print(step_line(progress_of(record)));
    }
  }

  // Called after each look at the run.
  void end_look() {
    const RunState state = run_.state();
    if (!looked_) {
      screen_.print(head_line(run_));
      for (const std::string& line : earlier_) screen_.print(line);
      if (run_.record().step && state != RunState::ended && !screen_.is_live()) {
        screen_.print(step_line(progress_of(run_.record())));
      }
    }
    looked_ = true;
    if (state != state_ && (state == RunState::silent || state == RunState::gone)) screen_.print(state_text(run_));
    state_ = state;
  }

  // Tells how to continue a run whose process is gone.
  void tell_how_to_continue() {
    const auto& checkpoint = run_.record().checkpoint;
    screen_.print(checkpoint ? format("trainctl run continues from {}", checkpoint->path)
                             : "the run has left no checkpoint to continue from");
  }

  void summary() {
    screen_.show({});
    const RunRecord& record = run_.record();
    const std::string checkpoint = record.checkpoint ? record.checkpoint->path : "";
    for (const std::string& line : summary_lines(*record.end, 0, checkpoint)) screen_.print(line);
    for (const std::string& line : device_lines(*record.start, *record.end, 0)) screen_.print(line);
  }

 private:
  void add(const std::string& line) {
    if (looked_) return screen_.print(line);
    earlier_.push_back(line);
    if (earlier_.size() > earlier_epochs) earlier_.pop_front();
  }

  const WatchedRun& run_;
  Screen& screen_;
  LineRate rate_;
  std::deque<std::string> earlier_;  // lines of the epochs that the first look shows
  RunState state_ = RunState::starting;
  bool looked_ = false;
};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

}  // namespace

bool follow_all(const std::string& folder, bool quiet, const std::function<bool()>& stop_requested) {
  RunningRuns running(folder);
  Screen screen(quiet);
  for (;;) {
    const std::vector<const WatchedRun*> runs = running.look();
    for (const std::string& problem : running.take_problems()) screen.print(problem);
    if (runs.empty()) {
      screen.print("no run is running in " + folder);
      return true;
    }
    const std::vector<std::string> table = lines_of(runs_table(runs, wall_seconds()));
    if (!screen.is_live()) {
      for (const std::string& line : table) screen.print(line);
      return true;
    }
    screen.show(table);
    if (stop_requested()) return false;
    pause_for(1000);
  }
}

bool follow_run(const std::string& directory, bool quiet, const std::function<bool()>& stop_requested) {
  WatchedRun run(directory);
  Screen screen(quiet);
  RunLines lines(run, screen);
  for (;;) {
    run.look([&lines](RunEvent event) { lines.take(event); });
    lines.end_look();
    if (run.state() == RunState::ended) {
      lines.summary();
      return true;
    }
    if (run.state() == RunState::gone && run.silent_seconds() > restart_seconds) {
      lines.tell_how_to_continue();
      return true;
    }
    if (stop_requested()) return false;
    if (!screen.is_read()) return true;
    screen.show(live_lines(run, screen.width(), wall_seconds()));
    pause_for(500);
  }
}

}  // namespace trainctl
