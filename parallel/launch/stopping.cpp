// The times of a stop.
#include "parallel/launch/stopping.h"

#include <signal.h>

#include <algorithm>

namespace trainctl {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds usual = seconds(20);       // for ranks to stop and save
constexpr milliseconds one_request = seconds(2);  // signals within it are one
constexpr milliseconds usual_start = seconds(5);  // after which ranks handle requests, if none is here to say so

}  // namespace

milliseconds time_to_stop(const Stopping& stopping) {
  if (stopping.again) return usual;
  if (stopping.needs.saves) {
    return std::max<milliseconds>(seconds(60), stopping.patience.count() > 0 ? stopping.patience : seconds(600));
  }
  return std::max(usual, milliseconds(static_cast<std::int64_t>(2e3 * stopping.needs.seconds)));
}

StopAction stop_action(const Stopping& stopping, Stopping::Clock::time_point now) {
  if (!stopping.asked) return StopAction::wait;
  if (stopping.at_once || (stopping.again && !stopping.needs.saves)) return StopAction::end_at_once;
  if (!stopping.relayed) {
    if (stopping.ready) return StopAction::relay;
    if (stopping.sees_ranks) return StopAction::end_unstarted;
    if (now - stopping.started >= usual_start) return StopAction::relay;
    return StopAction::wait;
  }
  const auto since = std::max(*stopping.asked, stopping.said.value_or(*stopping.asked));
  return now - since >= time_to_stop(stopping) ? StopAction::end_late : StopAction::wait;
}

void note_request(Stopping& stopping, int signal, Stopping::Clock::time_point now) {
  if (!stopping.asked) {
    stopping.asked = now;
    stopping.asked_by = signal;
  } else if (signal == SIGINT) {
    stopping.at_once = true;
  } else if (now - *stopping.asked >= one_request && !stopping.again) {
    stopping.again = true;
    stopping.said = now;
  }
}

}  // namespace trainctl
