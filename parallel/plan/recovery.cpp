// Computes the times of a restart.
#include "parallel/plan/recovery.h"

#include <algorithm>
#include <variant>

#include "parallel/launch/host/resources.h"
#include "parallel/launch/watch/hang_rule.h"
#include "parallel/plan/costs.h"
#include "parallel/plan/prediction.h"

namespace trainctl {
namespace {

double daemon_seconds(int hosts) {
  constexpr double seconds_of_level = 1;
  constexpr int daemons_of_daemon = 64;
  int levels = 0;
  for (double reached = 1; reached < hosts; reached *= daemons_of_daemon) ++levels;
  return levels * seconds_of_level;
}

}  // namespace

Recovery predict_recovery(const Prediction& prediction, const PlanTarget& target, const RecoveryQuestion& question) {
  Recovery recovery{.failures = question.failures};
  if (const auto* given = std::get_if<Seconds>(&question.hang_timeout)) {
    recovery.detection = given->value;
  } else {
    const bool watched = std::get<HangChoice>(question.hang_timeout) == HangChoice::automatic;
    recovery.detection = watched ? automatic_hang_limit(prediction.step.seconds) : question.timeout;
  }
  recovery.start = daemon_seconds(question.hosts) +
                   start_seconds({.ranks = question.ranks, .cores = std::min(question.cores, question.ranks)});
  if (target.storage > 0) {
    recovery.reading = static_cast<double>(prediction.checkpoint_bytes) / target.storage;
    if (question.ranks > 1) {
      recovery.reading +=
          target.costs
              ->communication_seconds({.kind = Communication::Kind::all_gather,
                                       .ranks = question.ranks,
                                       .ranks_per_node = std::min(target.nodes.ranks_per_node, question.ranks),
                                       .bytes = prediction.checkpoint_bytes})
              .alone();
    }
  }
  recovery.again = question.interval / 2;
  return recovery;
}

}  // namespace trainctl
