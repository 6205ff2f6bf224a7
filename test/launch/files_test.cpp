// The status file and the folders for temporary files.
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/base/error.h"
#include "parallel/launch/scratch.h"
#include "parallel/launch/status.h"
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

TEST_CASE("the first status counts, and comes back as it was") {
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
}

TEST_CASE("ranks say once that they listen") {
  const Folder folder;
  CHECK_FALSE(is_ready(folder.path + "/status"));
  mark_ready(folder.path + "/status");
  CHECK(is_ready(folder.path + "/status"));
  CHECK(read_log_path(folder.path + "/status").empty());
  write_log_path(folder.path + "/status", "/runs/a b/log.txt");
  CHECK(read_log_path(folder.path + "/status") == "/runs/a b/log.txt");
}

TEST_CASE("a scratch folder goes with its owner, and so do those of owners that were killed") {
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
    const ScratchFolder second(folder.path);  // leaves the one that lives alone
    CHECK(fs::exists(path + "/file"));
    CHECK(second.path() != path);
  }
  CHECK_FALSE(fs::exists(path));
  CHECK(fs::exists(other));
  CHECK_THROWS_AS(ScratchFolder("/nonexistent"), Error);
}

}  // namespace
}  // namespace trainctl::files_test
