// Tests the lock that a supervisor keeps on its run's directory.
#include "core/base/supervisor_lock.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <string>

#include "core/base/format.h"
#include "test/catch.h"

namespace trainctl::supervisor_lock_test {
namespace {

namespace fs = std::filesystem;

// Two folders of this test alone.
struct Folders {
  fs::path path = fs::temp_directory_path() / format("trainctl-supervisor-{}", getpid());
  std::string first = path / "first", second = path / "second";
  Folders() {
    fs::create_directories(first);
    fs::create_directories(second);
  }
  ~Folders() { fs::remove_all(path); }
};

// A process that has taken the lock of a folder.
struct Holder {
  pid_t process = -1;
  bool took = false;
  Holder(const std::string& folder, const std::string& launch) {
    std::array<int, 2> ends{};
    REQUIRE(pipe(ends.data()) == 0);
    process = fork();
    if (process == 0) {
      SupervisorLock lock;
      const char taken = lock.take(folder, launch) ? '+' : '-';
      if (write(ends[1], &taken, 1) == 1) pause();
      _exit(0);
    }
    char taken = 0;
    took = read(ends[0], &taken, 1) == 1 && taken == '+';
    close(ends[0]);
    close(ends[1]);
  }
  ~Holder() { end(); }
  void end() {
    if (process > 0) {
      kill(process, SIGKILL);
      waitpid(process, nullptr, 0);
    }
    process = -1;
  }
};

TEST_CASE("the supervisor of a directory is known while it lives, and its name also afterwards") {
  const Folders folders;
  CHECK_FALSE(supervisor_of(folders.first));
  CHECK(last_supervisor_of(folders.first).empty());
  Holder holder(folders.first, "n1-77-5");
  REQUIRE(holder.took);
  for (int look = 0; look < 3; ++look) {
    const auto found = supervisor_of(folders.first);
    REQUIRE(found);
    CHECK(found->launch == "n1-77-5");
    CHECK(found->process.starts_with(format("process {} on ", holder.process)));
  }
  SupervisorLock second;
  CHECK_FALSE(second.take(folders.first, "n1-78-5"));
  CHECK(supervisor_of(folders.first)->launch == "n1-77-5");
  CHECK_FALSE(supervisor_of(folders.second));
  holder.end();  // by a signal that nothing can catch
  CHECK_FALSE(supervisor_of(folders.first));
  CHECK(last_supervisor_of(folders.first) == "n1-77-5");
  CHECK(second.take(folders.first, "n1-7-5"));  // a shorter name than that before
  CHECK(second.take(folders.first, "n1-7-5"));
  CHECK(last_supervisor_of(folders.first) == "n1-7-5");
  CHECK(second.take(folders.second, "n1-7-5"));  // instead of the first
  CHECK_FALSE(supervisor_of(folders.first));
  CHECK(supervisor_of(folders.second));
  second.release();
  CHECK_FALSE(supervisor_of(folders.second));
}

TEST_CASE("a lock whose file was removed is taken again") {
  const Folders folders;
  SupervisorLock lock;
  REQUIRE(lock.take(folders.first, "n1-77-5"));
  fs::remove(folders.first + "/supervisor");
  CHECK_FALSE(supervisor_of(folders.first));
  CHECK(lock.take(folders.first, "n1-77-5"));
  CHECK(supervisor_of(folders.first)->launch == "n1-77-5");
  fs::remove(folders.first + "/supervisor");
  SupervisorLock second;
  REQUIRE(second.take(folders.first, "n1-78-5"));
  CHECK_FALSE(lock.take(folders.first, "n1-77-5"));
  CHECK(supervisor_of(folders.first)->launch == "n1-78-5");
}

TEST_CASE("the name of a supervisor names its host, also with hyphens") {
  CHECK(host_of_launch("node-77-5") == "node");
  CHECK(host_of_launch("node-1-77-5") == "node-1");
  for (const char* wrong : {"", "node", "-", "node-77", "-7"}) CHECK(host_of_launch(wrong).empty());
  const std::string process = process_on_host(), here = process.substr(process.rfind(' ') + 1);
  CHECK(is_launch_of_this_host(here + "-77-5"));
  CHECK_FALSE(is_launch_of_this_host(here + "-1-77-5"));
}

TEST_CASE("a lock file that cannot be opened or is no regular file holds nothing") {
  const Folders folders;
  SupervisorLock lock;
  CHECK_FALSE(lock.take(folders.path / "nowhere", "n1-1-1"));
  CHECK_FALSE(supervisor_of(folders.path / "nowhere"));
  REQUIRE(mkfifo((folders.first + "/supervisor").c_str(), 0600) == 0);
  CHECK_FALSE(lock.take(folders.first, "n1-1-1"));
  CHECK_FALSE(supervisor_of(folders.first));
}

}  // namespace
}  // namespace trainctl::supervisor_lock_test
