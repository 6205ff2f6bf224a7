// Decides whether the ranks are started again after a failure.
#include "parallel/launch/supervisor/policy.h"

#include <algorithm>

#include "core/base/format.h"
#include "core/base/table.h"

namespace trainctl {
namespace {

// Returns whether another attempt may succeed after an attempt that ended like this. `is_first`: whether it was the
// first attempt, whose failure to start shows an error of the setup.
bool may_pass(const Outcome& outcome, bool is_first) {
  switch (outcome.kind) {
    case OutcomeKind::rank_silent:
    case OutcomeKind::rank_hung:
    case OutcomeKind::rank_killed:
    case OutcomeKind::rank_exited:
    case OutcomeKind::host_lost:
    case OutcomeKind::launcher_killed:
    case OutcomeKind::launcher_suspended:
      return true;
    case OutcomeKind::peer_error:
    case OutcomeKind::launcher_failed:
    case OutcomeKind::host_unreachable:
    case OutcomeKind::start_overdue:
      return !is_first || outcome.step.has_value();
    default:
      return false;
  }
}

// Returns how many of the last attempts made no progress.
int attempts_without_progress(const std::vector<Outcome>& outcomes) {
  std::int64_t furthest = 0;
  int without = 0;
  for (const Outcome& outcome : outcomes) {
    const std::int64_t step = outcome.step.value_or(0);
    without = step > furthest ? 0 : without + 1;
    furthest = std::max(furthest, step);
  }
  return without;
}

}  // namespace

Policy restart_policy(int max) {
  return [max](const std::vector<Outcome>& outcomes, const StopRequests& requests) -> NextAction {
    constexpr int most_without_progress = 4;
    constexpr std::chrono::milliseconds first_delay(1000);
    const int restarts = static_cast<int>(outcomes.size()) - 1;
    if (requests.asked || max == 0 || !may_pass(outcomes.back(), restarts == 0)) return {};
    if (restarts >= max) {
      return {.why_not = format("the run has started again {}, which is the most (cluster.restarts)",
                                counted(restarts, "time"))};
    }
    const int without = attempts_without_progress(outcomes);
    if (without >= most_without_progress) {
      return {.why_not = format("{} attempts in a row made no progress", without)};
    }
    return {.again = true, .delay = without == 0 ? std::chrono::milliseconds(0) : first_delay * (1 << (without - 1))};
  };
}

}  // namespace trainctl
