// Attempt, outcome, policy.
#include "parallel/launch/supervisor/supervisor.h"

#include <utility>

#include "core/base/log.h"

namespace trainctl {

Outcome run_supervised(const LaunchPlan& plan, const std::vector<std::string>& command,
                       const SupervisionOptions& options, const Policy& policy) {
  Supervision supervision;  // from here on no request is lost
  std::vector<Outcome> outcomes;
  do {
    const Outcome& outcome = outcomes.emplace_back(run_attempt(plan, command, options, supervision));
    log::debug("the ranks have ended: " + to_string(outcome));
    if (!outcome.last_lines.empty()) log::debug("the last lines of their log:\n" + outcome.last_lines);
  } while (policy(outcomes, supervision.requests) == NextAction::again);
  return std::move(outcomes.back());
}

}  // namespace trainctl
