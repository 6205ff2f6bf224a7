// Real ranks, real files.
#include "test/mpi/snapshots.h"

#include <signal.h>
#include <sys/resource.h>

#include <cstdio>
#include <memory>
#include <optional>

#include "core/backend/immediate_stream.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "io/checkpoint/load.h"
#include "io/checkpoint/store.h"
#include "io/checkpoint/writer.h"
#include "parallel/comm/text.h"
#include "parallel/trainer/restore.h"
#include "parallel/trainer/snapshot_saver.h"
#include "test/checkpoint/support.h"
#include "test/trainer/random_parts.h"

namespace trainctl {
namespace {

using test::RankTensors;

// What a rank holds, distributed by the number of ranks, and how it saves. The last of three or more ranks does not
// share the run directory.
struct Holder {
  ImmediateStream stream;
  RankTensors weights, state;
  CheckpointWriter writer;
  std::unique_ptr<CheckpointStore> store;
  SnapshotPlan plan;

  explicit Holder(Communicator& world)
      : weights("", seed(world), world.rank(), world.size()),
        state("adam/", seed(world) + 1, world.rank(), world.size()),
        plan(plan_snapshot(weights.tensors(), state.tensors(), world, stream)) {}

  static unsigned seed(const Communicator& world) { return static_cast<unsigned>(world.size()) * 5; }

  void save(Communicator& world, const std::string& run_directory, std::int64_t step, bool all_share) {
    if (world.rank() == 0 && !store) store = std::make_unique<CheckpointStore>(run_directory, StorePolicy{});
    const bool shares = all_share || world.size() < 3 || world.rank() + 1 < world.size();
    SnapshotSaver saver(plan, {shares ? &writer : nullptr, store.get()}, world, stream);
    Snapshot snapshot;
    snapshot.step = step;
    snapshot.mesh = {world.size(), 1, 1};
    snapshot.weights = weights.tensors();
    snapshot.state = state.tensors();
    saver.save(snapshot);
  }
};

}  // namespace

void save_snapshot(Communicator& world, const std::string& run_directory) {
  Holder holder(world);
  holder.weights.fill();
  holder.state.fill();
  holder.save(world, run_directory, 10, false);
  if (world.rank() != 0) return;
  const std::size_t files = read_manifest(run_directory + "/checkpoints/last").files.size();
  require(world.size() == 1 ? files == 2 : files > 2, "several ranks write");
  std::printf("saved in %zu files by %d ranks\n", files, world.size());
}

void restore_snapshot(Communicator& world, const std::string& run_directory) {
  Holder holder(world);
  std::optional<LoadedCheckpoint> loaded;
  RestoreSource source;
  if (world.rank() == 0) {
    loaded = load_newest_checkpoint(run_directory);
    source = {&loaded->snapshot, loaded->path, "test.yaml"};
  }
  restore_weights(source, holder.plan.weights, holder.weights.tensors(), world, holder.stream);
  restore_state(source, holder.plan.state, holder.state.tensors(), world, holder.stream);
  const std::string wrong = holder.weights.wrong() + holder.state.wrong();
  require(wrong.empty(), wrong + " is wrong");
  if (!any_rank(false, world, holder.stream) && world.rank() == 0) {
    std::printf("restored on %d ranks\n", world.size());
  }
}

void save_on_full_disk(Communicator& world) {
  Holder holder(world);
  std::optional<test::TemporaryFolder> folder;
  if (world.rank() == 0) folder.emplace();
  const std::string run_directory = broadcast_text(folder ? folder->path : "", 0, world, holder.stream);
  holder.save(world, run_directory, 10, true);
  if (world.rank() + 1 == world.size()) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{64, RLIM_INFINITY};
    require(setrlimit(RLIMIT_FSIZE, &limit) == 0, "the limit is set");
  }
  try {
    holder.save(world, run_directory, 20, true);
  } catch (const CollectiveError& error) {
    const std::vector<std::string> texts = gather_texts(error.what(), world, holder.stream);
    for (const std::string& text : texts) require(text == error.what(), "all ranks throw the same");
    if (world.rank() == 0) {
      const std::vector<FolderEntry> left = list_folder(run_directory + "/checkpoints");
      require(left.size() == 2 && left[0].name == "last" && left[1].name == "step-00000010", "nothing is left");
      require(load_newest_checkpoint(run_directory)->snapshot.step == 10, "the older checkpoint is whole");
    }
    any_rank(false, world, holder.stream);
    throw;
  }
}

}  // namespace trainctl
