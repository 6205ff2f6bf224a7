// Tests snapshots that ranks save in random shards and other ranks read in other shards, and failures of one rank.
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>
#include <sstream>

#include "core/backend/immediate_stream.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "io/checkpoint/load.h"
#include "io/checkpoint/store.h"
#include "parallel/checkpoint/restore.h"
#include "parallel/checkpoint/snapshot_saver.h"
#include "test/catch.h"
#include "test/parallel/checkpoint/random_parts.h"
#include "test/parallel/comm/on_threads.h"
#include "test/support/snapshots.h"

namespace trainctl::test::snapshots_test {
namespace {

struct Distribution {
  int ranks = 1;
  unsigned seed = 1;
};

// Writes to a folder, or fails always.
class LimitedSink final : public SnapshotSink {
 public:
  explicit LimitedSink(bool fails) : fails_(fails) {}
  std::string write(const SnapshotTarget& target, const SnapshotFile& file,
                    std::span<const NamedTensor> parts) override {
    if (fails_)
      throw Error(ErrorKind::resource, SourceLocation{target.path}, "cannot write: the disk is full",
                  "free some space");
    return folder_.write(target, file, parts);
  }

 private:
  bool fails_;
  FolderSink folder_;
};

// The errors of the ranks that save into a run directory; rank `loner` has no sink, rank `failing` cannot write.
std::vector<std::string> save_on_ranks(const std::string& run, const Distribution& how, std::int64_t step,
                                       int loner = -1, int failing = -1) {
  return on_threads(how.ranks, [&](Communicator& world) {
    ImmediateStream stream;
    RankTensors weights("", how.seed, world.rank(), how.ranks), state("adam/", how.seed + 1, world.rank(), how.ranks);
    weights.fill();
    state.fill();
    std::unique_ptr<CheckpointStore> store;
    if (world.rank() == 0) store = std::make_unique<CheckpointStore>(run, StorePolicy{});
    LimitedSink sink(world.rank() == failing);
    const SnapshotPlan plan = plan_snapshot(weights.tensors(), state.tensors(), world, stream);
    SnapshotSaver saver(plan, {world.rank() == loner ? nullptr : &sink, store.get()}, world, stream);
    Snapshot snapshot;
    snapshot.step = step;
    snapshot.mesh = {how.ranks, 1, 1};
    snapshot.weights = weights.tensors();
    snapshot.state = state.tensors();
    saver.save(snapshot);
  });
}

std::vector<std::string> restore_on_ranks(const std::string& run, const Distribution& how) {
  return on_threads(how.ranks, [&](Communicator& world) {
    ImmediateStream stream;
    std::optional<LoadedCheckpoint> loaded;
    RestoreSource source;
    if (world.rank() == 0) {
      loaded = load_newest_checkpoint(run);
      source = {&loaded->snapshot, loaded->path, "test.yaml"};
    }
    RankTensors weights("", how.seed, world.rank(), how.ranks), state("adam/", how.seed + 1, world.rank(), how.ranks);
    const SnapshotPlan plan = plan_snapshot(weights.tensors(), state.tensors(), world, stream);
    restore_weights(source, plan.weights, weights.tensors(), world, stream);
    restore_state(source, plan.state, state.tensors(), world, stream);
    const std::string wrong = weights.wrong() + state.wrong();
    if (!wrong.empty()) throw Error(ErrorKind::data, wrong + " is wrong");
  });
}

std::vector<std::string> no_errors(int ranks) { return std::vector<std::string>(static_cast<std::size_t>(ranks)); }

}  // namespace

TEST_CASE("tensors that ranks save in random shards are read by other ranks in other shards") {
  std::set<std::size_t> files;  // numbers of weight files of the checkpoints
  for (unsigned seed = 0; seed < 40; ++seed) {
    const TemporaryFolder run;
    const int writers = 1 + static_cast<int>(seed % 4), readers = 1 + static_cast<int>(seed / 4 % 4);
    CAPTURE(seed, writers, readers);
    const int loner = writers > 1 && seed % 3 == 0 ? writers - 1 : -1;
    REQUIRE(save_on_ranks(run.path, {writers, seed}, 10, loner) == no_errors(writers));
    const LoadedCheckpoint loaded = load_checkpoint(run / "checkpoints/last");
    files.insert(loaded.manifest.files_of(SnapshotContent::weights).size());
    CHECK(loaded.manifest.mesh == std::vector<int>{writers, 1, 1});
    REQUIRE(restore_on_ranks(run.path, {readers, seed + 1000}) == no_errors(readers));
  }
  CHECK(files.size() >= 3);
}

TEST_CASE("a save that fails on one rank fails with the same error on all ranks and leaves the older checkpoint") {
  int tried = 0;
  for (unsigned seed = 0; seed < 12; ++seed) {
    const TemporaryFolder run;
    const Distribution how{3, seed};
    REQUIRE(save_on_ranks(run.path, how, 10) == no_errors(3));
    const LoadedCheckpoint before = load_checkpoint(run / "checkpoints/last");
    const std::vector<const Manifest::File*> files = before.manifest.files_of(SnapshotContent::weights);
    if (files.size() < 3) continue;  // all of them write
    ++tried;
    for (const int failing : {0, 2}) {
      CAPTURE(seed, failing);
      const std::vector<std::string> errors = save_on_ranks(run.path, how, 20, 1, failing);
      const std::string suffix = failing == 0 ? "" : " (rank 2)";
      const std::string expected =
          run / "checkpoints/step-00000020: cannot write: the disk is full; free some space" + suffix;
      CHECK(errors == std::vector<std::string>(3, expected));
      std::set<std::string> left;
      for (const auto& entry : fs::directory_iterator(run / "checkpoints")) left.insert(entry.path().filename());
      CHECK(left == std::set<std::string>{"step-00000010", "last"});
      CHECK(load_newest_checkpoint(run.path)->snapshot.step == 10);
    }
  }
  CHECK(tried > 1);
}

TEST_CASE("a checkpoint of another model is refused on all ranks, and another optimizer's state is ignored") {
  const TemporaryFolder run;
  REQUIRE(save_on_ranks(run.path, {2, 5}, 10) == no_errors(2));
  const auto errors = on_threads(3, [&](Communicator& world) {
    ImmediateStream stream;
    std::optional<LoadedCheckpoint> loaded;
    RestoreSource source;
    if (world.rank() == 0) {
      loaded = load_newest_checkpoint(run.path);
      source = {&loaded->snapshot, "the/checkpoint", "other.yaml"};
    }
    std::vector<float> value = {1.5f};
    const std::vector<NamedTensor> others = {{"other/kernel", {1}, {value.data(), DType::float32, 1}}};
    const SnapshotPlan plan = plan_snapshot(others, others, world, stream);
    restore_state(source, plan.state, others, world, stream);
    if (value[0] != 1.5f) throw Error(ErrorKind::data, "the state has changed");
    restore_weights(source, plan.weights, others, world, stream);
  });
  for (const std::string& error : errors) {
    CHECK(error ==
          "the/checkpoint is a checkpoint of another model than other.yaml's: 'other/kernel' is missing, "
          "'bn/moving_mean' is not in the model, 'conv/kernel' is not in the model, 'dense/bias' is not in the model "
          "and 3 more; use the config that it was made with, another checkpoint, or train anew (run --resume never)");
  }
}

TEST_CASE("a state that an optimizer without a state drops is reported") {
  const TemporaryFolder run;
  REQUIRE(save_on_ranks(run.path, {2, 5}, 10) == no_errors(2));
  const std::string path = run / "warnings.txt";
  log::add_file(path, log::Level::warning);
  CHECK(on_threads(2, [&](Communicator& world) {
          ImmediateStream stream;
          std::optional<LoadedCheckpoint> loaded;
          RestoreSource source;
          if (world.rank() == 0) {
            loaded = load_newest_checkpoint(run.path);
            source = {&loaded->snapshot, "the/checkpoint", "other.yaml"};
          }
          const SnapshotPlan plan = plan_snapshot({}, {}, world, stream);
          restore_state(source, plan.state, {}, world, stream);
        }) == no_errors(2));
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  const std::string words = "the/checkpoint has the state of another optimizer (";
  CHECK(text.str().find(words) != std::string::npos);
  CHECK(text.str().find(words) == text.str().rfind(words));
  CHECK(text.str().find("is not in the model") != std::string::npos);
}

}  // namespace trainctl::test::snapshots_test
