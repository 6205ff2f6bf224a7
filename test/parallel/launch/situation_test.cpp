// Tests how a process finds out what started it, from the variables that launchers set.
#include "parallel/launch/situation.h"

#include "core/base/error.h"
#include "test/catch.h"

namespace trainctl::situation_test {
namespace {

// The situation of a program that is linked with OpenMPI.
Situation situation_of(const Variables& variables) { return find_situation(variables, MpiLibrary::openmpi4); }
void require_launcher(const Situation& situation, const Variables& variables) {
  require_known_launcher(situation, variables, MpiLibrary::openmpi4);
}

TEST_CASE("a process outside MPI was started by the user") {
  const Situation situation = situation_of(Variables{{"PATH", "/usr/bin"}});
  CHECK(situation.started_by == StartedBy::user);
  CHECK_FALSE(situation.is_rank());
  CHECK(situation.ranks == 1);
}

TEST_CASE("a rank of mpirun knows its number, and whether trainctl supervises it") {
  Variables::Map values = {{"OMPI_COMM_WORLD_RANK", "5"},
                           {"OMPI_COMM_WORLD_SIZE", "8"},
                           {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                           {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                           {"PMIX_RANK", "5"},
                           {"OMPI_MCA_orte_bound_at_launch", "1"}};
  Situation situation = situation_of(Variables(values));
  CHECK(situation.started_by == StartedBy::mpirun);
  CHECK(situation.rank == 5);
  CHECK(situation.ranks == 8);
  CHECK(situation.local_rank == 1);
  CHECK(situation.local_ranks == 4);
  CHECK_FALSE(situation.supervised);
  CHECK(situation.bound);

  values["TRAINCTL_STATUS_FILE"] = "/tmp/x/status";
  values["TRAINCTL_TERMINAL_COLUMNS"] = "120";
  values["TRAINCTL_TERMINAL"] = "/dev/pts/7";
  values["TRAINCTL_OUTPUT_TERMINAL"] = "0";
  situation = situation_of(Variables(values));
  CHECK(situation.supervised);
  CHECK_FALSE(situation.bound);  // under the supervisor ranks bind themselves
  CHECK(situation.status_file == "/tmp/x/status");
  CHECK(situation.terminal_columns == 120);
  CHECK(situation.terminal == "/dev/pts/7");
  CHECK_FALSE(situation.output_on_terminal);
  values["TRAINCTL_OUTPUT_TERMINAL"] = "1";
  CHECK(situation_of(Variables(values)).output_on_terminal);
}

TEST_CASE("the requested ranks and the ranks that the user's own launcher starts must agree") {
  Variables::Map values = {{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "3"}};
  const Situation own = situation_of(Variables(values));
  CHECK_NOTHROW(require_requested_ranks(own, {}));
  CHECK_NOTHROW(require_requested_ranks(own, 3));
  try {
    require_requested_ranks(own, 2);
    FAIL("nothing was thrown");
  } catch (const CollectiveError& error) {
    CHECK(error.kind() == ErrorKind::config);
    CHECK(std::string(error.what()).find("2 ranks are asked for, but mpirun has started 3") == 0);
  }
  CHECK_NOTHROW(require_requested_ranks(situation_of(Variables{}), 2));  // trainctl will start them
  values["TRAINCTL_STATUS_FILE"] = "/tmp/x/status";
  CHECK_NOTHROW(require_requested_ranks(situation_of(Variables(values)), 2));  // the supervisor has decided
}

TEST_CASE("srun starts ranks with PMIx, and without it processes of an unknown launcher") {
  Variables::Map values = {{"SLURM_JOB_ID", "7"},
                           {"SLURM_STEP_ID", "0"},
                           {"SLURM_STEP_NUM_TASKS", "5"},
                           {"SLURM_PROCID", "4"},
                           {"SLURM_LOCALID", "1"},
                           {"SLURM_NODEID", "1"},
                           {"SLURM_STEP_TASKS_PER_NODE", "3,2"},
                           {"SLURM_CPU_BIND_TYPE", "none"}};
  const Situation unknown = situation_of(Variables(values));
  CHECK(unknown.started_by == StartedBy::unknown);
  CHECK(unknown.rank == 4);
  CHECK_THROWS_AS(require_launcher(unknown, Variables(values)), Error);
  try {
    require_launcher(unknown, Variables(values));
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::config);
    CHECK(std::string(error.what()).find("srun --mpi=pmix") != std::string::npos);
  }

  values["PMIX_RANK"] = "4";
  const Situation rank = situation_of(Variables(values));
  CHECK(rank.started_by == StartedBy::srun);
  CHECK(rank.rank == 4);
  CHECK(rank.ranks == 5);
  CHECK(rank.local_rank == 1);
  CHECK(rank.local_ranks == 2);
  CHECK_FALSE(rank.bound);
  CHECK_NOTHROW(require_launcher(rank, Variables(values)));
  CHECK_NOTHROW(require_world_size(rank, 5));
  CHECK_THROWS_AS(require_world_size(rank, 1), Error);
}

TEST_CASE("batch scripts, interactive shells and steps of one task count as started by the user") {
  for (const char* step : {"", "4294967290", "4294967291"}) {
    const Variables variables({{"SLURM_JOB_ID", "7"},
                               {"SLURM_NTASKS", "4"},
                               {"SLURM_PROCID", "0"},
                               {"SLURM_STEP_ID", step},
                               {"SLURM_STEP_NUM_TASKS", "4"}});
    CHECK(situation_of(variables).started_by == StartedBy::user);
  }
  CHECK(situation_of(Variables{{"SLURM_STEP_ID", "3"}, {"SLURM_STEP_NUM_TASKS", "1"}}).started_by == StartedBy::user);
}

TEST_CASE("the mpirun of another MPI is refused") {
  const Variables variables({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}});
  const Situation situation = situation_of(variables);
  CHECK(situation.started_by == StartedBy::unknown);
  CHECK_THROWS_AS(require_launcher(situation, variables), Error);
}

TEST_CASE("MPICH's ranks are started by its mpiexec, or by srun with PMI-2") {
  const auto mpich = MpiLibrary::mpich;
  Variables::Map values = {
      {"PMI_RANK", "3"}, {"PMI_SIZE", "4"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}, {"PMI_FD", "8"}};
  const Situation rank = find_situation(Variables(values), mpich);
  CHECK(rank.started_by == StartedBy::mpirun);
  CHECK(rank.rank == 3);
  CHECK(rank.ranks == 4);
  CHECK(rank.local_rank == 1);
  CHECK(rank.local_ranks == 2);
  CHECK_FALSE(rank.supervised);
  values["TRAINCTL_STATUS_FILE"] = "/tmp/status";
  CHECK(find_situation(Variables(values), mpich).supervised);

  const Variables srun({{"SLURM_STEP_ID", "0"},
                        {"SLURM_STEP_NUM_TASKS", "5"},
                        {"SLURM_LOCALID", "1"},
                        {"SLURM_NODEID", "1"},
                        {"SLURM_STEP_TASKS_PER_NODE", "3,2"},
                        {"PMI_RANK", "4"},
                        {"PMI_SIZE", "5"}});
  CHECK(find_situation(srun, mpich).started_by == StartedBy::srun);
  CHECK(find_situation(srun, mpich).rank == 4);
  CHECK(find_situation(srun, mpich).local_ranks == 2);

  const Variables openmpi({{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}});
  const Situation other = find_situation(openmpi, mpich);
  CHECK(other.started_by == StartedBy::unknown);
  CHECK(other.rank == 1);
  try {
    require_known_launcher(other, openmpi, mpich);
    FAIL("it is refused");
  } catch (const Error& error) {
    CHECK(std::string(error.what()).find("mpirun of another MPI than MPICH") != std::string::npos);
  }
}

std::string refusal_of(const Variables& variables) {
  const Situation situation = situation_of(variables);
  CHECK(situation.started_by == StartedBy::unknown);
  try {
    require_launcher(situation, variables);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::config);
    return error.what();
  }
  return "";
}

TEST_CASE("the error for torchrun's processes names the command that starts the same job") {
  Variables::Map values = {{"MASTER_ADDR", "node1"}, {"MASTER_PORT", "29500"}, {"RANK", "3"}, {"WORLD_SIZE", "8"}};
  CHECK(refusal_of(Variables(values)).find("trainctl run CONFIG --ranks 8") != std::string::npos);
  values["LOCAL_WORLD_SIZE"] = "4";
  CHECK(situation_of(Variables(values)).rank == 3);
  const std::string two_hosts = refusal_of(Variables(values));
  CHECK(two_hosts.find("--hosts node1:4,HOST2:4,... with all 2 hosts") != std::string::npos);
  values["MASTER_ADDR"] = "$(id)";
  CHECK(refusal_of(Variables(values)).find("--hosts HOST1:4") != std::string::npos);
}

TEST_CASE("torchrun's variables are ignored by a single process and by a rank of mpirun, srun or SLURM") {
  using Map = Variables::Map;
  CHECK(situation_of(Variables{{"MASTER_ADDR", "a"}, {"RANK", "0"}, {"WORLD_SIZE", "1"}}).started_by ==
        StartedBy::user);
  CHECK(situation_of(Variables{{"MASTER_ADDR", "a"}, {"WORLD_SIZE", "8"}}).started_by == StartedBy::user);
  const Map torch = {{"MASTER_ADDR", "a"}, {"RANK", "0"}, {"WORLD_SIZE", "2"}};
  Map mpirun = torch, srun = torch;
  mpirun.merge(Map{{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "2"}});
  srun.merge(Map{{"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "2"}, {"PMIX_RANK", "1"}});
  CHECK(situation_of(Variables(mpirun)).started_by == StartedBy::mpirun);
  CHECK(situation_of(Variables(srun)).started_by == StartedBy::srun);
}

}  // namespace
}  // namespace trainctl::situation_test
