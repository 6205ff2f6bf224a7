// Saves and restores snapshots with real ranks and real files.
#include "test/mpi/snapshots.h"

#include <signal.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <thread>

#include "core/backend/immediate_stream.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "io/checkpoint/load.h"
#include "io/checkpoint/store.h"
#include "parallel/checkpoint/restore.h"
#include "parallel/checkpoint/staged_saver.h"
#include "parallel/comm/text.h"
#include "test/parallel/checkpoint/held_engine.h"
#include "test/support/snapshots.h"

namespace trainctl {
namespace {

// Writes into the folder after a delay.
class SlowSink final : public SnapshotSink {
 public:
  std::string write(const SnapshotTarget& target, const SnapshotFile& file,
                    std::span<const NamedTensor> parts) override {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    return folder_.write(target, file, parts);
  }

 private:
  FolderSink folder_;
};

// The tensors of a rank, which are distributed by the number of ranks, and its saver, which writes in a thread. The
// last of three or more ranks does not share the run directory.
struct Holder {
  ImmediateStream stream;
  test::HeldEngine engine;
  FolderSink folder;
  SlowSink slow;
  std::unique_ptr<CheckpointStore> store;
  SnapshotPlan plan;

  explicit Holder(Communicator& world)
      : engine(static_cast<unsigned>(world.size()) * 5, world.rank(), world.size()),
        plan(plan_snapshot(engine.weights(), engine.state(), world, stream)) {}

  std::unique_ptr<StagedSaver> saver(Communicator& world, const std::string& run_directory, SnapshotSink& sink,
                                     bool all_share) {
    if (world.rank() == 0 && !store) store = std::make_unique<CheckpointStore>(run_directory, StorePolicy{});
    const bool shares = all_share || world.size() < 3 || world.rank() + 1 < world.size();
    return std::make_unique<StagedSaver>(engine, plan, SnapshotOutlet{shares ? &sink : nullptr, store.get()}, true,
                                         world, stream);
  }

  void stage(StagedSaver& saver, std::int64_t step, int ranks) {
    Snapshot snapshot;
    snapshot.step = step;
    snapshot.mesh = {ranks, 1, 1};
    saver.stage(std::move(snapshot));
  }
};

}  // namespace

void save_snapshot(Communicator& world, const std::string& run_directory) {
  Holder holder(world);
  holder.engine.train_to(0);
  const auto saver = holder.saver(world, run_directory, holder.folder, false);
  holder.stage(*saver, 10, world.size());
  saver->wait();
  if (world.rank() != 0) return;
  const std::size_t files = read_manifest(run_directory + "/checkpoints/last").files.size();
  require(world.size() == 1 ? files == 2 : files > 2, "several ranks write");
  std::printf("saved in %zu files by %d ranks\n", files, world.size());
}

void train_during_save(Communicator& world) {
  Holder holder(world);
  std::optional<test::TemporaryFolder> folder;
  if (world.rank() == 0) folder.emplace();
  const std::string run_directory = broadcast_text(folder ? folder->path : "", 0, world, holder.stream);
  const auto saver = holder.saver(world, run_directory, holder.slow, false);
  holder.engine.train_to(10);
  holder.stage(*saver, 10, world.size());
  int steps = 0;
  while (any_rank(!saver->is_idle(), world, holder.stream)) holder.engine.train_to(11 + steps++);
  saver->wait();
  const auto saved = saver->ended();
  require(saved && !saved->failure && saved->step == 10 && saved->seconds > 0.2 && saved->stall_seconds < 0.1,
          "step 10 is saved");
  if (world.rank() == 0) {
    const LoadedCheckpoint loaded = load_checkpoint(saved->path);
    for (const auto* tensors : {&loaded.snapshot.weights, &loaded.snapshot.state}) {
      for (const NamedTensor& tensor : *tensors) {
        for (std::int64_t i = 0; i < tensor.view.count; ++i) {
          require(tensor.view.as<float>()[i] == test::value_of(tensor.name, i) + 10, tensor.name + " is of step 10");
        }
      }
    }
    std::printf("%d steps during a save\n", steps);
  }
  require(steps > 20, "training goes on");
}

void restore_snapshot(Communicator& world, const std::string& run_directory) {
  ImmediateStream stream;
  test::RankTensors weights("", static_cast<unsigned>(world.size()) * 5, world.rank(), world.size());
  test::RankTensors state("adam/", static_cast<unsigned>(world.size()) * 5 + 1, world.rank(), world.size());
  const SnapshotPlan plan = plan_snapshot(weights.tensors(), state.tensors(), world, stream);
  std::optional<LoadedCheckpoint> loaded;
  RestoreSource source;
  if (world.rank() == 0) {
    loaded = load_newest_checkpoint(run_directory);
    source = {&loaded->snapshot, loaded->path, "test.yaml"};
  }
  restore_weights(source, plan.weights, weights.tensors(), world, stream);
  restore_state(source, plan.state, state.tensors(), world, stream);
  const std::string wrong = weights.wrong() + state.wrong();
  require(wrong.empty(), wrong + " is wrong");
  if (!any_rank(false, world, stream) && world.rank() == 0) {
    std::printf("restored on %d ranks\n", world.size());
  }
}

void save_on_full_disk(Communicator& world) {
  Holder holder(world);
  std::optional<test::TemporaryFolder> folder;
  if (world.rank() == 0) folder.emplace();
  const std::string run_directory = broadcast_text(folder ? folder->path : "", 0, world, holder.stream);
  const auto saver = holder.saver(world, run_directory, holder.folder, true);
  holder.stage(*saver, 10, world.size());
  saver->wait();
  if (world.rank() + 1 == world.size()) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{64, RLIM_INFINITY};
    require(setrlimit(RLIMIT_FSIZE, &limit) == 0, "the limit is set");
  }
  holder.stage(*saver, 20, world.size());
  saver->wait();
  const auto first = saver->ended(), second = saver->ended();
  require(first && !first->failure && second && second->failure && second->step == 20, "the second save is left out");
  const CollectiveError& error = *second->failure;
  const std::vector<std::string> texts = gather_texts(error.what(), world, holder.stream);
  for (const std::string& text : texts) require(text == error.what(), "all ranks have the same error");
  if (world.rank() == 0) {
    const std::vector<FolderEntry> left = list_folder(run_directory + "/checkpoints");
    require(left.size() == 2 && left[0].name == "last" && left[1].name == "step-00000010", "nothing is left");
    require(load_newest_checkpoint(run_directory)->snapshot.step == 10, "the older checkpoint is whole");
  }
  any_rank(false, world, holder.stream);
  throw error;
}

}  // namespace trainctl
