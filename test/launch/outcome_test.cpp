// What mpirun's messages mean, by table: texts of OpenMPI 4.1.
#include "parallel/launch/outcome.h"

#include "test/catch.h"

namespace trainctl::outcome_test {
namespace {

const std::string line = std::string(74, '-') + "\n";
const std::string killed = line + "mpirun noticed that process rank 3 with PID 812 on node n2 exited on signal 11 " +
                           "(Segmentation fault).\n" + line;
const std::string aborted = line +
                            "MPI_ABORT was invoked on rank 2 in communicator MPI_COMM_WORLD\nwith errorcode 3.\n\n" +
                            "NOTE: invoking MPI_ABORT causes Open MPI to kill all MPI processes.\n" + line;
const std::string ended = line + "Primary job  terminated normally, but 1 process returned\na non-zero exit code.\n" +
                          line + line +
                          "mpirun detected that one or more processes exited with non-zero status, thus causing\n" +
                          "the job to be terminated. The first process to do so was:\n\n" +
                          "  Process name: [[16740,1],1]\n  Exit code:    4\n" + line;
const std::string lost = line + "ORTE has lost communication with a remote daemon.\n\n" +
                         "  HNP daemon   : [[21504,0],0] on node n1\n  Remote daemon: [[21504,0],1] on node n2\n\n" +
                         line;
const std::string unreachable =
    line + "ORTE was unable to reliably start one or more daemons.\nThis usually is caused by:\n";
const std::string unknown = line + "There are not enough slots available.\n" + line;

bool contains(const RankStatus& status, const std::string& part) {
  return status.message.find(part) != std::string::npos;
}

TEST_CASE("the first cause is read from mpirun's messages") {
  CHECK(read_report(killed).rank == 3);
  CHECK(read_report(killed).signal == 11);
  CHECK(read_report(killed).host == "n2");
  CHECK(read_report(aborted).rank == 2);
  CHECK(read_report(aborted).exit_code == 3);
  CHECK(read_report(aborted + killed).exit_code == 3);  // the others are then killed
  CHECK(read_report(ended).rank == 1);
  CHECK(read_report(ended).exit_code == 4);
  CHECK(read_report(lost).host_lost);
  CHECK(read_report(lost).host == "n2");
  CHECK_FALSE(read_report(unknown).rank);
}

TEST_CASE("the ranks' status decides, whatever mpirun says") {
  CHECK(final_status(RankStatus{75, "stopped"}, ended, 1) == RankStatus{75, "stopped"});
  CHECK(final_status(RankStatus{0, ""}, killed, 139) == RankStatus{0, ""});
  CHECK(final_status(RankStatus{5, "replicas differ"}, aborted, 5) == RankStatus{5, "replicas differ"});
  const RankStatus both = final_status(RankStatus{5, "no answer from rank 3"}, killed, 139);
  CHECK(both.exit_code == 5);
  CHECK(contains(both, "rank 3 on n2 was killed by signal 11"));
  CHECK(contains(both, "no answer from rank 3"));
}

TEST_CASE("without a status mpirun's messages decide") {
  CHECK(final_status({}, "", 0) == RankStatus{0, ""});
  CHECK(final_status({}, aborted, 3) == RankStatus{3, ""});
  CHECK(final_status({}, ended, 4) == RankStatus{4, ""});
  CHECK(final_status({}, killed, 139).exit_code == 5);
  CHECK(contains(final_status({}, killed, 139), "rank 3 on n2 was killed by signal 11 (Segmentation fault)"));
  CHECK(final_status({}, lost, 1).exit_code == 5);
  CHECK(contains(final_status({}, lost, 1), "host n2 was lost"));
  CHECK(final_status({}, unreachable, 1).exit_code == 5);
  CHECK(contains(final_status({}, unreachable, 1), "not all hosts could be reached"));
  CHECK(final_status({}, unknown, 1).exit_code == 5);
  CHECK(contains(final_status({}, unknown, 1), "There are not enough slots available."));
  CHECK_FALSE(contains(final_status({}, unknown, 1), "-----"));
  CHECK(contains(final_status({}, "", 127), "code 127"));
}

TEST_CASE("a shortage is known by the words of MPI, PMIx and the loader, and told in ours") {
  const auto shortage = [](const std::string& text) { return find_shortage(text).value_or(RankStatus{}); };
  const RankStatus processes = shortage(
      line + "mpirun was unable to launch the specified application as it encountered an error:\n\n" +
      "Error: system limit exceeded on number of processes that can be started\nNode: n2\n\nwhen attempting\n" + line);
  CHECK(processes.exit_code == 6);
  CHECK(contains(processes, "no more processes or threads can be started on n2"));
  CHECK(contains(processes, "ulimit -u"));
  CHECK(contains(shortage("[n3:28074] [[340,0],0] Unable to start listen thread\n"), "started on n3"));
  CHECK(contains(shortage("[vm:1] [[1,0],0] ORTE_ERROR_LOG: The system limit on number of pipes a process can open\n"),
                 "ulimit -n"));
  CHECK(contains(shortage("file). It appears as if there is not enough space for /dev/shm/x (the shared-memory\n"),
                 "no room is left"));
  CHECK(contains(shortage("[vm:9] PMIX ERROR: OUT-OF-RESOURCE in file ../src/mca/common/dstore/dstore_segment.c at\n"),
                 "no room is left"));
  CHECK(contains(shortage("trainctl: error while loading shared libraries: libmpi.so.40: failed to map segment from "
                          "shared object\n"),
                 "memory ran out"));
  CHECK(contains(shortage("[vm:5] PMIX ERROR: ERROR in file ../src/mca/common/dstore/dstore_segment.c at line 274\n"),
                 "memory ran out"));
  CHECK_FALSE(find_shortage(killed + aborted + ended + lost + unreachable + unknown));
}

TEST_CASE("of words that nobody knows the first lines are told") {
  std::string long_winded = line + "Something odd came up.\nIt is like this:\n\n  and like that\n";
  for (int i = 0; i < 30; ++i) long_winded += "more of it\n";
  const RankStatus told = final_status({}, "[vm:1] [[1,0],0] ORTE_ERROR_LOG: Error in file x.c\n" + long_winded, 1);
  CHECK(told.exit_code == 5);
  CHECK(contains(told, "Something odd came up.\nIt is like this:\n  and like that"));
  CHECK_FALSE(contains(told, "more of it"));
  CHECK_FALSE(contains(told, "ORTE_ERROR_LOG"));
}

}  // namespace
}  // namespace trainctl::outcome_test
