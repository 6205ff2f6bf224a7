// Tests the checks of this host's resources before ranks start.
#include "parallel/launch/host/resources.h"

#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>

#include "core/base/error.h"
#include "test/catch.h"

namespace trainctl::room_test {
namespace {

// Runs a function in a process of its own; returns the kind of its error as an exit code, 0 without an error.
int in_a_process(const std::function<void()>& run) {
  const pid_t child = fork();
  if (child == 0) {
    try {
      run();
    } catch (const Error& error) {
      _exit(exit_code(error.kind()));
    }
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_CASE("disk space is what the file system has left") {
  const std::string folder = std::filesystem::temp_directory_path();
  struct statvfs status {};
  REQUIRE(statvfs(folder.c_str(), &status) == 0);
  const auto left = static_cast<std::int64_t>(status.f_bavail) * static_cast<std::int64_t>(status.f_frsize);
  CHECK(disk_space_problem(folder, left / 2).empty());
  CHECK(disk_space_problem(folder, left * 2).find(folder + " has ") == 0);
  CHECK(disk_space_problem("/nonexistent", 1).find("/nonexistent: No such file") == 0);
  CHECK(disk_space_problem("/proc", 1).empty());  // a file system that reports no space
}

TEST_CASE("if not all ranks can start, none is started") {
  const auto start = [](int ranks, int seconds) {
    return in_a_process([=] { require_ranks_can_start({ranks, 1, 2}, std::chrono::seconds(seconds)); });
  };
  CHECK(start(4, 60) == 0);
  CHECK(start(100'000'000, 0) == 6);  // more than a host has memory
  CHECK(start(100, 1) == 6);          // in a second, on two cores
  CHECK(start(8, 1) == 0);
  CHECK(start(100, 0) == 0);
  CHECK(start_seconds({64, 1, 2}) > 2);
  CHECK(start_seconds({64, 1, 2}) < 12);
  CHECK(start_text({1000, 1, 2}) == "1,000 ranks on 2 cores take about 375 s to start");
  const auto limited = [](int ranks, rlim_t limit) {
    return in_a_process([=] {
      const rlimit both{limit, limit};
      if (setrlimit(RLIMIT_NPROC, &both) != 0 || setuid(65534) != 0) _exit(99);
      require_ranks_can_start({ranks, 1, 2}, std::chrono::seconds(0));
    });
  };
  if (geteuid() != 0) return;  // the limit is a user's, and root has none
  CHECK(limited(4, 100) == 0);
  CHECK(limited(40, 100) == 6);
}

TEST_CASE("a deleted working directory is a resource error") {
  CHECK(in_a_process([] { require_working_directory(); }) == 0);
  CHECK(in_a_process([] {
          std::string folder = std::filesystem::temp_directory_path() / "room-test-XXXXXX";
          if (mkdtemp(folder.data()) == nullptr || chdir(folder.c_str()) != 0 || rmdir(folder.c_str()) != 0) _exit(99);
          require_working_directory();
        }) == 6);
}

TEST_CASE("a limit of file sizes below those of mpirun's files is a resource error") {
  const auto with_limit = [](rlim_t limit) {
    return in_a_process([=] {
      const rlimit both{limit, limit};
      if (setrlimit(RLIMIT_FSIZE, &both) != 0) _exit(99);
      require_file_size("/tmp", resources_needed(2).file_size);
    });
  };
  CHECK(with_limit(4 << 20) == 6);
  CHECK(with_limit(5 << 20) == 0);
}

TEST_CASE("the limit of open files is raised as far as it may be") {
  const auto with_limits = [](rlim_t soft, rlim_t hard, int needed) {
    return in_a_process([=] {
      const rlimit limit{soft, hard};
      if (setrlimit(RLIMIT_NOFILE, &limit) != 0) _exit(99);
      permit_open_files(needed);
      rlimit now{};
      getrlimit(RLIMIT_NOFILE, &now);
      if (now.rlim_cur < static_cast<rlim_t>(needed) || now.rlim_cur < soft) _exit(98);
    });
  };
  CHECK(with_limits(20, 200, 100) == 0);
  CHECK(with_limits(150, 200, 100) == 0);
  CHECK(with_limits(20, 99, 100) == 6);
}

}  // namespace
}  // namespace trainctl::room_test
