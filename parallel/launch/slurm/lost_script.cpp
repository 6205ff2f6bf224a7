// Asks SLURM whether a job has lost its batch script.
#include "parallel/launch/slurm/lost_script.h"

#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "parallel/launch/host/child_run.h"
#include "parallel/launch/host/process.h"
#include "parallel/launch/hosts.h"
#include "parallel/launch/slurm/job.h"
#include "parallel/launch/supervisor/signals.h"
#include "parallel/launch/variables.h"

namespace trainctl {

bool has_lost_script(const JobState& job, int restarts) {
  if (job.name != "RUNNING" || job.restarts != restarts || job.batch_node.empty()) return false;
  const std::vector<std::string> nodes = expand_names(job.nodes);
  return !nodes.empty() && std::find(nodes.begin(), nodes.end(), job.batch_node) == nodes.end();
}

void requeue_if_script_is_lost(const Variables& variables, const std::function<bool()>& goes_on) {
  const std::string job = variables.text("SLURM_JOB_ID"), scontrol = find_program("scontrol");
  if (job.empty() || scontrol.empty()) return;
  const int restarts = static_cast<int>(variables.number("SLURM_RESTART_COUNT").value_or(0));
  constexpr std::chrono::milliseconds longest_pause(30'000);
  std::chrono::milliseconds pause(1000);
  const Signals signals;
  try {
    while (goes_on()) {
      const std::optional<JobState> state = ask_for_job(signals, job);
      if (state && has_lost_script(*state, restarts)) {
        run_child(signals, {scontrol, "requeue", job}, [](std::string_view) {});
      } else if (state && (state->name != "RUNNING" || state->restarts != restarts)) {
        return;
      }
      pollfd request{signals.descriptor(), POLLIN, 0};
      poll(&request, 1, static_cast<int>(pause.count()));
      while (const int signal = signals.next()) {
        if (signal != SIGCHLD) return;
      }
      pause = std::min(2 * pause, longest_pause);
    }
  } catch (const Error&) {  // a request to stop, or no process can be started
  }
}

}  // namespace trainctl
