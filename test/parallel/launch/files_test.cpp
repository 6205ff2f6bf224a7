// Tests the status file, the names of supervisors and the folders for temporary files.
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "core/base/error.h"
#include "parallel/launch/host/scratch.h"
#include "parallel/launch/hosts.h"
#include "parallel/launch/ranks/status.h"
#include "parallel/launch/supervisor/launch_name.h"
#include "parallel/launch/supervisor/resize.h"
#include "test/catch.h"

namespace trainctl::files_test {
namespace {

namespace fs = std::filesystem;

// A folder of this test alone.
struct Folder {
  std::string path = (fs::temp_directory_path() / "launch-files-XXXXXX").string();
  Folder() { REQUIRE(mkdtemp(path.data()) != nullptr); }
  ~Folder() { fs::remove_all(path); }
};

TEST_CASE("the first status that is written counts, and is read back unchanged") {
  const Folder folder;
  const std::string path = folder.path + "/status";
  CHECK_FALSE(read_status(path));
  const RankStatus status{3,
                          "line one\n  line two: ü\n",
                          {{{"a.yaml", 3, 4}, "line one", {"b.yaml", 5, 6}, "two"}, {{}, "no \"place\"", {}, ""}}};
  CHECK(write_status(path, status) == StatusWritten::yes);
  CHECK(read_status(path) == status);
  CHECK(write_status(path, {0, ""}) == StatusWritten::another_was_first);
  CHECK(read_status(path) == status);
  CHECK(std::distance(fs::directory_iterator(folder.path), fs::directory_iterator()) == 1);
  CHECK(write_status("", status) == StatusWritten::unreachable);
  CHECK(write_status("/nonexistent/status", status) == StatusWritten::unreachable);
  CHECK(write_status(folder.path + "/empty", {0, ""}) == StatusWritten::yes);
  CHECK(read_status(folder.path + "/empty") == RankStatus{0, ""});
  const RankStatus silent{5, "no answer", {}, {.rank = 3, .host = "n2", .step = 120, .is_silent = true}};
  const RankStatus early{6, "", {}, {.rank = 0}};
  CHECK(write_status(folder.path + "/silent", silent) == StatusWritten::yes);
  CHECK(read_status(folder.path + "/silent") == silent);
  CHECK(write_status(folder.path + "/early", early) == StatusWritten::yes);
  CHECK(read_status(folder.path + "/early") == early);
}

TEST_CASE("an error replaces that of a rank which has only noticed that another rank was gone") {
  const Folder folder;
  const std::string path = folder.path + "/status";
  const RankStatus effect{5, "no answer from rank 1", {}, {.rank = 1, .host = "n2", .is_silent = true}};
  const RankStatus cause{3, "image.jpg cannot be decoded", {}, {.rank = 1, .host = "n2", .step = 7}};
  CHECK(write_status(path, effect) == StatusWritten::yes);
  for (const int code : {0, 1, 5, 75}) {
    CHECK(write_status(path, {code, "later"}) == StatusWritten::another_was_first);
    CHECK(read_status(path) == effect);
  }
  CHECK(write_status(path, cause) == StatusWritten::yes);
  CHECK(read_status(path) == cause);
  CHECK(write_status(path, {4, "later"}) == StatusWritten::another_was_first);
  CHECK(write_status(path, effect) == StatusWritten::another_was_first);
  CHECK(read_status(path) == cause);
  CHECK(std::distance(fs::directory_iterator(folder.path), fs::directory_iterator()) == 1);
}

TEST_CASE("the name of a supervisor tells whether it still runs") {
  CHECK(supervisor_runs(launch_name()) == true);
  const pid_t child = fork();
  if (child == 0) _exit(0);
  REQUIRE(waitpid(child, nullptr, 0) == child);
  CHECK(supervisor_runs(this_host() + "-" + std::to_string(child) + "-1796007627000000") == false);
  CHECK_FALSE(supervisor_runs("elsewhere-" + std::to_string(getpid()) + "-1796007627000000"));
  CHECK_FALSE(supervisor_runs(this_host() + "-1-" + std::to_string(child) + "-1796007627000000"));  // another host
  for (const char* wrong : {"", "-", "-x-1", "-7", "-0-1"}) CHECK_FALSE(supervisor_runs(this_host() + wrong));
}

TEST_CASE("a marked run is ready, and the path of its log is read back") {
  const Folder folder;
  CHECK_FALSE(is_ready(folder.path + "/status"));
  mark_ready(folder.path + "/status");
  CHECK(is_ready(folder.path + "/status"));
  CHECK(read_log_path(folder.path + "/status").empty());
  write_log_path(folder.path + "/status", "/runs/a b/log.txt");
  CHECK(read_log_path(folder.path + "/status") == "/runs/a b/log.txt");
}

TEST_CASE("refused requests are read in order, and a number of ranks that nobody can have is no request") {
  const Folder folder;
  const std::string path = folder.path + "/status";
  CHECK(read_refused_resizes(path).empty());
  const RefusedResize first{3, "a replica has 2 ranks\nrequest a multiple of 2"}, second{5, "too \"many\""};
  write_refused_resize(path, first);
  CHECK(read_refused_resizes(path) == std::vector{first});
  std::ofstream(path + ".refused", std::ios::app) << "{\"ranks\":4,\"rea";  // the disk was full
  CHECK(read_refused_resizes(path) == std::vector{first});
  write_refused_resize(path, second);
  CHECK(read_refused_resizes(path) == std::vector{first, second});
  CHECK(read_refused_resizes(path, 1) == std::vector{second});
  CHECK(read_refused_resizes(path, 2).empty());
  CHECK(read_refused_resizes("").empty());
  request_ranks(folder.path, 5);
  CHECK(requested_ranks_of(folder.path) == 5);
  for (const char* text : {"0", "-3", "2000000", "99999999999999999999", "many", ""}) {
    std::ofstream(folder.path + "/resize") << text;
    CHECK_FALSE(requested_ranks_of(folder.path));
  }
}

TEST_CASE("without access to the supervisor's folder a rank reports through standard error") {
  const Folder folder;
  const std::string path = folder.path + "/status", nowhere = folder.path + "/elsewhere/status";
  std::array<int, 2> ends{};
  REQUIRE(pipe(ends.data()) == 0);
  const int errors = dup(STDERR_FILENO);
  dup2(ends[1], STDERR_FILENO);
  mark_ready(nowhere, {12, 34});
  dprintf(STDERR_FILENO, "a warning\n");
  write_stop_time(nowhere, {7.5, true, true});
  write_step(nowhere, 1200);
  const StatusWritten written =
      write_status(nowhere, {75, "its message, which it prints itself", {}, {.rank = 1, .host = "n2", .step = 1234}});
  dup2(errors, STDERR_FILENO);
  std::string text(4096, '\0');
  text.resize(static_cast<std::size_t>(read(ends[0], text.data(), text.size())));
  for (const int each : {ends[0], ends[1], errors}) close(each);
  CHECK(written == StatusWritten::unreachable);
  CHECK_FALSE(is_ready(path));
  take_notes(path, text);
  CHECK(text == "a warning\n");
  CHECK(is_ready(path));
  CHECK(marked_processes(path) == std::vector<int>{12, 34});
  CHECK(read_stop_time(path) == StopTime{7.5, true, true});
  CHECK(read_step(path) == 1200);
  CHECK(read_status(path) == RankStatus{75, "", {}, {.rank = 1, .host = "n2", .step = 1234}});
}

TEST_CASE("a scratch folder is removed with its owner, and so are those of owners that were killed") {
  const Folder folder;
  const std::string abandoned = folder.path + "/trainctl-" + std::to_string(geteuid()) + "-aaaaaa";
  const std::string other = folder.path + "/something-else";
  fs::create_directories(abandoned + "/deep");
  fs::create_directory(other);
  std::string path;
  {
    const ScratchFolder first(folder.path);
    CHECK_FALSE(fs::exists(abandoned));
    path = first.path();
    std::ofstream(path + "/file") << 1;
    const ScratchFolder second(folder.path);  // does not remove the folder of a living owner
    CHECK(fs::exists(path + "/file"));
    CHECK(second.path() != path);
  }
  CHECK_FALSE(fs::exists(path));
  CHECK(fs::exists(other));
  CHECK_THROWS_AS(ScratchFolder("/nonexistent"), Error);
}

}  // namespace
}  // namespace trainctl::files_test
