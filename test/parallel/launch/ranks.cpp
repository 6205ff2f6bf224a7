// The ranks of the supervisor's tests: hidden test cases, which mpirun runs in this same program.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

#include "core/backend/immediate_stream.h"
#include "core/base/error.h"
#include "core/base/flight_record.h"
#include "core/base/generation.h"
#include "core/base/memory_folder.h"
#include "parallel/comm/communicators.h"
#include "parallel/comm/text.h"
#include "parallel/launch/host/process.h"
#include "parallel/launch/hosts.h"
#include "parallel/launch/ranks/report.h"
#include "parallel/launch/ranks/run_rank.h"
#include "parallel/launch/ranks/status.h"
#include "parallel/launch/ranks/stop.h"
#include "parallel/launch/watch/copies_note.h"
#include "parallel/launch/watch/host_agent.h"
#include "test/catch.h"
#include "test/parallel/launch/supervised_run.h"

namespace trainctl {
namespace {

// A rank that is set up as in cmd.
struct Rank {
  Variables variables = Variables::of_process();
  Situation situation = find_situation(variables);
  int threads = prepare_rank(situation, variables);
  StopRequest stop;
  MpiEnvironment mpi;

  Rank() {
    require_world_size(situation, mpi.size());
    if (mpi.rank() == 0) mark_ready(situation.status_file, mpi.processes());
  }

  // Tells the test that it may send signals from now on.
  void announce() const {
    if (!variables.has("LAUNCH_TEST_FOLDER")) return;
    const std::string path = variables.text("LAUNCH_TEST_FOLDER") + "/rank-" + std::to_string(mpi.rank());
    std::ofstream(path + ".new") << getpid() << '\n';
    rename((path + ".new").c_str(), path.c_str());
  }

  void run_on() const { std::this_thread::sleep_for(std::chrono::milliseconds(2)); }

  // All ranks leave together.
  [[noreturn]] void leave(const RankStatus& status) {
    if (mpi.rank() == 0) write_status(situation.status_file, status);
    mpi.finalize();
    _exit(status.exit_code);
  }
};

// Takes steps with a collective each and records them. If there is a FIFO in the test's folder, rank 1 reads it instead
// of its data.
[[noreturn]] void train_and_record(Rank& rank) {
  const std::string folder = rank.variables.text("LAUNCH_TEST_FOLDER");
  if (rank.mpi.rank() == 0) write_log_path(rank.situation.status_file, folder + "/run/log.txt");
  FlightRecord record(rank.variables.text(flight_variable), rank.mpi.rank(), rank.mpi.size(), this_host());
  FlightLine training = record.line(FlightThread::training, "main");
  FlightLine messages = record.line(FlightThread::communication, "communicator 0");
  FlightLine data = record.line(FlightThread::data, "worker 0");
  const auto world = mpi_communicator(rank.mpi);
  ImmediateStream stream;
  rank.announce();
  bool stops = false;
  for (std::int64_t step = 0; !stops; ++step) {
    training.enter({.activity = Activity::waiting_for_data, .step = step});
    const int fifo = rank.mpi.rank() == 1 ? open((folder + "/fifo").c_str(), O_RDWR) : -1;
    if (fifo >= 0) {
      const FlightScope reading(data, {.activity = Activity::reading_data, .step = step, .text = "img_0412.jpg"});
      char byte = 0;
      if (read(fifo, &byte, 1) < 0) _exit(9);
    }
    training.enter({.activity = Activity::computing, .step = step, .text = "conv1"});
    rank.run_on();
    training.enter({.activity = Activity::communicating, .step = step, .text = "the last collectives of the step"});
    const FlightScope message(messages, {.activity = Activity::communicating, .step = step, .text = "bucket 3"});
    stops = any_rank(rank.stop.pending(), *world, stream);
  }
  rank.leave({75, "stopped at step 12"});
}

// Tells the supervisor a directory of the run in which the request to resize is a FIFO without a writer: who reads it
// waits, as for a file server that does not answer. A rank that is watched keeps copies in memory.
void name_blocked_directory(const Rank& rank) {
  if (rank.mpi.rank() != 0) return;
  const std::string folder = rank.variables.text("LAUNCH_TEST_FOLDER");
  const std::string copies = memory_folder_of(folder);
  create_memory_folder(copies, 0);
  const bool is_watched = rank.variables.has(flight_variable);  // then the note alone says whose copies these are
  const std::string start = is_watched ? "unknown to the supervisor" : line_of_launch(rank.situation.launch);
  std::ofstream(copies + "/lock") << "the start of this process\n" << start << "1\n";
  note_copies(copies);
  mkfifo((folder + "/resize").c_str(), 0600);
  write_log_path(rank.situation.status_file, folder + "/log.txt");
}

// Rank 0 has noticed that rank 1 is gone, before rank 1 tells why.
[[noreturn]] void fail_after_peer(const Rank& rank) {
  const auto world = mpi_communicator(rank.mpi);
  ImmediateStream stream;
  if (rank.mpi.rank() == 0) report({5, "no answer from rank 1 (rank 0)"}, false, rank.situation, {0, "h1"});
  any_rank(false, *world, stream);
  if (rank.mpi.rank() == 1) {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    report({3, "image.jpg cannot be decoded (rank 1)"}, false, rank.situation, {1, this_host()});
    world->abort(3);
  }
  for (;;) rank.run_on();
}

// Does all that `trainctl run` does except for the training; with LAUNCH_TEST_TRAIN=1 it waits to be stopped instead.
// With LAUNCH_TEST_FAILS, rank 1 fails. With LAUNCH_TEST_WATCHED, a number of seconds, the ranks record what they do
// until they hang for this time.
int run_like_trainctl() {
  const Variables variables = Variables::of_process();
  const Situation situation = find_situation(variables);
  if (situation.started_by == StartedBy::user) {
    LaunchRequest request =
        launch_request({}, {variables.text("LAUNCH_TEST_RANKS"), variables.text("LAUNCH_TEST_HOSTS")});
    request.forwarded = {"LAUNCH_TEST_TRAIN", "LAUNCH_TEST_FAILS", "LAUNCH_TEST_WATCHED", "LAUNCH_TEST_FOLDER"};
    const LaunchPlan plan = plan_launch(request);
    SupervisionOptions options;
    if (const auto seconds = variables.number("LAUNCH_TEST_WATCHED")) {
      options.watch = {Seconds{static_cast<double>(*seconds)}, {TRAINCTL_BINARY, host_agent_command}};
    }
    const std::vector<std::string> command = {own_path(), "trainer that starts its ranks like run"};
    if (!plan.mpirun.empty()) return supervise(plan, command, {}, options);
    std::printf("rank 0 of 1, %d threads\n", prepare_rank(situation, variables));
    return 0;
  }
  Rank rank;
  rank.announce();
  std::printf("rank %d of %d, %d threads\n", rank.mpi.rank(), rank.mpi.size(), rank.threads);
  std::fflush(stdout);
  if (variables.has("LAUNCH_TEST_WATCHED")) train_and_record(rank);
  if (variables.has("LAUNCH_TEST_FAILS")) fail_after_peer(rank);
  if (!variables.has("LAUNCH_TEST_TRAIN")) rank.leave({0, ""});
  while (!rank.stop.pending()) rank.run_on();
  rank.leave({75, "stopped at step 12"});
}

TEST_CASE("trainer that starts its ranks like run", "[.rank]") {
  int code = 0;
  try {
    code = run_like_trainctl();
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    code = exit_code(error.kind());
  }
  std::fflush(stdout);
  _exit(code);
}

TEST_CASE("rank that is done", "[.rank]") {
  Rank rank;
  rank.announce();
  std::printf("rank %d of %d prints\n", rank.mpi.rank(), rank.mpi.size());
  std::fflush(stdout);
  rank.leave({0, ""});
}

TEST_CASE("rank that trains until it is stopped", "[.rank]") {
  Rank rank;
  rank.announce();
  while (!rank.stop.pending()) rank.run_on();
  rank.leave({75, "stopped at step 12"});
}

TEST_CASE("rank that prints much and trains until it is stopped", "[.rank]") {
  Rank rank;
  const std::string line(999, 'x');
  for (int i = 0; i < 300; ++i) std::printf("%s\n", line.c_str());
  std::fflush(stdout);
  rank.announce();
  while (!rank.stop.pending()) rank.run_on();
  rank.leave({75, "stopped at step 12"});
}

TEST_CASE("rank that saves for three seconds", "[.rank]") {
  Rank rank;
  rank.announce();
  while (!rank.stop.pending()) rank.run_on();
  std::this_thread::sleep_for(std::chrono::seconds(3));
  rank.leave({75, "saved at step 12"});
}

TEST_CASE("rank that loads its data", "[.rank]") {
  Rank rank;
  const StopAtOnce unstarted(STDERR_FILENO, "", 75);
  rank.announce();
  for (;;) rank.run_on();
}

TEST_CASE("rank that never stops", "[.rank]") {
  Rank rank;
  rank.announce();
  for (;;) rank.run_on();
}

TEST_CASE("rank of which number 1 has an error", "[.rank]") {
  Rank rank;
  rank.announce();
  const auto world = mpi_communicator(rank.mpi);
  if (rank.mpi.rank() == 1) {
    write_status(rank.situation.status_file, {3, "image.jpg cannot be decoded"});
    world->abort(3);
  }
  for (;;) rank.run_on();
}

TEST_CASE("rank of which number 0 has only seen the effect of an error", "[.rank]") {
  Rank rank;
  rank.announce();
  fail_after_peer(rank);
}

TEST_CASE("rank with a blocked directory that trains until it is stopped", "[.rank]") {
  Rank rank;
  name_blocked_directory(rank);
  rank.announce();
  while (!rank.stop.pending()) rank.run_on();
  rank.leave({75, "stopped at step 12"});
}

TEST_CASE("rank with a blocked directory that never stops", "[.rank]") {
  Rank rank;
  name_blocked_directory(rank);
  rank.announce();
  for (;;) rank.run_on();
}

TEST_CASE("rank that ends without a word", "[.rank]") {
  Rank rank;
  rank.announce();
  if (rank.mpi.rank() == 1) _exit(6);
  for (;;) rank.run_on();
}

TEST_CASE("rank that sees its peer go", "[.rank]") {
  Rank rank;
  rank.announce();
  if (rank.mpi.rank() == 0) write_status(rank.situation.status_file, {5, "no answer from rank 1"});
  std::this_thread::sleep_for(
      std::chrono::milliseconds(200));  // until the status is there, and the supervisor knows both
  if (rank.mpi.rank() == 1) raise(SIGKILL);
  for (;;) rank.run_on();
}

TEST_CASE("rank that trains and records", "[.rank]") {
  Rank rank;
  train_and_record(rank);
}

// No rank of MPI: a process with a flight record.
TEST_CASE("process that records", "[.rank]") {
  const std::string folder = Variables::of_process().text(flight_variable), copies = memory_folder_of(folder);
  create_memory_folder(copies, 0);
  std::ofstream(copies + "/lock") << "the start of this process\n";
  note_copies(copies);
  const FlightRecord record(folder, 0, 1, this_host());
  for (;;) pause();
}

TEST_CASE("rank that leaves mpirun stuck", "[.rank]") {
  Rank rank;
  rank.announce();
  if (rank.mpi.rank() == 0) write_status(rank.situation.status_file, {3, "the data ends"});
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // until the other has said that it runs
  kill(getppid(), SIGSTOP);
  _exit(3);
}

}  // namespace
}  // namespace trainctl
