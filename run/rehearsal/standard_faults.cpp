// Plans when each fault happens: between two checkpoints, in the second half of the run.
#include "run/rehearsal/standard_faults.h"

#include "core/base/format.h"

namespace trainctl {

std::int64_t rehearsed_interval(std::int64_t steps) { return steps / 4; }

std::vector<RehearsedFault> standard_faults(const RehearsalPlan& plan) {
  const int last_rank = plan.ranks - 1;
  const std::int64_t saved = 2 * plan.checkpoint_every, step = saved + 2;
  const std::string kill = format("{{kill: {{rank: {}, step: {}}}}}", last_rank, step);
  std::vector<RehearsedFault> faults;
  faults.push_back({"kill", format("[{}]", kill), "kill"});
  if (plan.ranks > 1) {
    const std::string times = format("cluster.timeout={:g} s", plan.timeout);
    faults.push_back({"hang",
                      format("[{{hang: {{rank: {}, step: {}, for: {:g} s}}}}]", last_rank, step, 10 * plan.timeout),
                      "hang",
                      1,
                      Survival::same_weights,
                      {times}});
  }
  faults.push_back(
      {"torn checkpoint, kill", format("[{{torn_checkpoint: {{step: {}}}}}, {}]", saved, kill), "kill", 2});
  faults.push_back({"full disk", format("[{{full_disk: {{step: {}, saves: 1}}}}]", saved - 1), "full_disk"});
  faults.push_back(
      {"slow rank", format("[{{slow: {{rank: {}, step: {}, steps: 4, delay: 50 ms}}}}]", last_rank, step), "slow"});
  faults.push_back({"NaN", format("[{{nan: {{rank: {}, step: {}}}}}]", last_rank, step), "nan", 1,
                    plan.on_not_finite == "stop" ? Survival::diverges : Survival::completes});
  if (plan.hosts.size() > 1) {
    faults.push_back(
        {"lost host", format("[{{lose_host: {{host: {}, step: {}}}}}]", plan.hosts.back(), step), "lose_host"});
  }
  return faults;
}

}  // namespace trainctl
