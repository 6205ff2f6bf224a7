// Steps for a given time.
#include "parallel/bench/benched_run.h"

#include "core/base/clock.h"
#include "parallel/comm/text.h"

namespace trainctl {

void run_steps_until(double deadline, const BenchedRun& run, const std::function<void()>& step) {
  do {
    for (int i = 0; i < 8; ++i) step();
  } while (any_rank(run.world.rank() == 0 && seconds_now() < deadline, run.world, run.host));
}

}  // namespace trainctl
