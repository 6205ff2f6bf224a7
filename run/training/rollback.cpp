// Chooses the checkpoint to which a run goes back.
#include "run/training/rollback.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/log.h"
#include "io/checkpoint/load.h"
#include "parallel/comm/joint_attempt.h"
#include "parallel/launch/ranks/run_rank.h"
#include "parallel/trainer/loop/not_finite_step.h"
#include "parallel/trainer/resume.h"
#include "run/training/rank_run.h"
#include "run/training/run_files.h"

namespace trainctl {
namespace {

bool is_finite(const std::vector<NamedTensor>& tensors) {
  return std::all_of(tensors.begin(), tensors.end(), [](const NamedTensor& tensor) {
    const auto* values = tensor.view.as<float>();
    return std::all_of(values, values + tensor.view.count, [](float value) { return std::isfinite(value); });
  });
}

// Returns the newest whole checkpoint of at most `step` steps whose values are all finite.
std::optional<LoadedCheckpoint> newest_finite_checkpoint(const std::string& directory, std::int64_t step) {
  for (const CheckpointFolder& folder : newest_checkpoints_first(directory)) {
    if (folder.step > step) continue;
    try {
      LoadedCheckpoint loaded = load_checkpoint(folder.path);
      if (is_finite(loaded.snapshot.weights) && is_finite(loaded.snapshot.state)) return loaded;
      log::warning(format("{} has values that are not finite", folder.path));
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::data) throw;
      log::warning(error.what());
    }
  }
  return std::nullopt;
}

}  // namespace

Snapshot roll_back(RankRun& run, const Rollback& rollback) {
  Communicator& world = run.context.world.communicator();
  RunFiles& files = run.files;
  JointAttempt attempt(world, run.device.host);
  attempt.run([&] {
    if (files.memory) files.memory->store.clear();  // copies of later steps, also the peer's, lack the skipped batch
    if (!files.directory) return;
    files.checkpoint = newest_finite_checkpoint(files.directory->path(), rollback.skipped);
    if (files.checkpoint) files.newest_stored = files.checkpoint->path;
    if (files.checkpoint) return;
    throw Error(ErrorKind::diverged,
                format("training diverged at step {}: {}, and no checkpoint before it has finite values",
                       rollback.step + 1, rollback.cause),
                "lower the learning rate, or look at the data");
  });
  attempt.throw_if_any_failed();
  Snapshot position = *broadcast_position(files.checkpoint ? std::optional(files.checkpoint->snapshot) : std::nullopt,
                                          world, run.device.host);
  rollback.batches.save(position.metadata);
  if (files.sink) {
    log::warning(
        format("step {} is not finite ({}): the run goes back to the checkpoint of step {}, and skips the "
               "batch of step {}",
               rollback.step + 1, rollback.cause, position.step, rollback.skipped + 1));
    files.sink->not_finite({.step = rollback.step + 1,
                            .epoch = rollback.epoch,
                            .action = "rollback",
                            .cause = rollback.cause,
                            .count = rollback.batches.count_from(position.step),
                            .to_step = position.step,
                            .skipped_step = rollback.skipped + 1});
  }
  return position;
}

}  // namespace trainctl
