// Tests copies of a run's state in shared memory: a restart goes on from them, and they are removed.
#include <signal.h>

#include <algorithm>
#include <filesystem>

#include "core/base/format.h"
#include "core/base/memory_folder.h"
#include "io/checkpoint/load.h"
#include "test/catch.h"
#include "test/support/command.h"
#include "test/support/configs.h"

namespace trainctl::test::memory_copies_test {
namespace {

namespace fs = std::filesystem;

// Checkpoints are saved at the end only.
std::string write_config(const Folder& folder) {
  return folder.write("copies.yaml", lasting_config("{every: 1000 epochs, memory_every: 10 steps}", 60));
}

std::vector<std::string> run_of(const std::string& config, const std::string& directory) {
  return {"run", config, "--ranks", "2", "--run-dir", directory, "--progress", "none", "--max-restarts", "3"};
}

std::string weights_of(const std::string& directory) {
  const std::vector<Json> ends = events(directory, "end");
  return ends.empty() ? "" : ends.back().at("weights_sha256");
}

std::size_t steps_of(const std::string& directory) { return events(directory, "step").size(); }

// The step of the newest checkpoint in a directory; 0 if there is none.
std::int64_t newest_in(const std::string& directory) {
  std::int64_t newest = 0;
  try {
    for (const CheckpointFolder& checkpoint : list_checkpoints(directory)) newest = std::max(newest, checkpoint.step);
  } catch (const std::exception&) {  // the folder has changed meanwhile
  }
  return newest;
}

// The step of the newest copy; 0 if there is none.
std::int64_t newest_copy(const std::string& directory) { return newest_in(memory_folder_of(directory)); }

}  // namespace

TEST_CASE("a run whose ranks are killed goes on from a copy in memory, and loses only a few steps") {
  const Folder folder;
  const std::string config = write_config(folder), directory = folder / "run", whole = folder / "whole";
  const std::string copies = memory_folder_of(directory);
  REQUIRE(trainctl(folder, run_of(config, whole)).code == 0);
  CHECK_FALSE(fs::exists(memory_folder_of(whole)));
  Command run(folder, run_of(config, directory));
  std::size_t starts = 1;
  for (const int rank : {1, 0}) {
    REQUIRE(comes_true([&] { return events(directory, "start").size() == starts && run.ranks().size() == 2; }));
    const std::size_t before = steps_of(directory);
    REQUIRE(comes_true([&] { return steps_of(directory) > before + 25; }));
    REQUIRE(newest_copy(directory) > 0);
    kill(run.ranks().at(rank), SIGKILL);
    ++starts;
  }
  CHECK(run.wait() == 0);
  INFO(tail(run.errors()));
  CHECK(count(run.errors(), "goes on from " + copies + "/checkpoints/step-") == 2);
  for (std::size_t i = 1; i < 3; ++i) {
    const auto step = events(directory, "start").at(i).at("first_step").get<std::int64_t>();
    CHECK(contains(run.errors(), format("(restart {}) from the copy of step {} in the memory of ", i, step)));
  }
  const std::vector<Json> starts_found = events(directory, "start"), restarts = events(directory, "restart");
  REQUIRE(starts_found.size() == 3);
  // The last copies may not have been whole yet: at most two intervals and the steps of the log are lost.
  for (std::size_t i = 1; i < 3; ++i) {
    CHECK(starts_found[i].at("first_step").get<std::int64_t>() >= restarts[i - 1].at("step").get<std::int64_t>() - 30);
  }
  CHECK(weights_of(directory) == weights_of(whole));
  CHECK_FALSE(fs::exists(copies));
}

TEST_CASE("a damaged copy in memory is not used") {
  const Folder folder;
  const std::string config = write_config(folder), directory = folder / "run";
  Command run(folder, run_of(config, directory));
  REQUIRE(comes_true([&] { return newest_copy(directory) >= 20; }));
  const std::map<int, pid_t> ranks = run.ranks();
  for (const auto& [rank, process] : ranks) kill(process, SIGSTOP);
  for (const CheckpointFolder& copy : list_checkpoints(memory_folder_of(directory))) {
    fs::resize_file(copy.path + "/weights.safetensors", 100);
  }
  kill(ranks.at(1), SIGKILL);
  kill(ranks.at(0), SIGKILL);
  CHECK(run.wait() == 0);
  INFO(tail(run.errors()));
  CHECK(contains(run.errors(), "the copies in memory cannot be used: "));
  CHECK(events(directory, "start").back().at("first_step") == 0);
  CHECK_FALSE(fs::exists(memory_folder_of(directory)));
}

TEST_CASE("a run that goes on from a copy in memory does not read the older checkpoints on the disk") {
  const Folder folder;
  const std::string directory = folder / "run";
  const std::string config =
      folder.write("both.yaml", lasting_config("{every: 35 steps, memory_every: 10 steps, keep: 2}", 60));
  Command run(folder, run_of(config, directory));
  REQUIRE(comes_true([&] { return newest_in(directory) > 0 && newest_copy(directory) > 0; }));
  const pid_t first = run.ranks().at(0);
  REQUIRE(comes_true([&] {  // while the first rank is stopped, nothing is written
    kill(first, SIGSTOP);
    if (newest_copy(directory) > newest_in(directory)) return true;
    kill(first, SIGCONT);
    return false;
  }));
  for (const CheckpointFolder& checkpoint : list_checkpoints(directory)) {
    fs::resize_file(checkpoint.path + "/weights.safetensors", 100);
  }
  kill(first, SIGKILL);
  CHECK(run.wait() == 0);
  INFO(tail(run.errors()));
  CHECK(contains(run.errors(), "goes on from " + memory_folder_of(directory)));
  CHECK_FALSE(contains(run.errors(), "is damaged"));
  CHECK(weights_of(directory) != "");
}

TEST_CASE("copies that a killed run has left are removed by the next start, which does not use them") {
  const Folder folder;
  const std::string config = write_config(folder), directory = folder / "run";
  const std::string copies = memory_folder_of(directory);
  fs::create_directories(copies + "/checkpoints/step-00000500");
  Command run(folder, {"run", config, "--ranks", "1", "--run-dir", directory, "--set", "train.epochs=2"});
  CHECK(run.wait() == 0);
  INFO(tail(run.errors()));
  CHECK_FALSE(contains(run.errors(), "goes on from"));
  CHECK_FALSE(fs::exists(copies));
}

}  // namespace trainctl::test::memory_copies_test
