// Tests the folders in shared memory: their names, their owner, and the check of their space.
#include "core/base/memory_folder.h"

#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "core/base/error.h"
#include "core/base/generation.h"
#include "test/catch.h"

namespace trainctl::test::memory_folder_test {
namespace {

namespace fs = std::filesystem;

struct TemporaryFolder {
  std::string path = (fs::temp_directory_path() / "trainctl-test-XXXXXX").string();
  TemporaryFolder() { REQUIRE(mkdtemp(path.data()) != nullptr); }
  ~TemporaryFolder() { fs::remove_all(path); }
};

std::string failure_of(const std::string& folder, std::int64_t bytes) {
  try {
    create_memory_folder(folder, bytes);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::resource);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a run's folder in shared memory has a name of the user and of the run's directory") {
  const std::string folder = memory_folder_of("/a/b/mnist", "/shm");
  CHECK(folder.starts_with("/shm/trainctl-" + std::to_string(geteuid()) + "/mnist-"));
  CHECK(memory_folder_of("/a/b/mnist/", "/shm") == folder);
  CHECK(memory_folder_of("/a/c/../b/mnist", "/shm") == folder);
  CHECK(memory_folder_of("/a/c/mnist", "/shm") != folder);
  CHECK(memory_folder_of("mnist", "/shm") == memory_folder_of(fs::current_path() / "mnist", "/shm"));
}

TEST_CASE("folders in shared memory are private, and are removed with the user's folder") {
  const TemporaryFolder shared;
  const std::string first = memory_folder_of("/a", shared.path), second = memory_folder_of("/b", shared.path);
  CHECK(failure_of(first, 0) == "");
  CHECK(failure_of(second, 0) == "");
  CHECK(failure_of(second, 0) == "");
  struct stat status {};
  REQUIRE(stat(fs::path(first).parent_path().c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0700);
  std::ofstream(first + "/file") << "copy";
  remove_memory_folder(first);
  CHECK_FALSE(fs::exists(first));
  CHECK(fs::exists(second));
  remove_memory_folder(second);
  CHECK(fs::is_empty(shared.path));
  remove_memory_folder(second);
}

TEST_CASE("the copies of one supervisor are found among those of others") {
  const TemporaryFolder shared;
  const auto write = [&](const char* run, const std::string& launch) {
    const std::string folder = memory_folder_of(run, shared.path);
    create_memory_folder(folder, 0);
    std::ofstream(folder + "/lock") << "host:17\n" << to_line({launch, 2});
    return folder;
  };
  const std::string first = write("/a", "h-17-4"), second = write("/b", "h-17-4");
  write("/c", "h-17-45");
  write("/d", "");
  CHECK(copies_of_launch("h-17-4", shared.path) == std::set<std::string>{first, second});
  CHECK(copies_of_launch("h-17", shared.path).empty());
  CHECK(copies_of_launch("", shared.path).empty());
  CHECK(copies_of_launch("h-17-4", shared.path + "/absent").empty());
}

TEST_CASE("a folder in shared memory that another user could control is refused") {
  const TemporaryFolder shared;
  const std::string folder = memory_folder_of("/a", shared.path);
  fs::create_directory_symlink("/tmp", fs::path(folder).parent_path());
  CHECK(failure_of(folder, 0).find("belongs to another user or is no folder") != std::string::npos);
}

TEST_CASE("too little shared memory is an error with the bytes that are left and needed") {
  const TemporaryFolder shared;
  if (mount("tmpfs", shared.path.c_str(), "tmpfs", 0, "size=256k") != 0) {
    std::puts("skipped: mounting a small file system needs root");
    return;
  }
  const std::string folder = memory_folder_of("/a", shared.path);
  const std::string error = failure_of(folder, 300'000);
  CHECK(error.find(shared.path + ": no copies of the run's state can be kept in memory: it has 26") == 0);
  CHECK(error.find("but two copies need 300.0 kB; make it larger") != std::string::npos);
  CHECK_FALSE(fs::exists(folder));
  CHECK_THROWS_AS(require_shared_memory(shared.path, 300'000), Error);
  CHECK_NOTHROW(require_shared_memory(shared.path, 200'000));
  CHECK(failure_of(folder, 200'000) == "");
  std::ofstream(folder + "/file") << std::string(150'000, 'x');  // counts as the run's own
  CHECK(failure_of(folder, 200'000) == "");
  remove_memory_folder(folder);
  umount(shared.path.c_str());
}

}  // namespace trainctl::test::memory_folder_test
