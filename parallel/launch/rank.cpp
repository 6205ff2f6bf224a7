// Preparing the process of a rank.
#include "parallel/launch/rank.h"

#include <signal.h>
#include <sys/prctl.h>

#include "parallel/launch/cores.h"

namespace trainctl {

int prepare_rank(const Situation& situation, const Variables& variables) {
  require_known_launcher(situation, variables);
  // The thread of mpirun that has made this process lives as long as mpirun: the supervisor asks for no others.
  if (situation.supervised) prctl(PR_SET_PDEATHSIG, SIGKILL);
  return take_share(situation, variables);
}

}  // namespace trainctl
