// Faults of processes: a rank or all processes of a host are killed, a rank hangs, a rank is slow.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>
#include <string_view>
#include <thread>

#include "core/base/format.h"
#include "core/base/table.h"
#include "parallel/health/faults/fault.h"
#include "parallel/health/faults/table.h"

namespace trainctl {
namespace {

// The kernel's name of a process: that of its program, cut to 15 bytes; "" if there is none.
std::string name_of(pid_t process) {
  std::string name;
  std::getline(std::ifstream(format("/proc/{}/comm", process)), name);
  return name;
}

// Whether a process is the daemon that starts ranks on a host: OpenMPI 4's, OpenMPI 5's, MPICH's or SLURM's.
bool is_daemon(pid_t process) {
  constexpr std::array<std::string_view, 4> daemons = {"orted", "prted", "hydra_pmi_proxy", "slurmstepd"};
  return process > 1 && std::find(daemons.begin(), daemons.end(), name_of(process)) != daemons.end();
}

struct KillFault final : RankFault {
  static Keys<KillFault> keys() {
    return Keys<KillFault>("kill", "Kills a rank by the signal SIGKILL.")
        .required("rank", &KillFault::rank, fault_rank_meaning, at_least(0))
        .required("step", &KillFault::step, fault_step_meaning, at_least(1));
  }
  std::string text() const override { return format("rank {} is killed", rank); }
  void act(FaultScene& scene) const override {
    if (scene.rank() == rank) kill(getpid(), SIGKILL);
  }
};

struct HangFault final : RankFault {
  std::optional<Seconds> time;

  static Keys<HangFault> keys() {
    return Keys<HangFault>("hang", "Lets a rank do nothing.")
        .required("rank", &HangFault::rank, fault_rank_meaning, at_least(0))
        .required("step", &HangFault::step, fault_step_meaning, at_least(1))
        .key("for", &HangFault::time, "How long; none: for ever.", more_than(0));
  }
  std::string text() const override {
    return format("rank {} hangs{}", rank, time ? " for " + to_string(*time) : std::string());
  }
  void act(FaultScene& scene) const override {
    if (scene.rank() != rank) return;
    if (time) std::this_thread::sleep_for(std::chrono::duration<double>(time->value));
    while (!time) pause();
  }
};

struct SlowFault final : RankFault {
  std::int64_t steps = 1;
  Seconds delay{0.05};

  static Keys<SlowFault> keys() {
    return Keys<SlowFault>("slow", "Slows a rank down: it waits after each of its next steps.")
        .required("rank", &SlowFault::rank, fault_rank_meaning, at_least(0))
        .required("step", &SlowFault::step, fault_step_meaning, at_least(1))
        .required("steps", &SlowFault::steps, "The number of slow steps.", at_least(1))
        .key("delay", &SlowFault::delay, "How long the rank waits after each of them.", more_than(0));
  }
  std::string text() const override {
    return format("rank {} is slowed down by {} in each of {}", rank, to_string(delay), counted(steps, "step"));
  }
  void act(FaultScene& scene) const override {
    if (scene.rank() == rank) scene.delay_steps(steps, delay.value);
  }
};

struct LoseHostFault final : FaultOptions {
  std::string host;

  static Keys<LoseHostFault> keys() {
    return Keys<LoseHostFault>("lose_host", "Kills all ranks of a host and the daemon of their launcher there.")
        .required("host", &LoseHostFault::host, "The host, which must not be the one of rank 0.")
        .required("step", &LoseHostFault::step, fault_step_meaning, at_least(1));
  }
  std::string text() const override { return format("host {} is lost", host); }
  std::string why_impossible(const FaultScene& scene) const override {
    if (std::string why = why_no_host(host, scene); !why.empty()) return why;
    const pid_t launcher = scene.launcher();
    if (!scene.acts_for(host) || launcher == 0 || is_daemon(launcher)) return "";
    return format(
        "the ranks on {} were started by '{}' (process {}), which is no daemon of mpirun or srun and is not killed: "
        "start the run by trainctl, mpirun or srun without a program in between",
        host, name_of(launcher), launcher);
  }
  void act(FaultScene& scene) const override {
    if (scene.hosts()[static_cast<std::size_t>(scene.rank())] != host) return;
    if (scene.acts_for(host) && is_daemon(scene.launcher())) kill(scene.launcher(), SIGKILL);
    kill(getpid(), SIGKILL);
  }
};

}  // namespace

Section kill_section() { return KillFault::keys(); }
Section hang_section() { return HangFault::keys(); }
Section slow_section() { return SlowFault::keys(); }
Section lose_host_section() { return LoseHostFault::keys(); }

}  // namespace trainctl
