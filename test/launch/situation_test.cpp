// How a process was started, by table of what launchers leave in the environment.
#include "parallel/launch/situation.h"

#include "core/base/error.h"
#include "test/catch.h"

namespace trainctl::situation_test {
namespace {

TEST_CASE("a process outside MPI is the user's") {
  const Situation situation = find_situation(Variables{{"PATH", "/usr/bin"}});
  CHECK(situation.started_by == StartedBy::user);
  CHECK_FALSE(situation.is_rank());
  CHECK(situation.ranks == 1);
}

TEST_CASE("a rank of mpirun knows its place, and whether trainctl supervises it") {
  Variables::Map values = {{"OMPI_COMM_WORLD_RANK", "5"},
                           {"OMPI_COMM_WORLD_SIZE", "8"},
                           {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                           {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                           {"PMIX_RANK", "5"},
                           {"OMPI_MCA_orte_bound_at_launch", "1"}};
  Situation situation = find_situation(Variables(values));
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
  situation = find_situation(Variables(values));
  CHECK(situation.supervised);
  CHECK_FALSE(situation.bound);  // by the supervisor's mpirun: ranks bind themselves
  CHECK(situation.status_file == "/tmp/x/status");
  CHECK(situation.terminal_columns == 120);
  CHECK(situation.terminal == "/dev/pts/7");
  CHECK_FALSE(situation.output_on_terminal);
  values["TRAINCTL_OUTPUT_TERMINAL"] = "1";
  CHECK(find_situation(Variables(values)).output_on_terminal);
}

TEST_CASE("ranks that are asked for and ranks that the user's own launcher starts must agree") {
  Variables::Map values = {{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "3"}};
  const Situation own = find_situation(Variables(values));
  CHECK_NOTHROW(require_stated_ranks(own, {}));
  CHECK_NOTHROW(require_stated_ranks(own, 3));
  try {
    require_stated_ranks(own, 2);
    FAIL("nothing was thrown");
  } catch (const CollectiveError& error) {
    CHECK(error.kind() == ErrorKind::config);
    CHECK(std::string(error.what()).find("2 ranks are asked for, but mpirun has started 3") == 0);
  }
  CHECK_NOTHROW(require_stated_ranks(find_situation(Variables{}), 2));  // which trainctl will start
  values["TRAINCTL_STATUS_FILE"] = "/tmp/x/status";
  CHECK_NOTHROW(require_stated_ranks(find_situation(Variables(values)), 2));  // it has decided
}

TEST_CASE("srun with PMIx starts ranks, without it processes of an unknown launcher") {
  Variables::Map values = {{"SLURM_JOB_ID", "7"},
                           {"SLURM_STEP_ID", "0"},
                           {"SLURM_STEP_NUM_TASKS", "5"},
                           {"SLURM_PROCID", "4"},
                           {"SLURM_LOCALID", "1"},
                           {"SLURM_NODEID", "1"},
                           {"SLURM_STEP_TASKS_PER_NODE", "3,2"},
                           {"SLURM_CPU_BIND_TYPE", "none"}};
  const Situation unknown = find_situation(Variables(values));
  CHECK(unknown.started_by == StartedBy::unknown);
  CHECK(unknown.rank == 4);
  CHECK_THROWS_AS(require_known_launcher(unknown, Variables(values)), Error);
  try {
    require_known_launcher(unknown, Variables(values));
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::config);
    CHECK(std::string(error.what()).find("srun --mpi=pmix") != std::string::npos);
  }

  values["PMIX_RANK"] = "4";
  const Situation rank = find_situation(Variables(values));
  CHECK(rank.started_by == StartedBy::srun);
  CHECK(rank.rank == 4);
  CHECK(rank.ranks == 5);
  CHECK(rank.local_rank == 1);
  CHECK(rank.local_ranks == 2);
  CHECK_FALSE(rank.bound);
  CHECK_NOTHROW(require_known_launcher(rank, Variables(values)));
  CHECK_NOTHROW(require_world_size(rank, 5));
  CHECK_THROWS_AS(require_world_size(rank, 1), Error);
}

TEST_CASE("a batch script, an interactive shell and a step of one task are the user's") {
  for (const char* step : {"", "4294967290", "4294967291"}) {
    const Variables variables({{"SLURM_JOB_ID", "7"},
                               {"SLURM_NTASKS", "4"},
                               {"SLURM_PROCID", "0"},
                               {"SLURM_STEP_ID", step},
                               {"SLURM_STEP_NUM_TASKS", "4"}});
    CHECK(find_situation(variables).started_by == StartedBy::user);
  }
  CHECK(find_situation(Variables{{"SLURM_STEP_ID", "3"}, {"SLURM_STEP_NUM_TASKS", "1"}}).started_by == StartedBy::user);
}

TEST_CASE("the mpirun of another MPI is refused") {
  const Variables variables({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}});
  const Situation situation = find_situation(variables);
  CHECK(situation.started_by == StartedBy::unknown);
  CHECK_THROWS_AS(require_known_launcher(situation, variables), Error);
}

std::string refusal_of(const Variables& variables) {
  const Situation situation = find_situation(variables);
  CHECK(situation.started_by == StartedBy::unknown);
  try {
    require_known_launcher(situation, variables);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::config);
    return error.what();
  }
  return "";
}

TEST_CASE("torchrun's processes are told the command that starts the same job") {
  Variables::Map values = {{"MASTER_ADDR", "node1"}, {"MASTER_PORT", "29500"}, {"RANK", "3"}, {"WORLD_SIZE", "8"}};
  CHECK(refusal_of(Variables(values)).find("trainctl run CONFIG --ranks 8") != std::string::npos);
  values["LOCAL_WORLD_SIZE"] = "4";
  CHECK(find_situation(Variables(values)).rank == 3);
  const std::string two_hosts = refusal_of(Variables(values));
  CHECK(two_hosts.find("--hosts node1:4,HOST2:4,... with all 2 hosts") != std::string::npos);
  values["MASTER_ADDR"] = "$(id)";
  CHECK(refusal_of(Variables(values)).find("--hosts HOST1:4") != std::string::npos);
}

TEST_CASE("torchrun's variables mean nothing to a lone process or to a rank of mpirun, srun or SLURM") {
  using Map = Variables::Map;
  CHECK(find_situation(Variables{{"MASTER_ADDR", "a"}, {"RANK", "0"}, {"WORLD_SIZE", "1"}}).started_by ==
        StartedBy::user);
  CHECK(find_situation(Variables{{"MASTER_ADDR", "a"}, {"WORLD_SIZE", "8"}}).started_by == StartedBy::user);
  const Map torch = {{"MASTER_ADDR", "a"}, {"RANK", "0"}, {"WORLD_SIZE", "2"}};
  Map mpirun = torch, srun = torch;
  mpirun.merge(Map{{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "2"}});
  srun.merge(Map{{"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "2"}, {"PMIX_RANK", "1"}});
  CHECK(find_situation(Variables(mpirun)).started_by == StartedBy::mpirun);
  CHECK(find_situation(Variables(srun)).started_by == StartedBy::srun);
}

}  // namespace
}  // namespace trainctl::situation_test
