// Tests the supervisor with real ranks: how runs end and are stopped, and that no processes or files are left.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <thread>

#include "core/base/memory_folder.h"
#include "parallel/launch/supervisor/resize.h"
#include "parallel/launch/watch/host_agent.h"
#include "test/catch.h"
#include "test/parallel/launch/listening.h"
#include "test/parallel/launch/supervised_run.h"

namespace trainctl::supervisor_test {
namespace {

// The end of a script: reports that the run is done, as rank 0 does.
const std::string done = "; printf '0\n[]\n' > $TRAINCTL_STATUS_FILE";

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_CASE("the output of a successful run passes through, and its exit code is 0") {
  SupervisedRun run(2, "rank that is done");
  CHECK(run.wait() == 0);
  CHECK(contains(run.output(), "rank 0 of 2 prints\n"));
  CHECK(contains(run.output(), "rank 1 of 2 prints\n"));
  CHECK_FALSE(contains(run.output(), "mpirun"));
  CHECK(run.left_nothing());
}

TEST_CASE("after SIGINT, SIGTERM, SIGUSR1 or SIGHUP all ranks finish, and their status is the exit code") {
  const int signal = GENERATE(SIGINT, SIGTERM, SIGUSR1, SIGHUP);
  SupervisedRun run(2, "rank that trains until it is stopped");
  REQUIRE(run.ranks_run());
  run.send(signal);
  CHECK(run.wait() == 75);
  CHECK(contains(run.output(), "stopped at step 12"));
  CHECK_FALSE(contains(run.output(), "mpirun"));
  CHECK(run.ranks_gone());
  CHECK(run.left_nothing());
}

TEST_CASE("ranks whose output nobody reads go on and stop in order, and their output is kept for the reader") {
  std::array<int, 2> pipe{};
  REQUIRE(pipe2(pipe.data(), O_CLOEXEC) == 0);
  SupervisedRun run(2, "rank that prints much and trains until it is stopped", 600, {}, {}, pipe[1]);
  close(pipe[1]);
  REQUIRE(run.ranks_run());
  run.send(SIGTERM);
  CHECK(run.prints("stopping after this step"));
  CHECK(run.ranks_gone());
  std::array<char, 65536> buffer{};
  std::size_t bytes = 0;
  for (ssize_t count = 0; (count = read(pipe[0], buffer.data(), buffer.size())) > 0;)
    bytes += static_cast<std::size_t>(count);
  close(pipe[0]);
  CHECK(bytes >= 2 * 300 * 1000);
  CHECK(run.wait() == 75);
  CHECK(run.left_nothing());
}

TEST_CASE("a supervisor whose output nobody reads ends at another request to stop") {
  std::array<int, 2> pipe{};
  REQUIRE(pipe2(pipe.data(), O_CLOEXEC) == 0);
  SupervisedRun run(2, "rank that prints much and trains until it is stopped", 600, {}, {}, pipe[1]);
  REQUIRE(run.ranks_run());
  run.send(SIGTERM);
  CHECK(run.ranks_gone());
  for (int i = 0; i < 1000 && run.mpirun() > 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  run.send(SIGTERM);
  CHECK(run.wait() == 75);
  for (const int end : pipe) close(end);
}

TEST_CASE("a request before the ranks handle it ends them with the exit code for starting again") {
  SupervisedRun run(3, "rank that trains until it is stopped");
  REQUIRE(run.supervises());
  run.send(GENERATE(SIGTERM, SIGINT, SIGUSR1));
  CHECK(run.wait() == 75);
  CHECK(run.ranks_gone());
  CHECK(run.left_nothing());
}

TEST_CASE("a request before the first step ends the run with the exit code for starting again") {
  SupervisedRun run(2, "rank that loads its data");
  REQUIRE(run.ranks_run());
  run.send(SIGTERM);
  const int code = run.wait();
  INFO(run.output());
  CHECK(code == 75);
  CHECK(contains(run.output(), "stopped before the first step"));
  CHECK(run.ranks_gone());
}

TEST_CASE("after a signal to all processes together the ranks save, and mpirun waits for them", "[waits]") {
  const int signal = GENERATE(SIGTERM, SIGINT, SIGHUP);
  SupervisedRun run(2, "rank that saves for three seconds");
  REQUIRE(run.ranks_run());
  run.send_to_all(signal);
  CHECK(run.wait() == 75);
  CHECK(contains(run.output(), "saved at step 12"));
  CHECK(run.ranks_gone());
  CHECK(run.left_nothing());
}

TEST_CASE("ranks that do not stop in time are ended, and a suspended rank is named", "[waits]") {
  SupervisedRun run(2, "rank that never stops");
  REQUIRE(run.ranks_run());
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // until the supervisor knows the ranks
  run.send_to_rank(1, SIGSTOP);
  const auto begin = std::chrono::steady_clock::now();
  run.send(SIGTERM);
  CHECK(run.wait() == 5);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  CHECK(seconds.count() > 19);
  CHECK(seconds.count() < 25);
  CHECK(contains(run.output(),
                 "the ranks did not stop within 20 s and were ended (stopped by a signal: rank 1, process "));
  CHECK(run.ranks_gone());
  CHECK(run.left_nothing());
}

TEST_CASE("a second SIGTERM, some seconds after the first, ends ranks that do not stop") {
  SupervisedRun run(2, "rank that never stops");
  REQUIRE(run.ranks_run());
  run.send(SIGTERM);
  REQUIRE(run.prints("stopping"));
  run.send(SIGTERM);  // the same request
  std::this_thread::sleep_for(std::chrono::milliseconds(2500));
  run.send(SIGTERM);
  CHECK(run.wait() == 130);
  CHECK(run.ranks_gone());
}

TEST_CASE("a suspended mpirun is named, and the run ends after cluster.timeout", "[waits]") {
  SupervisedRun run(2, "rank that trains until it is stopped", 5);
  REQUIRE(run.ranks_run());
  const std::string name = "mpirun (process " + std::to_string(run.mpirun()) + ")";
  kill(run.mpirun(), SIGSTOP);
  REQUIRE(run.prints(name + " was stopped by a signal"));
  CHECK(run.wait() == 5);
  CHECK(contains(run.output(), name + " has been stopped by a signal for 5 s"));
  CHECK(run.ranks_gone());
  CHECK(run.left_nothing());
}

TEST_CASE("a run whose mpirun is suspended can be stopped") {
  SupervisedRun run(2, "rank that trains until it is stopped");
  REQUIRE(run.ranks_run());
  kill(run.mpirun(), SIGSTOP);
  run.send(SIGTERM);
  CHECK(run.wait() == 75);
  CHECK(contains(run.output(), "stopped at step 12"));
}

TEST_CASE("mpirun is not waited for after a rank has reported its failure", "[waits]") {
  SupervisedRun run(2,
                    "sh: printf '5\n[]\nno answer from rank 1' > $TRAINCTL_STATUS_FILE; trap '' TERM; "
                    "while :; do sleep 1; done");
  const auto begin = std::chrono::steady_clock::now();
  CHECK(run.wait() == 5);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(9));
  CHECK(contains(run.output(), "no answer from rank 1"));
  CHECK(run.left_nothing());
}

TEST_CASE("a second Ctrl-C ends all processes immediately") {
  SupervisedRun run(3, "rank that never stops");
  REQUIRE(run.ranks_run());
  run.send(GENERATE(SIGINT, SIGTERM));
  REQUIRE(run.prints("stopping"));
  run.send(SIGINT);
  CHECK(run.wait() == 130);
  CHECK(run.ranks_gone());
  CHECK(run.left_nothing());
}

TEST_CASE("a killed rank leads to exit code 5 and a message with the rank, the host and the signal") {
  SupervisedRun run(3, "rank that never stops");
  REQUIRE(run.ranks_run());
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // until the supervisor knows the ranks
  run.send_to_rank(1, SIGKILL);
  CHECK(run.wait() == 5);
  CAPTURE(run.output());
  // MPICH ends the other ranks so fast that the first one is not always known.
  const bool unseen = mpi_library() == MpiLibrary::mpich && contains(run.output(), "a rank on ");
  CHECK((unseen || contains(run.output(), "rank 1 on ")));
  CHECK(contains(run.output(), "was killed by signal 9"));
  CHECK_FALSE(contains(run.output(), "mpirun"));
  CHECK(run.ranks_gone());
  CHECK(run.left_nothing());
}

TEST_CASE("the cause is reported before its effects on the other ranks") {
  SupervisedRun run(2, "rank that sees its peer go");
  CHECK(run.wait() == 5);
  const std::string output = run.output();
  CHECK(output.find("was killed by signal 9") < output.find("no answer from rank 1"));
  CHECK(contains(output, "no answer from rank 1"));
}

TEST_CASE("an error of one rank ends all ranks with its exit code and its message, once") {
  SupervisedRun run(3, "rank of which number 1 has an error");
  CHECK(run.wait() == 3);
  CHECK(contains(run.output(), "image.jpg cannot be decoded"));
  CHECK_FALSE(contains(run.output(), "MPI_ABORT"));
  CHECK(run.ranks_gone());
}

TEST_CASE("the error of the rank that failed first counts, also if another rank has told of its effect before") {
  SupervisedRun run(2, "rank of which number 0 has only seen the effect of an error");
  CHECK(run.wait() == 3);
  INFO(run.output());
  CHECK(contains(run.output(), "image.jpg cannot be decoded (rank 1)"));
  CHECK_FALSE(contains(run.output(), "no answer from rank 1"));
}

// A supervisor that reads requests to resize its run.
Restarts reads_requests() {
  Restarts restarts;
  restarts.changed_plan = [](const LaunchPlan&, const std::string& run_directory) {
    requested_ranks_of(run_directory);
    return PlanChange();
  };
  return restarts;
}

TEST_CASE("a supervisor that waits for a file server relays a request to stop") {
  SupervisedRun run(2, "rank with a blocked directory that trains until it is stopped", 600, reads_requests());
  REQUIRE(run.ranks_run());
  std::this_thread::sleep_for(std::chrono::seconds(1));  // until the supervisor waits
  const auto begin = std::chrono::steady_clock::now();
  run.send(GENERATE(SIGTERM, SIGINT));
  CHECK(run.wait() == 75);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(15));
  INFO(run.output());
  CHECK(contains(run.output(), "stopped at step 12"));
  CHECK(contains(run.output(), "its file system does not answer"));
  CHECK(run.ranks_gone());
  CHECK(run.left_nothing());
}

TEST_CASE("a second Ctrl-C ends a supervisor that waits for a file server, and removes the copies in memory") {
  const bool is_watched = GENERATE(true, false);
  CAPTURE(is_watched);
  const HangTimeout hang_timeout = is_watched ? HangTimeout{Seconds{600}} : HangChoice::none;
  SupervisedRun run(2, "rank with a blocked directory that never stops", 600, reads_requests(),
                    {.watch = {.hang_timeout = hang_timeout, .agent = {TRAINCTL_BINARY, host_agent_command}}});
  REQUIRE(run.ranks_run());
  std::this_thread::sleep_for(std::chrono::seconds(1));  // until the supervisor waits
  const std::string copies = memory_folder_of(run.folder());
  CHECK(std::filesystem::exists(copies));
  const auto begin = std::chrono::steady_clock::now();
  run.send(SIGINT);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  run.send(SIGINT);
  CHECK(run.wait() == 130);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(8));
  INFO(run.output());
  CHECK(contains(run.output(), "stopped at once"));
  CHECK(run.ranks_gone());
  CHECK(run.left_nothing());
  CHECK_FALSE(std::filesystem::exists(copies));
}

TEST_CASE("a supervisor that waits for a file server between two attempts removes the copies in memory when it stops") {
  const auto always_again = [](const std::vector<Outcome>&, const StopRequests&) { return NextAction{.again = true}; };
  const auto next_state = [](const RestartingRun&) {
    std::this_thread::sleep_for(std::chrono::hours(1));
    return std::string();
  };
  SupervisedRun run(2, "rank with a blocked directory that never stops", 600, {always_again},
                    {.next_state = next_state});
  REQUIRE(run.ranks_run());
  const std::string copies = memory_folder_of(run.folder());
  CHECK(std::filesystem::exists(copies));
  run.send_to_rank(0, SIGKILL);
  CHECK(run.ranks_gone());
  std::this_thread::sleep_for(std::chrono::seconds(3));  // until the supervisor waits for longer than it may
  CHECK(std::filesystem::exists(copies));
  run.send(SIGINT);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  run.send(SIGINT);
  CHECK(run.wait() == 130);
  INFO(run.output());
  CHECK(contains(run.output(), "its file system does not answer"));
  CHECK(run.left_nothing());
  CHECK_FALSE(std::filesystem::exists(copies));
}

TEST_CASE("ranks that do not stop in time are ended, also if their supervisor waits for a file server", "[waits]") {
  SupervisedRun run(2, "rank with a blocked directory that never stops", 600, reads_requests());
  REQUIRE(run.ranks_run());
  std::this_thread::sleep_for(std::chrono::seconds(1));  // until the supervisor waits
  const auto begin = std::chrono::steady_clock::now();
  run.send(SIGTERM);
  CHECK(run.wait() == 5);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  CHECK(seconds.count() > 19);
  CHECK(seconds.count() < 29);
  CHECK(contains(run.output(), "the ranks did not stop within 20 s and were ended"));
  CHECK(run.ranks_gone());
}

TEST_CASE("the exit code of a rank counts if it leaves no status") {
  SupervisedRun run(2, "rank that ends without a word");
  CHECK(run.wait() == 6);
  CHECK(run.ranks_gone());
}

TEST_CASE("all sockets of a run on one host listen on loopback only") {
  SupervisedRun run(2, "rank that trains until it is stopped");
  REQUIRE(run.ranks_run());
  const std::vector<std::string> addresses = listening_addresses(family_of(run.supervisor()));
  CHECK_FALSE(addresses.empty());  // mpirun listens and is among the processes
  for (const std::string& address : addresses) {
    CAPTURE(address);
    CHECK(is_loopback(address));
  }
  run.send(SIGTERM);
  CHECK(run.wait() == 75);
}

TEST_CASE("ranks see the user's preloaded libraries, not those of mpirun") {
  SupervisedRun run(2, "sh: echo preloaded: [$LD_PRELOAD] [$TRAINCTL_LISTEN_ON]" + done);
  CHECK(run.wait() == 0);
  const bool mpich = mpi_library() == MpiLibrary::mpich;  // its ranks may listen on one host, too
  CHECK(contains(run.output(), mpich ? "preloaded: [] [lo]" : "preloaded: [] []"));
}

TEST_CASE("messages of MPI during the start are hidden if a shortage explains them, else they are shown") {
  SupervisedRun shortage(2, "sh: echo 'fork: Resource temporarily unavailable' >&2; exit 1");
  CHECK(shortage.wait() == 6);
  CHECK(contains(shortage.output(), "no more processes or threads can be started"));
  CHECK_FALSE(contains(shortage.output(), "fork:"));
  SupervisedRun other(2, "sh: echo 'sh: odd words' >&2; exit 3");
  CHECK(other.wait() == 3);
  CHECK(contains(other.output(), "odd words"));
}

TEST_CASE("messages of MPI during the start are hidden if a rank has left an error") {
  SupervisedRun run(2,
                    "sh: echo 'a paragraph of MPI' >&2; printf '6\\n[]\\nthe error of a rank' > $TRAINCTL_STATUS_FILE; "
                    "sleep 0.3; exit 6");
  CHECK(run.wait() == 6);
  CHECK(contains(run.output(), "the error of a rank"));
  CHECK_FALSE(contains(run.output(), "a paragraph of MPI"));
}

TEST_CASE("mpirun's count of failed processes does not appear on standard output") {
  if (mpi_library() == MpiLibrary::mpich) return;  // it does not count them
  SupervisedRun run(2, "sh: printf 'first\\n2 total processes failed to start\\nlast\\n'" + done);
  CHECK(run.wait() == 0);
  CHECK(contains(run.output(), "first\nlast\n"));
  CHECK_FALSE(contains(run.output(), "total processes"));
  SupervisedRun missing(2, "sh: exec /nowhere");
  CHECK(missing.wait() != 0);
  CHECK_FALSE(contains(missing.output(), "total processes"));
}

TEST_CASE("a signal that ends the supervisor leaves neither ranks nor files behind") {
  for (const int signal : {SIGUSR2, SIGQUIT, SIGALRM, SIGXCPU, SIGRTMIN + 3}) {
    CAPTURE(signal);
    SupervisedRun run(2, "rank that never stops");
    REQUIRE(run.ranks_run());
    run.send(signal);
    CHECK(run.wait() == 130);
    CHECK(run.ranks_gone());
    CHECK(run.left_nothing());
  }
}

TEST_CASE("a supervisor that is killed leaves no rank behind") {
  SupervisedRun run(2, "rank that trains until it is stopped");
  REQUIRE(run.ranks_run());
  run.send(SIGKILL);
  CHECK(run.wait() == -SIGKILL);
  CHECK(run.ranks_gone());
}

TEST_CASE("mpirun is not waited for if it does not end after its ranks", "[waits]") {
  if (mpi_library() == MpiLibrary::mpich) return;  // the parent of its ranks is not mpiexec
  SupervisedRun run(2, "rank that leaves mpirun stuck");
  CHECK(run.wait() == 3);
  CHECK(contains(run.output(), "the data ends"));
  CHECK(run.ranks_gone());
  CHECK(run.left_nothing());
}

// Starts the ranks again after a failed attempt, at most twice, unless a stop is requested.
NextAction twice_again(const std::vector<Outcome>& outcomes, const StopRequests& requests) {
  const bool goes_on = outcomes.back().end.exit_code != 0 && outcomes.size() < 3 && !requests.asked;
  return {.again = goes_on};
}

// Records an attempt in a file, from which rank 0 reads their number; fails if the folder of an earlier attempt still
// exists.
const std::string counts_attempts =
    "sh: f=$LAUNCH_TEST_FOLDER; [ $OMPI_COMM_WORLD_RANK$PMI_RANK = 0 ] || exec sleep 9; "
    "echo $TRAINCTL_STATUS_FILE >> $f/attempts; for s in $(sed '$d' $f/attempts); do [ ! -e $(dirname $s) ] || exit 2; "
    "done; ";

TEST_CASE("a policy may start the ranks again; each attempt has its own files, and the last one counts") {
  SupervisedRun run(1 + 1,
                    counts_attempts +
                        "[ $(wc -l < $f/attempts) = 3 ] || kill -9 $$; "
                        "echo attempt $(wc -l < $f/attempts); printf '4\n[]\nin vain' > "
                        "$TRAINCTL_STATUS_FILE; exit 4",
                    600, {twice_again});
  CHECK(run.wait() == 4);
  INFO(run.output());
  CHECK(contains(run.output(), "attempt 3\n"));
  CHECK_FALSE(contains(run.output(), "attempt 4\n"));
  CHECK(contains(run.output(), "in vain"));
  CHECK(run.left_nothing());
}

TEST_CASE("a request to stop outlives the attempt in which it came") {
  const auto always_again = [](const std::vector<Outcome>&, const StopRequests&) { return NextAction{.again = true}; };
  SupervisedRun run(2, "rank that loads its data", 600, {always_again});
  REQUIRE(run.ranks_run());
  run.send(SIGTERM);  // ends the ranks of the first attempt; no attempt follows
  CHECK(run.wait() == 75);
  CHECK(run.left_nothing());
}

TEST_CASE("a run whose ranks die again and again without progress ends, and says so", "[waits]") {
  SupervisedRun run(2, counts_attempts + "sleep 0.5; kill -9 $$", 600, {restart_policy(9)});
  CHECK(run.wait() == 5);
  INFO(run.output());
  CHECK(contains(run.output(), "the run starts again on 2 ranks in 1 s (restart 1)"));
  CHECK(contains(run.output(), "4 attempts in a row made no progress"));
  CHECK(run.left_nothing());
}

TEST_CASE("a request to stop ends the wait before the ranks start again") {
  const auto later = [](const std::vector<Outcome>&, const StopRequests&) {
    return NextAction{.again = true, .delay = std::chrono::minutes(10)};
  };
  SupervisedRun run(2, "sh: kill -9 $$", 600, {later});
  REQUIRE(run.prints("the run starts again on 2 ranks in 600 s"));
  run.send(SIGTERM);
  CHECK(run.wait() == 75);
  CHECK(contains(run.output(), "stopped before the run started again"));
}

TEST_CASE("a plan that its ranks refuse is given up, also if a rank failed while the ranks stopped for it") {
  const bool is_requested = GENERATE(true, false);  // otherwise hosts can take part again
  CAPTURE(is_requested);
  Restarts restarts{twice_again};
  restarts.changed_plan = [=](const LaunchPlan& now, const std::string&) {
    LaunchPlan plan = now;
    plan.environment["REFUSED"] = "yes";
    return PlanChange{.plan = std::move(plan), .is_requested = is_requested};
  };
  SupervisedRun run(2,
                    "sh: s=$TRAINCTL_STATUS_FILE; "
                    "[ -z \"$REFUSED\" ] || { printf '2\\n[]\\nnot in this number' > $s.$$; mv $s.$$ $s; exit 2; }; "
                    "[ -z \"$TRAINCTL_RESTART\" ] || { cat $s.refused; echo as before" +
                        done +
                        "; exit 0; }; "
                        "trap \"printf '5\\n[]\\na rank is gone' > $s.$$; mv $s.$$ $s; exit 5\" USR1; "
                        "[ $OMPI_COMM_WORLD_RANK$PMI_RANK != 0 ] || { sleep 0.5; "
                        "echo $LAUNCH_TEST_FOLDER/log.txt > $s.log; : > $s.ready; }; while :; do sleep 0.1; done",
                    600, restarts);
  CHECK(run.wait() == 0);
  INFO(run.output());
  CHECK(contains(run.output(), "a rank is gone"));
  CHECK(contains(run.output(), "not in this number\nthe run goes on with 2 ranks"));
  CHECK(contains(run.output(), "as before"));
  CHECK(contains(run.output(), R"("reason":"not in this number")") == is_requested);
}

TEST_CASE("the ranks of a later attempt know the failure before them", "[waits]") {
  SupervisedRun run(2,
                    counts_attempts +
                        "[ $(wc -l < $f/attempts) = 2 ] || { sleep 0.5; kill -9 $$; }; echo known: $TRAINCTL_RESTART" +
                        done,
                    600, {twice_again});
  CHECK(run.wait() == 0);
  const std::string output = run.output();
  INFO(output);
  const std::size_t begin = output.find("known: ");
  REQUIRE(begin != std::string::npos);
  const auto restart = read_restart(output.substr(begin + 7, output.find('\n', begin) - begin - 7));
  REQUIRE(restart);
  CHECK(restart->event.attempt == 2);
  CHECK(restart->event.cause == "rank_killed");
  CHECK(restart->event.signal == SIGKILL);
  CHECK(read_restart(to_text(*restart)) == restart);
  CHECK_FALSE(read_restart("no JSON"));
  CHECK(read_restart(R"({"attempt": 2, "cause": 7, "host": [], "run_directory": null})")->event.cause.empty());
}

TEST_CASE("programs without MPI have their exit codes reported and no standard input") {
  // MPICH leaves the standard input of all ranks but the first open.
  const std::string reads = mpi_library() == MpiLibrary::mpich ? "" : "read line && echo 'a line came'; ";
  SupervisedRun fine(2, "sh: " + reads + "true" + done);
  CHECK(fine.wait() == 0);
  CHECK_FALSE(contains(fine.output(), "a line came"));
  SupervisedRun silent(2, "sh: exit 0");  // no rank reported that it has trained
  CHECK(silent.wait() == 5);
  CHECK(contains(silent.output(), "no rank has reported the end of the run"));
  SupervisedRun strange(2, "sh: exit 42");
  CHECK(strange.wait() == 5);
  CHECK_FALSE(strange.output().empty());
}

}  // namespace
}  // namespace trainctl::supervisor_test
