// Following one run.
#include <deque>

#include "cmd/watch/follow.h"
#include "cmd/watch/pause.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/format.h"
#include "io/metrics/due.h"
#include "io/metrics/watch/screen.h"
#include "io/metrics/watch/watch_text.h"
#include "parallel/launch/ranks/stop.h"

namespace trainctl {
namespace {

constexpr std::size_t earlier_epochs = 10;  // that are shown of those before the first look
constexpr double restart_seconds = 15;      // after which a process that is gone has no successor

// What is printed of a run, event by event.
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

  // Behind each look.
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

  // Of a run that cannot tell any more.
  void way_on() {
    const auto& checkpoint = run_.record().checkpoint;
    screen_.print(checkpoint ? format("trainctl run goes on from {}", checkpoint->path)
                             : "it has left no checkpoint to go on from");
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
  std::deque<std::string> earlier_;  // lines of the first look
  RunState state_ = RunState::starting;
  bool looked_ = false;
};

}  // namespace

int follow_run(const std::string& directory, bool quiet) {
  const StopRequest stop;
  WatchedRun run(directory);
  Screen screen(quiet);
  RunLines lines(run, screen);
  for (;;) {
    run.look([&lines](RunEvent event) { lines.take(event); });
    lines.end_look();
    if (run.state() == RunState::ended) {
      lines.summary();
      return 0;
    }
    if (run.state() == RunState::gone && run.silent_seconds() > restart_seconds) {
      lines.way_on();
      return 0;
    }
    if (stop.pending()) return exit_code(ErrorKind::interrupted);
    if (!screen.is_read()) return 0;
    screen.show(live_lines(run, screen.width(), wall_seconds()));
    pause_for(500);
  }
}

}  // namespace trainctl
