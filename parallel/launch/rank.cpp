// Preparing the process of a rank.
#include "parallel/launch/rank.h"

#include <signal.h>
#include <sys/prctl.h>

#include <latch>
#include <system_error>
#include <thread>
#include <vector>

#include "parallel/launch/cores.h"

namespace trainctl {

int prepare_rank(const Situation& situation, const Variables& variables) {
  require_known_launcher(situation, variables);
  // The thread of mpirun that has made this process lives as long as mpirun: the supervisor asks for no others.
  if (situation.supervised) prctl(PR_SET_PDEATHSIG, SIGKILL);
  return take_share(situation, variables);
}

void require_threads(int count) {
  std::latch all(1);
  std::vector<std::jthread> threads;
  try {
    for (int i = 1; i < count; ++i) threads.emplace_back([&all] { all.wait(); });
  } catch (const std::system_error&) {
    all.count_down();
    throw;  // as it is: see failure_of
  }
  all.count_down();
}

}  // namespace trainctl
