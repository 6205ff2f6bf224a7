// Reads the environment variables that launchers set for their ranks.
#include "parallel/launch/situation.h"

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/table.h"
#include "parallel/launch/hosts.h"

namespace trainctl {
namespace {

// srun uses step ids from this number on for whole scripts and interactive shells.
constexpr unsigned long first_special_step = 0xfffffff0UL;

// Returns the number of tasks of the srun step that this process belongs to; 0 outside a step.
int tasks_of_step(const Variables& variables) {
  const std::string step = variables.text("SLURM_STEP_ID");
  if (step.empty() || step.size() > 10 || step.find_first_not_of("0123456789") != std::string::npos) return 0;
  if (std::stoul(step) >= first_special_step) return 0;
  return variables.number("SLURM_STEP_NUM_TASKS").value_or(0);
}

// Returns the number of tasks of the step on this node.
int tasks_on_node(const Variables& variables, int tasks) {
  const auto counts = expand_counts(variables.text("SLURM_STEP_TASKS_PER_NODE"));
  const auto node = static_cast<std::size_t>(variables.number("SLURM_NODEID").value_or(0));
  return counts && node < counts->size() ? (*counts)[node] : tasks;
}

// Returns the number of processes that torchrun has started, including this process; 0 if some of torchrun's variables
// are missing or this is the only process.
int processes_of_torchrun(const Variables& variables) {
  const bool complete = variables.has("MASTER_ADDR") && variables.number("RANK");
  const int count = complete ? variables.number("WORLD_SIZE").value_or(0) : 0;
  return count > 1 ? count : 0;
}

// Returns the command that starts one rank for each process that torchrun has started.
std::string command_instead_of_torchrun(const Variables& variables) {
  const int all = processes_of_torchrun(variables), here = variables.number("LOCAL_WORLD_SIZE").value_or(all);
  if (here >= all || here < 1) return format("trainctl run CONFIG --ranks {}", all);
  const std::string first = variables.text("MASTER_ADDR");
  return format("trainctl run CONFIG --hosts {}:{},HOST2:{},... with all {} hosts; give this command on one host only",
                is_host_name(first) ? first : "HOST1", here, here, (all + here - 1) / here);
}

// The environment variables in which mpirun of an MPI library, or srun with its PMI, tells the rank of a process.
struct RankVariables {
  const char *ranks, *rank, *local_rank, *local_ranks;  // set by mpirun
  const char* rank_of_srun;
  const char* srun_option;
};

RankVariables rank_variables(MpiLibrary mpi) {
  if (mpi == MpiLibrary::mpich) {
    return {"PMI_SIZE", "PMI_RANK", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", "PMI_RANK", "--mpi=pmi2"};
  }
  return {"OMPI_COMM_WORLD_SIZE",
          "OMPI_COMM_WORLD_RANK",
          "OMPI_COMM_WORLD_LOCAL_RANK",
          "OMPI_COMM_WORLD_LOCAL_SIZE",
          "PMIX_RANK",
          "--mpi=pmix"};
}

// Returns the number of ranks that mpirun of another library has started; 0 if no such mpirun has started this process,
// or this is the only rank.
int ranks_of_other_mpirun(const Variables& variables, MpiLibrary mpi) {
  const char* name = rank_variables(mpi == MpiLibrary::mpich ? MpiLibrary::openmpi4 : MpiLibrary::mpich).ranks;
  const int ranks = variables.number(name).value_or(1);
  return ranks > 1 ? ranks : 0;
}

}  // namespace

Situation find_situation(const Variables& variables, MpiLibrary mpi) {
  const RankVariables names = rank_variables(mpi);
  Situation situation;
  situation.status_file = variables.text(status_file_variable);
  situation.terminal_columns = variables.number(columns_variable);
  situation.terminal = variables.text(terminal_variable);
  situation.output_on_terminal = variables.number(output_variable) == 1;
  const std::optional<int> mpirun_ranks = variables.number(names.ranks);
  const std::optional<int> srun_rank = variables.number(names.rank_of_srun);
  const int tasks = tasks_of_step(variables);
  const bool of_srun = tasks > 0 && !variables.has(names.local_rank);
  if (mpirun_ranks && !of_srun) {
    situation.started_by = StartedBy::mpirun;
    situation.ranks = *mpirun_ranks;
    situation.rank = variables.number(names.rank).value_or(0);
    situation.local_rank = variables.number(names.local_rank).value_or(0);
    situation.local_ranks = variables.number(names.local_ranks).value_or(1);
    situation.supervised = !situation.status_file.empty();
    if (situation.supervised) {
      situation.restart = read_restart(variables.text(restart_variable));
      situation.launch = variables.text(launch_variable);
      if (situation.restart) situation.attempt = situation.restart->event.attempt;
    }
    situation.bound = !situation.supervised && variables.has(bound_variable);
  } else if (tasks > 0 && srun_rank) {
    situation.started_by = StartedBy::srun;
    situation.ranks = tasks;
    situation.rank = *srun_rank;
    situation.local_rank = variables.number("SLURM_LOCALID").value_or(0);
    situation.local_ranks = tasks_on_node(variables, tasks);
    const std::string binding = variables.text("SLURM_CPU_BIND_TYPE");
    situation.bound = !binding.empty() && binding != "none";
  } else if (const int others = ranks_of_other_mpirun(variables, mpi); tasks > 1 || others > 0) {
    situation.started_by = StartedBy::unknown;
    situation.ranks = tasks > 1 ? tasks : others;
    const char* rank = mpi == MpiLibrary::mpich ? "OMPI_COMM_WORLD_RANK" : "PMI_RANK";
    situation.rank = variables.number(tasks > 1 ? "SLURM_PROCID" : rank).value_or(0);
  } else if (const int processes = processes_of_torchrun(variables); processes > 0) {
    situation.started_by = StartedBy::unknown;
    situation.ranks = processes;
    situation.rank = *variables.number("RANK");
  }
  return situation;
}

void require_known_launcher(const Situation& situation, const Variables& variables, MpiLibrary mpi) {
  if (situation.started_by != StartedBy::unknown) return;
  if (tasks_of_step(variables) > 1) {
    throw Error(
        ErrorKind::config,
        format("srun started {} without {}: each would train alone as rank 0 of 1", counted(situation.ranks, "process"),
               mpi == MpiLibrary::mpich ? "PMI-2" : "PMIx"),
        format("use `srun {}`, or `trainctl run` without srun inside a batch script", rank_variables(mpi).srun_option));
  }
  if (ranks_of_other_mpirun(variables, mpi) == 0) {
    throw Error(ErrorKind::config,
                format("torchrun's variables (MASTER_ADDR, RANK, WORLD_SIZE) make this process {} of {}, but trainctl "
                       "starts its ranks itself",
                       situation.rank, situation.ranks),
                "start the same job by: " + command_instead_of_torchrun(variables));
  }
  const char* own = mpi == MpiLibrary::mpich ? "MPICH" : "OpenMPI";
  throw Error(ErrorKind::config,
              format("{} processes were started by mpirun of another MPI than {}", situation.ranks, own),
              format("let `trainctl run` start its ranks by itself, or use {}'s mpirun", own));
}

void require_requested_ranks(const Situation& situation, const std::optional<int>& stated) {
  if (!situation.is_rank() || situation.supervised || !stated || *stated == situation.ranks) return;
  const char* launcher = situation.started_by == StartedBy::srun ? "srun" : "mpirun";
  throw CollectiveError(
      ErrorKind::config, format("{} ranks are asked for, but {} has started {}", *stated, launcher, situation.ranks),
      format("start the same number with {}, or use --ranks auto to accept the ranks that it starts", launcher));
}

void require_world_size(const Situation& situation, int world_size) {
  if (!situation.is_rank() || situation.ranks == world_size) return;
  throw Error(ErrorKind::config, format("the launcher started {} ranks, but MPI found {}", situation.ranks, world_size),
              "trainctl was built with another MPI, or srun was called without --mpi=pmix (MPICH: --mpi=pmi2); let "
              "`trainctl run` start its ranks by itself");
}

}  // namespace trainctl
