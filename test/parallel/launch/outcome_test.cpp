// Tests how mpirun's messages are interpreted, with texts of OpenMPI 4.1 and 5.0 and of MPICH 4.0.
#include "parallel/launch/supervisor/outcome.h"

#include <signal.h>
#include <stdlib.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <random>
#include <vector>

#include "parallel/launch/supervisor/policy.h"
#include "parallel/launch/supervisor/ranks_output.h"
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

MpirunReport read_report(const std::string& messages) { return mpirun_of(MpiLibrary::openmpi4)->report(messages); }

Failure status_of(const std::optional<RankStatus>& status, const std::string& messages, int mpirun_code) {
  return outcome_of({status, read_report(messages), messages, "", mpirun_code}).end;
}

bool contains(const Failure& end, const std::string& part) { return end.message.find(part) != std::string::npos; }

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
  const std::string closed = line +
                             "A process or daemon was unable to complete a TCP connection\nto another process:\n" +
                             "  Local host:    h3\n  Remote host:   h1\nThis is usually caused by a firewall\n" + line;
  CHECK(contains(status_of({}, closed, 1), "h3 cannot connect to h1: all TCP ports must be open"));
  const std::string rank =
      "[[46128,1],1][btl_tcp_endpoint.c:793:mca_btl_tcp_endpoint_start_connect] from h2 to: h3 "
      "Unable to connect to the peer 10.77.0.3 on port 1024: Invalid argument\n";
  CHECK(contains(status_of({}, rank, 255), "h2 cannot connect to h3"));
}

TEST_CASE("the messages of OpenMPI 5 are understood") {
  const auto report = [](const std::string& text) { return mpirun_of(MpiLibrary::openmpi5)->report(text); };
  const MpirunReport dead = report(line + "prterun noticed that process rank 1 with PID 65 on node n2 exited on\n" +
                                   "signal 9 (Killed).\n" + line);
  CHECK(dead.rank == 1);
  CHECK(dead.host == "n2");
  CHECK(dead.signal == 9);
  const MpirunReport gone = report(line + "prterun detected that one or more processes exited with non-zero status,\n" +
                                   "thus causing the job to be terminated. The first process to do so was:\n\n" +
                                   "   Process name: [prterun-vm-37@1,1]\n   Exit code:    3\n" + line);
  CHECK(gone.rank == 1);
  CHECK(gone.exit_code == 3);
  const MpirunReport aborting = report(line + "MPI_ABORT was invoked on rank 2 in communicator MPI_COMM_WORLD\n" +
                                       "  Proc: [[25397,1],1]\n  Errorcode: 5\n\nNOTE: invoking MPI_ABORT causes\n");
  CHECK(aborting.rank == 2);
  CHECK(aborting.exit_code == 5);
  // Its messages appear between the ranks' messages on standard error.
  const std::string two = line + "prterun noticed something\n" + line + line + "MPI_ABORT was invoked\n\nNOTE\n" + line;
  std::string errors = "one\n" + two + "two\n" + line;
  const std::string said = mpirun_of(MpiLibrary::openmpi5)->take_own_messages(errors);
  CHECK(errors == "one\ntwo\n" + line);
  CHECK(said.find("noticed") != std::string::npos);
  CHECK(said.find("MPI_ABORT") != std::string::npos);
  std::string of_4 = two;
  CHECK(mpirun_of(MpiLibrary::openmpi4)->take_own_messages(of_4).empty());
}

TEST_CASE("MPICH prints its messages into the output of the ranks, and names a process instead of a rank") {
  const std::unique_ptr<Mpirun> mpich = mpirun_of(MpiLibrary::mpich);
  const std::string bar = std::string(83, '=') + "\n";
  const std::string frame = "\n" + bar + "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n" +
                            "=   PID 9666 RUNNING AT n2\n=   EXIT CODE: 9\n=   CLEANING UP REMAINING PROCESSES\n" +
                            "=   YOU CAN IGNORE THE BELOW CLEANUP MESSAGES\n" + bar +
                            "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)\n" +
                            "This typically refers to a problem with your application.\n" +
                            "Please see the FAQ page for debugging suggestions\n";
  const std::size_t piece = GENERATE(1, 7, 4096);  // the text arrives in pieces of any size
  const std::string all = "step 12\n== a title ==\n=\n" + frame;
  std::string output, said;
  for (std::size_t at = 0; at < all.size(); at += piece) {
    std::string text = all.substr(at, piece);
    said += mpich->take_own_messages(text);
    output += text;
  }
  CHECK(output == "step 12\n== a title ==\n=\n\n");
  const MpirunReport dead = mpich->report(said);
  CHECK_FALSE(dead.rank);
  CHECK(dead.process == 9666);
  CHECK(dead.host == "n2");
  CHECK(dead.signal == 9);
  CHECK(contains(outcome_of({{}, dead, said, "", 9}).end, "a rank on n2 was killed by signal 9 (Killed)"));
  MpirunReport found = dead;
  found.rank = 1;
  CHECK(contains(outcome_of({{}, found, said, "", 9}).end, "rank 1 on n2 was killed by signal 9 (Killed)"));

  // The first rank that ended by itself is the cause, not a rank that mpiexec has killed afterwards.
  const MpirunReport own = mpich->report(frame + "[mpiexec@n2] Exit codes: [n2] 0,1536,9\n");
  CHECK(own.rank == 1);
  CHECK(own.exit_code == 6);
  CHECK(mpich->report(frame + "[mpiexec@n2] Exit codes: [n2] 0,9,1280\n").signal == 9);  // rank 2 reacted to rank 1

  std::string errors =
      "before\nAbort(5) on node 1 (rank 1 in comm 0): application called MPI_Abort(MPI_COMM_WORLD, 5) - process 1\n"
      "[mpiexec@n1] Sending Ctrl-C to processes as requested\n[7] is a footnote\n";
  const std::string told = mpirun_of(MpiLibrary::mpich)->take_own_messages(errors);
  CHECK(errors == "before\n[7] is a footnote\n");
  CHECK(mpich->report(told).rank == 1);
  CHECK(mpich->report(told).exit_code == 5);
}

TEST_CASE("a line that MPICH writes in several pieces is no output of the ranks") {
  const std::unique_ptr<Mpirun> mpich = mpirun_of(MpiLibrary::mpich);
  const std::size_t piece = GENERATE(1, 5, 12, 4096);
  const std::string all = "{\"report\": 1}\n[mpiexec@vm] Exit codes: [vm] 0,0\n[mp3] Ab";
  std::string output, said, incomplete;
  for (std::size_t at = 0; at < all.size(); at += piece) {
    std::string text = incomplete + all.substr(at, piece);
    incomplete = take_incomplete_line(text, mpich->line_beginnings());
    said += mpich->take_own_messages(text);
    output += text;
  }
  CHECK(output + incomplete == "{\"report\": 1}\n[mp3] Ab");
  CHECK(said.find("[vm] 0,0") != std::string::npos);
  std::string step = "step 12 of 40";  // not a line of mpirun: shown at once
  CHECK(take_incomplete_line(step, mpich->line_beginnings()).empty());
}

TEST_CASE("the status of the ranks decides, whatever mpirun prints") {
  CHECK(status_of(RankStatus{75, "stopped"}, ended, 1) == Failure{75, "stopped"});
  CHECK(status_of(RankStatus{0, ""}, killed, 139) == Failure{0, ""});
  CHECK(status_of(RankStatus{5, "replicas differ"}, aborted, 5) == Failure{5, "replicas differ"});
  const Failure both = status_of(RankStatus{5, "no answer from rank 3"}, killed, 139);
  CHECK(both.exit_code == 5);
  CHECK(contains(both, "rank 3 on n2 was killed by signal 11"));
  CHECK(contains(both, "no answer from rank 3"));
}

TEST_CASE("the signal that killed mpirun is named") {
  const Failure killed_by_user = status_of({}, "", 128 + 9);
  CHECK(killed_by_user.exit_code == 5);
  CHECK(killed_by_user.message == "mpirun was killed by signal 9 (Killed), and the ranks ended with it");
  CHECK(status_of({}, "", 128 + 11).message.find("signal 11 (Segmentation fault)") != std::string::npos);
  CHECK(status_of({}, "", 133 + 9).message == "mpirun ended with code 142 and without a message");
}

TEST_CASE("without a status mpirun's messages decide") {
  CHECK(status_of({}, "", 0).exit_code == 5);
  CHECK(contains(status_of({}, "", 0), "no rank has reported the end of the run"));
  CHECK(status_of({}, aborted, 3) == Failure{3, ""});
  CHECK(status_of({}, ended, 4) == Failure{4, ""});
  CHECK(status_of({}, killed, 139).exit_code == 5);
  CHECK(contains(status_of({}, killed, 139), "rank 3 on n2 was killed by signal 11 (Segmentation fault)"));
  CHECK(status_of({}, lost, 1).exit_code == 5);
  CHECK(contains(status_of({}, lost, 1), "host n2 was lost"));
  CHECK(status_of({}, unreachable, 1).exit_code == 5);
  CHECK(contains(status_of({}, unreachable, 1), "not all hosts could be reached"));
  CHECK(status_of({}, unknown, 1).exit_code == 5);
  CHECK(contains(status_of({}, unknown, 1), "There are not enough slots available."));
  CHECK_FALSE(contains(status_of({}, unknown, 1), "-----"));
  CHECK(contains(status_of({}, "", 127), "code 127"));
}

TEST_CASE("the first rank that ended shows whether a run was stopped before it trained") {
  const auto stopped_unstarted = [](const std::optional<RankStatus>& status, const MpirunReport& report, int code) {
    const AttemptTraces traces{
        .status = status, .report = report, .messages = {}, .mpirun_code = code, .asked_to_stop = true, .step = {}};
    const Outcome outcome = outcome_of(traces);
    CHECK((outcome.kind == OutcomeKind::stopped_unstarted) == (outcome.end.message == "stopped before the first step"));
    return outcome.kind == OutcomeKind::stopped_unstarted;
  };
  const auto unstarted = [&](const std::optional<RankStatus>& status, std::optional<int> code,
                             std::optional<int> signal) {
    return stopped_unstarted(status, {.rank = 1, .exit_code = code, .signal = signal}, 1);
  };
  CHECK(unstarted({}, 75, {}));
  CHECK(unstarted({}, {}, SIGUSR1));                          // it did not handle requests yet
  CHECK(unstarted(RankStatus{5, "rank 1 is gone"}, 75, {}));  // the error of another rank that noticed it
  CHECK(stopped_unstarted({}, {}, 75));
  CHECK(stopped_unstarted({}, {}, 0));  // MPICH's launcher
  CHECK_FALSE(stopped_unstarted({}, {}, 1));
  CHECK_FALSE(stopped_unstarted({}, {.signal = SIGKILL}, 0));
  CHECK_FALSE(unstarted({}, 3, {}));
  CHECK_FALSE(unstarted({}, {}, SIGKILL));
  CHECK_FALSE(unstarted(RankStatus{75, ""}, 75, {}));  // it has saved a checkpoint
  CHECK_FALSE(unstarted(RankStatus{5, "no answer"}, 5, {}));
}

// What an attempt left, and the expected outcome.
struct Case {
  std::optional<RankStatus> status;
  std::string messages;
  int mpirun_code;
  OutcomeKind kind;
  int exit_code;
  std::optional<int> rank = {};
  std::string host = {};
  std::optional<int> signal = {};
};

TEST_CASE("the outcome of every attempt has its kind, and rank, host and signal if they are known") {
  const std::string cannot_connect =
      line +
      "A process or daemon was unable to complete a TCP connection\nto another process:\n"
      "  Local host:    h3\n  Remote host:   h1\n" +
      line;
  const std::string other_code = ended.substr(0, ended.rfind("4\n")) + "42\n" + line;
  const auto told = [](int code, const FailedRank& failed = {}) { return RankStatus{code, "told", {}, failed}; };
  const std::vector<Case> cases = {
      {told(0), "", 0, OutcomeKind::completed, 0},
      {told(1, {0, "n1"}), aborted, 1, OutcomeKind::failed, 1, 0, "n1"},
      {told(2), "", 2, OutcomeKind::config_error, 2},
      {told(3, {1, "n2"}), aborted, 3, OutcomeKind::data_error, 3, 1, "n2"},
      {told(4), "", 4, OutcomeKind::diverged, 4},
      {told(6, {2, "n2"}), killed, 139, OutcomeKind::resource_error, 6, 2, "n2"},
      {told(75), "", 75, OutcomeKind::stopped, 75},
      {told(130), "", 130, OutcomeKind::interrupted, 130},
      {told(5, {2, "n2"}), aborted, 5, OutcomeKind::peer_error, 5, 2, "n2"},
      {told(5, {3, "n2", 7, true}), aborted, 5, OutcomeKind::rank_silent, 5, 3, "n2"},
      {told(5, {3, "n2", 7, true}), killed, 139, OutcomeKind::rank_killed, 5, 3, "n2", SIGSEGV},
      {told(5, {1, "n2", 7, true}), lost, 1, OutcomeKind::host_lost, 5, {}, "n2"},
      {{}, killed, 139, OutcomeKind::rank_killed, 5, 3, "n2", SIGSEGV},
      {{}, lost, 1, OutcomeKind::host_lost, 5, {}, "n2"},
      {{}, unreachable, 1, OutcomeKind::host_unreachable, 5},
      {{}, cannot_connect, 1, OutcomeKind::host_unreachable, 5, {}, "h3"},
      {{}, aborted, 3, OutcomeKind::data_error, 3, 2},
      {{}, ended, 4, OutcomeKind::diverged, 4, 1},
      {{}, other_code, 42, OutcomeKind::rank_exited, 5, 1},
      {{}, "", 6, OutcomeKind::resource_error, 6},
      {{}, "", 0, OutcomeKind::launcher_failed, 5},
      {{}, unknown, 1, OutcomeKind::launcher_failed, 5},
      {{}, "", 127, OutcomeKind::launcher_failed, 5},
      {{}, "", 128 + SIGKILL, OutcomeKind::launcher_killed, 5, {}, "", SIGKILL},
      {{}, "Too many open files\n", 1, OutcomeKind::resource_error, 6},
  };
  for (const Case& each : cases) {
    const Outcome outcome =
        outcome_of({each.status, read_report(each.messages), each.messages, "", each.mpirun_code, false, 0, 120});
    CAPTURE(&each - cases.data(), each.messages, outcome.end.message);
    CHECK(name_of(outcome.kind) == name_of(each.kind));
    CHECK(outcome.end.exit_code == each.exit_code);
    CHECK(outcome.rank == each.rank);
    CHECK(outcome.host == each.host);
    CHECK(outcome.signal == each.signal);
    const bool own_step = each.status && each.status->failed.step;
    CHECK((outcome.kind == OutcomeKind::resource_error || outcome.step == (own_step ? 7 : 120)));
    const bool death = outcome.kind == OutcomeKind::rank_killed || outcome.kind == OutcomeKind::rank_exited ||
                       outcome.kind == OutcomeKind::host_lost;
    CHECK(contains(outcome.end, own_step ? "; the last known step is 7" : "; the last known step is 120") == death);
  }
}

TEST_CASE("every outcome has an exit code of trainctl, and a message unless a rank has printed its own") {
  std::mt19937 random(5);
  const std::vector<std::string> texts = {"",   killed,      aborted, ended,
                                          lost, unreachable, unknown, "no words of mpirun\n"};
  for (int i = 0; i < 2000; ++i) {
    AttemptTraces traces;
    if (random() % 2 == 0) {
      constexpr std::array codes = {0, 1, 2, 3, 4, 5, 6, 75, 130};
      traces.status = RankStatus{codes[random() % codes.size()], random() % 2 ? "told" : ""};
      if (random() % 2 == 0) traces.status->failed = {static_cast<int>(random() % 4), "n2", 12, random() % 2 == 0};
    }
    traces.messages = texts[random() % texts.size()] + texts[random() % texts.size()];
    traces.report = read_report(traces.messages);
    traces.mpirun_code = static_cast<int>(random() % 256);
    traces.asked_to_stop = random() % 2 == 0;
    traces.output_error = random() % 4 == 0 ? ENOSPC : 0;
    const Outcome outcome = outcome_of(traces);
    CAPTURE(i, traces.messages, traces.mpirun_code, to_string(outcome));
    CHECK((outcome.end.exit_code == 0) == (outcome.kind == OutcomeKind::completed));
    CHECK((outcome.kind != OutcomeKind::completed || (traces.status && traces.output_error == 0)));
    CHECK((outcome.kind != OutcomeKind::stopped_unstarted || traces.asked_to_stop));
    CHECK((outcome.kind != OutcomeKind::rank_killed || outcome.signal));
    CHECK((outcome.kind != OutcomeKind::host_lost || !outcome.host.empty()));
    // Without a status an outcome has a message, unless an exit code of trainctl shows that a rank has printed its own.
    if (!traces.status && outcome.end.message.empty()) CHECK((traces.report.exit_code || traces.mpirun_code > 1));
  }
}

TEST_CASE("an outcome is described in one line") {
  CHECK(to_string(Outcome{}) == "completed (exit code 0)");
  CHECK(to_string(Outcome{OutcomeKind::rank_killed, {5}, 1, "n2", 9, 120}) ==
        "rank_killed (exit code 5): rank 1 on n2, signal 9, step 120");
  CHECK(to_string(Outcome{.kind = OutcomeKind::host_lost, .end = {5}, .host = "n2"}) ==
        "host_lost (exit code 5): host n2");
  CHECK(name_of(OutcomeKind::launcher_suspended) == "launcher_suspended");
}

TEST_CASE("the message about a killed rank says whether the kernel has killed a process for lack of memory") {
  AttemptTraces traces{.report = {.rank = 1, .signal = 9, .host = "n2"}, .mpirun_code = 137};
  CHECK(contains(outcome_of(traces).end, "if nobody sent the signal, the host ran out of memory"));
  traces.memory_ran_out = true;
  CHECK(contains(outcome_of(traces).end, "the kernel has killed a process of this host because memory ran out"));
}

TEST_CASE("a run has one attempt, whatever its outcome") {
  const std::vector<OutcomeKind> kinds = {OutcomeKind::completed, OutcomeKind::rank_killed, OutcomeKind::host_lost};
  std::vector<Outcome> outcomes;
  for (const OutcomeKind kind : kinds) {
    outcomes.push_back({.kind = kind});
    CHECK_FALSE(end_always(outcomes, {}).again);
  }
}

TEST_CASE("the last lines of a rank are those of its own log, or else of the output of all ranks") {
  namespace fs = std::filesystem;
  std::string name = fs::temp_directory_path() / "outcome-test-XXXXXX";
  const fs::path folder = mkdtemp(name.data());
  std::string twelve, ten;
  for (int i = 1; i <= 12; ++i) twelve += "line " + std::to_string(i) + "\n";
  for (int i = 3; i <= 12; ++i) ten += (i > 3 ? "\n" : "") + std::string("line ") + std::to_string(i);
  fs::create_directory(folder / "logs");
  std::ofstream(folder / "log.txt") << "of rank 0\n";
  std::ofstream(folder / "logs/rank-1.log") << std::string(20'000, 'x') << '\n' << twelve;
  std::ofstream(folder / "logs/rank-2.log") << std::string(20'000, 'x');
  const std::string log = folder / "log.txt";
  CHECK(last_lines(log, 0, "written\n") == "of rank 0");
  CHECK(last_lines(log, 1, "written\n") == ten);
  CHECK(last_lines(log, 2, "written\n") == std::string(4096, 'x'));
  CHECK(last_lines(log, 3, twelve) == ten);
  CHECK(last_lines(log, {}, "written\n\n") == "written");
  CHECK(last_lines("", 1, "\n\n") == "");
  CHECK(last_lines("", 1, "") == "");
  fs::remove_all(folder);
}

TEST_CASE("the newest checkpoint of a run is found from the path of its log") {
  namespace fs = std::filesystem;
  std::string name = fs::temp_directory_path() / "outcome-test-XXXXXX";
  const fs::path folder = mkdtemp(name.data());
  CHECK(newest_checkpoint("").empty());
  CHECK(newest_checkpoint(folder / "log.txt") == "; no checkpoint was written yet");
  fs::create_directories(folder / "checkpoints/step-00000012");
  fs::create_directory_symlink("step-00000012", folder / "checkpoints/last");
  CHECK(newest_checkpoint(folder / "log.txt") ==
        "; the newest checkpoint is " + (folder / "checkpoints/step-00000012").string());
  fs::remove_all(folder);
}

TEST_CASE("a shortage is recognized from messages of MPI, PMIx and the loader, and described in our words") {
  const auto shortage = [](const std::string& text) { return find_shortage(text).value_or(Failure{}); };
  const Failure processes = shortage(
      line + "mpirun was unable to launch the specified application as it encountered an error:\n\n" +
      "Error: system limit exceeded on number of processes that can be started\nNode: n2\n\nwhen attempting\n" + line);
  CHECK(processes.exit_code == 6);
  CHECK(contains(processes, "no more processes or threads can be started on n2"));
  CHECK(contains(processes, "ulimit -u"));
  CHECK(contains(shortage("[n3:28074] [[340,0],0] Unable to start listen thread\n"), "started on n3"));
  CHECK(contains(shortage("[vm:1] [[1,0],0] ORTE_ERROR_LOG: The system limit on number of pipes a process can open\n"),
                 "ulimit -n"));
  CHECK(contains(shortage("file). It appears as if there is not enough space for /dev/shm/x (the shared-memory\n"),
                 "no space is left"));
  CHECK(contains(shortage("[vm:9] PMIX ERROR: OUT-OF-RESOURCE in file ../src/mca/common/dstore/dstore_segment.c at\n"),
                 "no space is left"));
  CHECK(contains(shortage("trainctl: error while loading shared libraries: libmpi.so.40: failed to map segment from "
                          "shared object\n"),
                 "memory ran out"));
  CHECK(contains(shortage("[vm:5] PMIX ERROR: ERROR in file ../src/mca/common/dstore/dstore_segment.c at line 274\n"),
                 "memory ran out"));
  CHECK_FALSE(find_shortage(killed + aborted + ended + lost + unreachable + unknown));
}

TEST_CASE("the first lines of an unknown message are reported") {
  std::string long_winded = line + "Something odd came up.\nIt is like this:\n\n  and like that\n";
  for (int i = 0; i < 30; ++i) long_winded += "more of it\n";
  const Failure told = status_of({}, "[vm:1] [[1,0],0] ORTE_ERROR_LOG: Error in file x.c\n" + long_winded, 1);
  CHECK(told.exit_code == 5);
  CHECK(contains(told, "Something odd came up.\nIt is like this:\n  and like that"));
  CHECK_FALSE(contains(told, "more of it"));
  CHECK_FALSE(contains(told, "ORTE_ERROR_LOG"));
}

}  // namespace
}  // namespace trainctl::outcome_test
