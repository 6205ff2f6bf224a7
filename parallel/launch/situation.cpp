// Reading what launchers leave in the environment of their ranks.
#include "parallel/launch/situation.h"

#include "core/base/error.h"
#include "core/base/format.h"
#include "parallel/launch/hosts.h"

namespace trainctl {
namespace {

// srun's steps for whole scripts and interactive shells have ids from this one upwards.
constexpr unsigned long first_special_step = 0xfffffff0UL;

// Tasks of the srun step that this process belongs to; 0 outside one.
int tasks_of_step(const Variables& variables) {
  const std::string step = variables.text("SLURM_STEP_ID");
  if (step.empty() || step.size() > 10 || step.find_first_not_of("0123456789") != std::string::npos) return 0;
  if (std::stoul(step) >= first_special_step) return 0;
  return variables.number("SLURM_STEP_NUM_TASKS").value_or(0);
}

// How many tasks of the step run on this node.
int tasks_on_node(const Variables& variables, int tasks) {
  const auto counts = expand_counts(variables.text("SLURM_STEP_TASKS_PER_NODE"));
  const auto node = static_cast<std::size_t>(variables.number("SLURM_NODEID").value_or(0));
  return counts && node < counts->size() ? (*counts)[node] : tasks;
}

// Processes that torchrun has started, of which this is one; 0 where torchrun's variables are not all there, or it is
// the only one.
int processes_of_torchrun(const Variables& variables) {
  const bool complete = variables.has("MASTER_ADDR") && variables.number("RANK");
  const int count = complete ? variables.number("WORLD_SIZE").value_or(0) : 0;
  return count > 1 ? count : 0;
}

// The command that starts as many ranks here as torchrun has started processes.
std::string command_in_place_of_torchrun(const Variables& variables) {
  const int all = processes_of_torchrun(variables), here = variables.number("LOCAL_WORLD_SIZE").value_or(all);
  if (here >= all || here < 1) return format("trainctl run CONFIG --ranks {}", all);
  const std::string first = variables.text("MASTER_ADDR");
  return format("trainctl run CONFIG --hosts {}:{},HOST2:{},... with all {} hosts, on one of them alone",
                is_host_name(first) ? first : "HOST1", here, here, (all + here - 1) / here);
}

}  // namespace

Situation find_situation(const Variables& variables) {
  Situation situation;
  situation.status_file = variables.text(status_file_variable);
  situation.terminal_columns = variables.number(columns_variable);
  situation.terminal = variables.text(terminal_variable);
  situation.output_on_terminal = variables.number(output_variable) == 1;
  const std::optional<int> mpirun_ranks = variables.number("OMPI_COMM_WORLD_SIZE");
  const std::optional<int> pmix_rank = variables.number("PMIX_RANK");
  const int tasks = tasks_of_step(variables);
  if (mpirun_ranks) {
    situation.started_by = StartedBy::mpirun;
    situation.ranks = *mpirun_ranks;
    situation.rank = variables.number("OMPI_COMM_WORLD_RANK").value_or(0);
    situation.local_rank = variables.number("OMPI_COMM_WORLD_LOCAL_RANK").value_or(0);
    situation.local_ranks = variables.number("OMPI_COMM_WORLD_LOCAL_SIZE").value_or(1);
    situation.supervised = !situation.status_file.empty();
    situation.bound = !situation.supervised && variables.has(bound_variable);
  } else if (tasks > 0 && pmix_rank) {
    situation.started_by = StartedBy::srun;
    situation.ranks = tasks;
    situation.rank = *pmix_rank;
    situation.local_rank = variables.number("SLURM_LOCALID").value_or(0);
    situation.local_ranks = tasks_on_node(variables, tasks);
    const std::string binding = variables.text("SLURM_CPU_BIND_TYPE");
    situation.bound = !binding.empty() && binding != "none";
  } else if (tasks > 1 || variables.number("PMI_SIZE").value_or(1) > 1) {
    situation.started_by = StartedBy::unknown;
    situation.ranks = tasks > 1 ? tasks : *variables.number("PMI_SIZE");
    situation.rank = variables.number(tasks > 1 ? "SLURM_PROCID" : "PMI_RANK").value_or(0);
  } else if (const int processes = processes_of_torchrun(variables); processes > 0) {
    situation.started_by = StartedBy::unknown;
    situation.ranks = processes;
    situation.rank = *variables.number("RANK");
  }
  return situation;
}

void require_known_launcher(const Situation& situation, const Variables& variables) {
  if (situation.started_by != StartedBy::unknown) return;
  if (tasks_of_step(variables) > 1) {
    throw Error(
        ErrorKind::config,
        format("srun started {} processes without PMIx: each would train alone as rank 0 of 1", situation.ranks),
        "use `srun --mpi=pmix`, or `trainctl run` without srun inside a batch script");
  }
  if (variables.number("PMI_SIZE").value_or(1) <= 1) {
    throw Error(ErrorKind::config,
                format("torchrun's variables (MASTER_ADDR, RANK, WORLD_SIZE) make this process {} of {}, and trainctl "
                       "starts its ranks itself",
                       situation.rank, situation.ranks),
                "start the same job by: " + command_in_place_of_torchrun(variables));
  }
  throw Error(ErrorKind::config,
              format("{} processes were started by the mpirun of another MPI than OpenMPI", situation.ranks),
              "let `trainctl run` start its ranks by itself, or use OpenMPI's mpirun");
}

void require_stated_ranks(const Situation& situation, const std::optional<int>& stated) {
  if (!situation.is_rank() || situation.supervised || !stated || *stated == situation.ranks) return;
  const char* launcher = situation.started_by == StartedBy::srun ? "srun" : "mpirun";
  throw CollectiveError(ErrorKind::config,
                        format("{} ranks are asked for, but {} has started {}", *stated, launcher, situation.ranks),
                        format("ask {} for as many, or use --ranks auto to take those that it starts", launcher));
}

void require_world_size(const Situation& situation, int world_size) {
  if (!situation.is_rank() || situation.ranks == world_size) return;
  throw Error(
      ErrorKind::config, format("the launcher started {} ranks, but MPI found {}", situation.ranks, world_size),
      "trainctl was built with another MPI, or srun lacks --mpi=pmix; let `trainctl run` start its ranks by itself");
}

}  // namespace trainctl
