// Decides when ranks are asked to stop or are ended.
#include "parallel/launch/supervisor/stopping.h"

#include <signal.h>

#include <algorithm>

namespace trainctl {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds one_request = seconds(2);  // signals within this time are one request
constexpr milliseconds usual_start = seconds(5);  // time until ranks handle requests, if no rank here can report it

}  // namespace

void note_request(StopRequests& requests, int signal, StopRequests::Clock::time_point now) {
  if (!requests.asked) {
    requests.asked = now;
    requests.asked_by = signal;
  } else if (signal == SIGINT) {
    requests.at_once = true;
  } else if (now - *requests.asked >= one_request && !requests.again) {
    requests.again = now;
  }
}

milliseconds time_to_stop(const StopRequests& requests, const AskedRanks& ranks) {
  if (requests.again) return ranks.least.usual;
  if (ranks.needs.saves) {
    return std::max<milliseconds>(ranks.least.save, ranks.patience.count() > 0 ? ranks.patience : seconds(600));
  }
  return std::max(ranks.least.usual, milliseconds(static_cast<std::int64_t>(2e3 * ranks.needs.seconds)));
}

StopAction stop_action(const StopRequests& requests, const AskedRanks& ranks, AskedRanks::Clock::time_point now) {
  if (!requests.asked) return StopAction::wait;
  if (requests.at_once || (requests.again && !ranks.needs.saves)) return StopAction::end_at_once;
  if (!ranks.relayed) {
    if (ranks.ready) return StopAction::relay;
    if (ranks.sees_ranks) return StopAction::end_unstarted;
    if (now - ranks.started >= usual_start) return StopAction::relay;
    return StopAction::wait;
  }
  const auto asked = requests.again.value_or(*requests.asked);
  const auto since = std::max(asked, ranks.needs_changed.value_or(asked));
  return now - since >= time_to_stop(requests, ranks) ? StopAction::end_late : StopAction::wait;
}

}  // namespace trainctl
