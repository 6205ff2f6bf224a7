// Tests what is found out about other processes: one that a signal has stopped, one that waits in a read of a FIFO, and
// one that computes.
#include "parallel/launch/watch/process_place.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

#include "core/base/flight_state.h"
#include "core/base/format.h"
#include "parallel/launch/watch/call_stack.h"
#include "parallel/launch/watch/elf_functions.h"
#include "parallel/launch/watch/rank_view.h"
#include "test/catch.h"

namespace trainctl {

// Functions with names that a stack shows.
__attribute__((noinline)) int function_that_reads(int file) {
  char byte = 0;
  const int count = static_cast<int>(read(file, &byte, 1));
  return count + byte;
}

__attribute__((noinline)) int function_that_calls(int file) { return function_that_reads(file) + 1; }

__attribute__((noinline)) void function_that_computes(volatile double* value) {
  for (;;) *value = *value * 1.000001 + 1e-9;
}

namespace process_place_test {
namespace {

class Folder {
 public:
  Folder() {
    path_ = std::filesystem::temp_directory_path() / "trainctl-place-XXXXXX";
    if (mkdtemp(path_.data()) == nullptr) path_.clear();
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

class Child {
 public:
  explicit Child(const std::function<void()>& work) : pid_(fork()) {
    if (pid_ != 0) return;
    work();
    _exit(0);
  }
  ~Child() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

bool has_function(const ThreadPlace& thread, const std::string& name) {
  return std::find(thread.functions.begin(), thread.functions.end(), name) != thread.functions.end();
}

// Looks at the process until its main thread has the state, for at most some seconds.
ProcessPlace place_in_state(pid_t pid, char state) {
  CallStacks stacks;
  ProcessPlace place;
  for (int i = 0; i < 500; ++i) {
    place = place_of_process(pid, stacks);
    if (!place.threads.empty() && place.threads[0].state == state) return place;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return place;
}

TEST_CASE("a process that waits in a read names the file and its functions") {
  const Folder folder;
  const std::string fifo = folder / "data.fifo";
  REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
  Child child([&] { function_that_calls(open(fifo.c_str(), O_RDWR)); });
  ProcessPlace place = place_in_state(child.pid(), 'S');
  INFO(to_text(place, ""));
  REQUIRE(place.exists);
  CHECK_FALSE(place.stopped);
  REQUIRE(place.threads.size() == 1);
  CHECK(place.threads[0].system_call == "read of " + fifo);
  CHECK(has_function(place.threads[0], "function_that_reads"));
  CHECK(has_function(place.threads[0], "function_that_calls"));

  kill(child.pid(), SIGSTOP);
  place = place_in_state(child.pid(), 'T');
  INFO(to_text(place, ""));
  CHECK(place.stopped);
  CHECK(place.threads[0].system_call == "read of " + fifo);
  CHECK(has_function(place.threads[0], "function_that_reads"));
}

TEST_CASE("a process that computes names its function, and goes on") {
  volatile double value = 1;
  Child child([&] { function_that_computes(&value); });
  ProcessPlace place;
  for (int i = 0; i < 100; ++i) {  // the child may still be in fork
    place = place_in_state(child.pid(), 'R');
    if (!place.threads.empty() && has_function(place.threads[0], "function_that_computes")) break;
  }
  INFO(to_text(place, ""));
  REQUIRE_FALSE(place.threads.empty());
  CHECK(has_function(place.threads[0], "function_that_computes"));
  CHECK(place_in_state(child.pid(), 'R').threads[0].state == 'R');

  kill(child.pid(), SIGSTOP);
  place = place_in_state(child.pid(), 'T');
  CHECK(place.stopped);
  CHECK(has_function(place.threads[0], "function_that_computes"));
}

TEST_CASE("without time, a process is described without its threads") {
  Child child([] { pause(); });
  REQUIRE(place_in_state(child.pid(), 'S').exists);
  kill(child.pid(), SIGSTOP);
  REQUIRE(place_in_state(child.pid(), 'T').stopped);
  CallStacks stacks;
  const ProcessPlace place = place_of_process(child.pid(), stacks, std::chrono::steady_clock::now());
  CHECK(place.exists);
  CHECK(place.stopped);
  CHECK(place.threads.empty());
  CHECK(to_text(place, "  ") == "  there was no time to look at its threads");
}

TEST_CASE("a process that is not there has no place") {
  pid_t ended = 0;
  {
    const Child child([] {});
    ended = child.pid();
  }
  CallStacks stacks;
  CHECK_FALSE(place_of_process(ended, stacks).exists);
  CHECK(to_text(place_of_process(ended, stacks), "  ") == "  the process has ended");
}

TEST_CASE("files that are no programs have no functions") {
  const Folder folder;
  for (const std::string& bytes : {std::string(),
                                   std::string("\x7f"
                                               "ELF"),
                                   std::string(64, '\xff'),
                                   std::string("\x7f"
                                               "ELF\2\1\1") +
                                       std::string(100, '\xff')}) {
    const std::string path = folder / "file";
    std::ofstream(path, std::ios::binary) << bytes;
    const ElfFunctions functions(path);
    CHECK(functions.at(0x1000) == nullptr);
    CHECK_FALSE(functions.address_of(0x1000));
  }
  CHECK(ElfFunctions(folder / "nothing").at(1) == nullptr);
}

TEST_CASE("names of functions are short") {
  CHECK(readable_function("main") == "main");
  CHECK(readable_function("_ZNK8trainctl9InputFile9read_someElPvl") == "InputFile::read_some");
  CHECK(readable_function("_ZN8trainctl12_GLOBAL__N_15workeIiEEvT_") == "worke");
  CHECK(readable_function(std::string(500, 'x')).size() < 100);
}

TEST_CASE("a system call is named once, also if only its number is known") {
  Child waiting([] { pause(); });
  const std::string named = to_text(place_in_state(waiting.pid(), 'S'), "");
  INFO(named);
  CHECK(named.find("in the system call pause") != std::string::npos);
  Child rare([] {
    const int queue = msgget(IPC_PRIVATE, 0600);
    std::array<long, 2> message{};
    msgrcv(queue, message.data(), sizeof(long), 0, 0);  // no thread of trainctl waits in this system call
  });
  const std::string numbered = to_text(place_in_state(rare.pid(), 'S'), "");
  INFO(numbered);
  CHECK(numbered.find(format("in the system call {}", SYS_msgrcv)) != std::string::npos);
  CHECK(numbered.find("system call system call") == std::string::npos);
}

TEST_CASE("flight records tell the step that a rank has begun last, also after its end") {
  const Folder folder;
  CHECK(last_begun_step(folder / "nowhere") == -1);
  {
    FlightRecord first(folder.path(), 0, 2, "n1"), second(folder.path(), 1, 2, "n1");
    first.training().enter({.activity = Activity::starting});
    CHECK(last_begun_step(folder.path()) == -1);
    for (int step = 60; step < 2000; ++step) second.training().enter({.activity = Activity::computing, .step = step});
    first.training().enter({.activity = Activity::computing, .step = 1998});
    FlightLine saving = first.line(FlightThread::saving, "checkpoints");
    saving.enter({.activity = Activity::saving, .step = 5000});  // is not begun by training
  }
  CHECK(last_begun_step(folder.path()) == 1999);
  CHECK(last_done_step(1990, folder.path()) == 1998);
  CHECK(last_done_step(1999, folder.path()) == 1999);
  CHECK(last_done_step(5, folder / "nowhere") == 5);
  CHECK_FALSE(last_done_step({}, folder.path()));  // perhaps resumed there, and no step was done
  std::ofstream(folder / "rank-00002") << "cut";
  CHECK(last_begun_step(folder.path()) == 1999);
}

TEST_CASE("a flight record tells the mean time of its steps") {
  const Folder folder;
  FlightRecord record(folder.path(), 0, 1, "n1");
  FlightLine training = record.line(FlightThread::training, "main");
  training.enter({.activity = Activity::starting});
  const auto seconds = [&] { return mean_step_seconds(read_flight_record(record.path()), 3); };
  for (int step = 0; step < 6; ++step) {
    CHECK((seconds() > 0) == (step > 3));
    for (int op = 0; op < 4; ++op) {
      training.enter({.activity = Activity::computing, .step = step});
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  CHECK(seconds() >= 0.02);
  CHECK(seconds() < 0.2);
}

TEST_CASE("a flight record tells what a rank does, and whether it waits for others") {
  const Folder folder;
  FlightRecord record(folder.path(), 3, 4, "n3");
  const auto view = [&] { return view_of(read_flight_record(record.path(), FlightEvents::last), flight_clock()); };
  FlightLine training = record.line(FlightThread::training, "main");
  FlightLine communication = record.line(FlightThread::communication, "communicator 0");
  FlightLine data = record.line(FlightThread::data, "worker 0");
  training.enter({.activity = Activity::computing, .step = 7, .text = "conv1"});
  const RankView computing = view();
  CHECK(computing.rank == 3);
  CHECK(computing.step == 7);
  CHECK_FALSE(computing.waits);
  CHECK(doing_text(computing) == "computing conv1");
  CHECK(view().same_as(computing));

  data.enter({.activity = Activity::reading_data, .text = "img_0412.jpg"});
  CHECK(view().same_as(computing));  // prefetching is no progress of training
  training.enter({.activity = Activity::waiting_for_data, .step = 8});
  const RankView waiting = view();
  CHECK_FALSE(waiting.same_as(computing));
  CHECK_FALSE(waiting.waits);
  CHECK(doing_text(waiting) == "reading img_0412.jpg");
  data.enter({.activity = Activity::reading_data, .text = "img_0413.jpg"});
  CHECK_FALSE(view().same_as(waiting));  // slow data is progress

  communication.enter({.activity = Activity::communicating, .step = 8, .text = "all_reduce of bucket 0"});
  training.enter({.activity = Activity::computing, .step = 8, .text = "conv2"});
  CHECK_FALSE(view().waits);  // the collective runs in the background
  CHECK(view().in_message);
  training.enter({.activity = Activity::communicating, .step = 8, .text = "the last collectives of the step"});
  CHECK(view().waits);
  CHECK(doing_text(view()) == "in all_reduce of bucket 0");
  communication.leave();
  CHECK_FALSE(view().in_message);
  training.enter({.activity = Activity::waiting_for_ranks, .step = 8, .text = "between steps"});
  CHECK_FALSE(view().waits);  // it may also work for itself
  CHECK(doing_text(view()) == "outside of steps (between steps)");
}

}  // namespace
}  // namespace process_place_test
}  // namespace trainctl
