// Tests full disks, folders that cannot be written, and processes that are killed during a save.
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <set>
#include <thread>

#include "core/base/error.h"
#include "io/checkpoint/atomic_file.h"
#include "io/checkpoint/inspection.h"
#include "io/checkpoint/load.h"
#include "io/checkpoint/store.h"
#include "test/catch.h"
#include "test/io/checkpoint/parts.h"

namespace trainctl::test::faults_test {
namespace {

// Limits the size of files that this process writes, for the life of the object: like a full disk, but without root.
struct FileSizeLimit {
  rlimit before;
  explicit FileSizeLimit(rlim_t bytes) {
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    const rlimit limit{bytes, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() { setrlimit(RLIMIT_FSIZE, &before); }
};

template <class Work>
std::string resource_failure(Work work) {
  ErrorKind kind{};
  const std::string text = failure_of(work, &kind);
  CHECK(kind == ErrorKind::resource);
  return text;
}

int count_of(const std::string& folder) {
  return static_cast<int>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

}  // namespace

TEST_CASE("a disk that fills up keeps the old checkpoints and no files of the new one") {
  const TemporaryFolder run;
  CheckpointStore store(run.path, {.keep = 1});
  const RandomSnapshot first(1, 10);
  save(store, first.snapshot);
  const RandomSnapshot large(2, 20, 100);
  std::string text;
  {
    const FileSizeLimit limit(20000);
    text = resource_failure([&] { save(store, with_best(large.snapshot, 20)); });
  }
  CHECK(text.find(run / "checkpoints/step-00000020: cannot write") == 0);
  CHECK(text.find("432.1 kB are needed") != std::string::npos);
  CHECK(count_of(run / "checkpoints") == 2);  // step-00000010 and last
  CHECK(same(load_newest_checkpoint(run.path)->snapshot.weights, first.snapshot.weights));
  CHECK_NOTHROW(save(store, with_best(large.snapshot, 20)));
}

TEST_CASE("the error for a full file system has the bytes that are needed and free") {
  const TemporaryFolder mount_point;
  if (mount("tmpfs", mount_point.path.c_str(), "tmpfs", 0, "size=256k") != 0) {
    std::puts("skipped: mounting a small file system needs root");
    return;
  }
  {
    CheckpointStore store(mount_point.path, {});
    save(store, RandomSnapshot(1, 10).snapshot);
    const std::string text = resource_failure([&] { save(store, RandomSnapshot(2, 20, 100).snapshot); });
    CHECK(text.find("No space left on device (432.1 kB are needed") != std::string::npos);
    CHECK(text.find("are free)") != std::string::npos);
    CHECK(load_newest_checkpoint(mount_point.path)->snapshot.step == 10);
    CHECK(count_of(mount_point / "checkpoints") == 2);
  }
  umount(mount_point.path.c_str());
}

TEST_CASE("write_file replaces a file completely or keeps it") {
  const TemporaryFolder folder;
  write_file(folder / "a", "first");
  write_file(folder / "a", "second");
  CHECK(read_text(folder / "a") == "second");
  {
    const FileSizeLimit limit(1000);
    resource_failure([&] { write_file(folder / "a", std::string(5000, 'x')); });
  }
  CHECK(read_text(folder / "a") == "second");
  CHECK(count_of(folder.path) == 1);
  CHECK(resource_failure([&] { write_file(folder / "none/a", "text"); }).find(folder / "none/a: cannot write") == 0);
  write_text(folder / "b", "");
  CHECK(resource_failure([&] { CheckpointStore store(folder / "b", {}); }).find("cannot write") != std::string::npos);
  CHECK(resource_failure([] { OutputFile("/dev/full", "f", 5).write("12345", 5); }).find("f: cannot write") == 0);
}

TEST_CASE("files that killed writers left are removed when the file is written again") {
  const TemporaryFolder folder;
  int started[2];
  REQUIRE(pipe(started) == 0);
  const auto start_writer = [&](const std::string& name) {  // it never finishes
    const pid_t child = fork();
    if (child != 0) {
      char byte;
      REQUIRE(read(started[0], &byte, 1) == 1);
      return child;
    }
    write_file(folder / name, 1, [&](OutputFile& file) {
      file.write("x", 1);
      if (write(started[1], "", 1) == 1) pause();
    });
    _exit(0);
  };
  const pid_t dead = start_writer("a"), alive = start_writer("a"), other = start_writer("b");
  CHECK(count_of(folder.path) == 3);
  for (const pid_t child : {dead, other}) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
  write_text(folder / (".partial-" + std::to_string(dead) + "-another.host-a"), "of a host that shares the folder");
  write_file(folder / "a", "whole");
  // The files left are those of the living writer, of the other file, of the other host, and the file itself.
  CHECK(count_of(folder.path) == 4);
  kill(alive, SIGKILL);
  waitpid(alive, nullptr, 0);
  { AtomicFolder again(folder / "b"); }
  replace_link(folder / "a", "b");
  CHECK(count_of(folder.path) == 2);
  for (const int end : started) close(end);
}

TEST_CASE("checkpoints of a killed process are whole") {
  const TemporaryFolder run;
  const bool in_parts = GENERATE(false, true);
  std::vector<RandomSnapshot> snapshots;
  for (unsigned seed = 0; seed < 4; ++seed) snapshots.emplace_back(seed, 0, 50);
  const auto snapshot_of = [&](std::int64_t step) -> Snapshot& {
    return snapshots[static_cast<std::size_t>(step % 4)].snapshot;
  };
  std::mt19937 random(7);
  int leftovers = 0;
  std::int64_t newest = 0;
  for (int round = 0; round < 25; ++round) {
    int saved[2];
    REQUIRE(pipe(saved) == 0);
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      CheckpointStore store(run.path, {.keep = 2});
      for (std::int64_t step = newest + 1;; ++step) {
        snapshot_of(step).step = step;
        const Snapshot snapshot = with_best(snapshot_of(step), std::max<std::int64_t>(step / 3 * 3, 1));
        in_parts ? save_in_parts(std::move(store), snapshot) : save(store, snapshot);
        if (write(saved[1], "", 1) != 1) _exit(1);
      }
    }
    close(saved[1]);
    char byte;
    for (unsigned i = 0; i <= random() % 3; ++i) REQUIRE(read(saved[0], &byte, 1) == 1);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 10000));
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    close(saved[0]);
    REQUIRE(WIFSIGNALED(status));

    for (const auto& entry : fs::directory_iterator(run / "checkpoints")) {
      leftovers += entry.path().filename().string().starts_with(".partial-");
    }
    for (const CheckpointFolder& checkpoint : list_checkpoints(run.path)) {
      const LoadedCheckpoint loaded = load_checkpoint(checkpoint.path);
      CHECK(same(loaded.snapshot.weights, snapshot_of(checkpoint.step).weights));
    }
    for (const char* link : {"/last", "/best"}) {
      if (fs::is_symlink(run / "checkpoints" + link)) CHECK_NOTHROW(load_checkpoint(run / "checkpoints" + link));
    }
    const auto loaded = load_newest_checkpoint(run.path);
    REQUIRE(loaded);
    CHECK(loaded->snapshot.step > newest);
    newest = loaded->snapshot.step;
  }
  CHECK(leftovers > 0);  // some were killed inside a save
  CheckpointStore cleaner(run.path, {});
  for (const auto& entry : fs::directory_iterator(run / "checkpoints")) {
    CHECK_FALSE(entry.path().filename().string().starts_with(".partial-"));
  }
}

TEST_CASE("links can be read while a running process replaces them") {
  const TemporaryFolder run;
  std::vector<RandomSnapshot> snapshots;
  for (unsigned seed = 0; seed < 3; ++seed) snapshots.emplace_back(seed, 0, 30);
  int saved[2];
  REQUIRE(pipe(saved) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    CheckpointStore store(run.path, {.keep = 1});
    for (std::int64_t step = 1;; ++step) {
      Snapshot& snapshot = snapshots[static_cast<std::size_t>(step % 3)].snapshot;
      snapshot.step = step;
      save(store, with_best(snapshot, std::max<std::int64_t>(step / 2 * 2, 1)));
      if (step == 2 && write(saved[1], "", 1) != 1) _exit(1);
    }
  }
  close(saved[1]);
  char byte;
  REQUIRE(read(saved[0], &byte, 1) == 1);
  std::string problem;
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  std::set<std::int64_t> seen;
  while (problem.empty() && std::chrono::steady_clock::now() < until) {
    try {
      for (const char* name : {"checkpoints/last", "checkpoints/best", ""}) {
        seen.insert(load_named_checkpoint(run / name).snapshot.step);
        for (const Inspection& found : inspect_all(run / name)) problem += found.problem;
      }
    } catch (const Error& error) {
      problem = error.what();
    }
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  close(saved[0]);
  CHECK(problem == "");
  CHECK(seen.size() > 3);  // checkpoints were saved and removed meanwhile
}

TEST_CASE("the error for a disk without free inodes says so") {
  const TemporaryFolder mount_point;
  if (mount("tmpfs", mount_point.path.c_str(), "tmpfs", 0, "nr_inodes=12") != 0) {
    std::puts("skipped: mounting a small file system needs root");
    return;
  }
  for (int i = 0; i < 11; ++i) write_text(mount_point / std::to_string(i), "");
  const std::string text = resource_failure([&] { write_file(mount_point / "a", "text"); });
  CHECK(contains(text, "no inodes are left"));
  CHECK_FALSE(contains(text, "0 bytes"));
  CHECK(contains(resource_failure([&] { create_folders(mount_point / "b"); }), "no inodes are left"));
  umount(mount_point.path.c_str());
}

TEST_CASE("checkpoints that cannot be read are data errors, not missing checkpoints") {
  const TemporaryFolder run;
  fs::create_symlink("checkpoints", run / "checkpoints");  // a loop
  for (const std::string& path :
       {run.path, run / "checkpoints", run / "checkpoints/last", run / std::string(300, 'x')}) {
    CAPTURE(path);
    ErrorKind kind{};
    failure_of([&] { load_named_checkpoint(path); }, &kind);
    CHECK(kind == ErrorKind::data);
  }
  ErrorKind kind{};
  CHECK(contains(failure_of([&] { list_checkpoints(run.path); }, &kind), "cannot be read"));
  CHECK(kind == ErrorKind::data);
  fs::remove(run / "checkpoints");
  // Pipes and devices are not waited for.
  const std::string path = save(CheckpointStore(run.path, {}), RandomSnapshot(1, 10).snapshot);
  for (const char* name : {"manifest.json", "state.safetensors"}) {
    const std::string text = read_text(path + "/" + name);
    fs::remove(path + "/" + name);
    REQUIRE(mkfifo((path + "/" + name).c_str(), 0600) == 0);
    failure_of([&] { load_checkpoint(path); }, &kind);
    CHECK(kind == ErrorKind::data);
    fs::remove(path + "/" + name);
    fs::create_symlink("/dev/zero", path + "/" + name);
    failure_of([&] { load_checkpoint(path); }, &kind);
    CHECK(kind == ErrorKind::data);
    fs::remove(path + "/" + name);
    write_text(path + "/" + name, text);
  }
  CHECK_NOTHROW(load_checkpoint(path));
}

}  // namespace trainctl::test::faults_test
