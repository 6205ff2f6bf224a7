// Tests which state a restart names: the newest checkpoint or copy in memory whose files are whole.
#include "run/training/next_state.h"

#include "core/base/memory_folder.h"
#include "io/metrics/run_lock.h"
#include "parallel/launch/hosts.h"
#include "parallel/launch/supervisor/supervisor.h"
#include "test/catch.h"
#include "test/support/snapshots.h"

namespace trainctl::test::next_state_test {
namespace {

// The copies in memory of the run in a directory, as ranks of the supervisor "n1-77-5" write them.
struct Copies {
  std::string folder;
  explicit Copies(const std::string& run) : folder(memory_folder_of(run)) {
    create_memory_folder(folder, 1 << 20);
    RunLock(Generation{"n1-77-5", 1}).take(folder);
  }
  ~Copies() { remove_memory_folder(folder); }
};

std::string save_step(const std::string& folder, std::int64_t step) {
  return save(CheckpointStore(folder, {.keep = 9}), RandomSnapshot(static_cast<unsigned>(step), step).snapshot);
}

}  // namespace

TEST_CASE("a restart names the newest whole state: a checkpoint, or a copy in memory that is newer") {
  const TemporaryFolder run;
  const auto named = [&](bool one_host = true) { return next_state_of({run.path, "n1-77-5", one_host}); };
  CHECK(named() == "the state with which it began, since no checkpoint was written yet");
  const std::string first = save_step(run.path, 20), second = save_step(run.path, 40);
  CHECK(named() == "checkpoint " + second);
  const Copies copies(run.path);
  save_step(copies.folder, 30);
  CHECK(named() == "checkpoint " + second);  // the copy is older
  const std::string copy = save_step(copies.folder, 50);
  CHECK(named() == "the copy of step 50 in the memory of " + this_host());
  CHECK(named(false) == "the copy of step 50 in the memory of " + this_host() + ", or a later one of another host");
  CHECK(next_state_of({run.path, "n1-78-5", true}) == "checkpoint " + second);  // of another start of the run
  fs::resize_file(copy + "/weights.safetensors", 100);
  CHECK(named() == "checkpoint " + second);
  fs::remove(second + "/state.safetensors");
  CHECK(named() == "the copy of step 30 in the memory of " + this_host());
  fs::remove_all(copies.folder + "/checkpoints");
  CHECK(named() == "checkpoint " + first);
  write_text(first + "/manifest.json", "damaged");
  CHECK(named() == "the state with which it began, since no checkpoint was written yet");
}

}  // namespace trainctl::test::next_state_test
