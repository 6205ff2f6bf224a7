// Writes the state before a step that was not finite, and the numbers of its samples.
#include "run/training/kept_step.h"

#include <memory>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "core/base/log.h"
#include "core/exec/engine.h"
#include "io/checkpoint/atomic_file.h"
#include "io/checkpoint/store.h"
#include "io/loader/data.h"
#include "parallel/checkpoint/snapshot_saver.h"
#include "parallel/launch/host/resources.h"
#include "parallel/launch/ranks/run_rank.h"
#include "parallel/trainer/loop/not_finite_step.h"
#include "run/job/job.h"
#include "run/training/rank_run.h"
#include "run/training/run_files.h"

namespace trainctl {
namespace {

// Writes batch.json, and prepares the folder for the state. Throws Error{resource} if there is no space for it.
std::unique_ptr<CheckpointStore> open_folder(const RankRun& run, const std::string& folder, std::int64_t bytes,
                                             const NotFiniteStep& step) {
  const std::string why = disk_space_problem(nearest_folder(folder), bytes + record_bytes_of_run);
  if (!why.empty()) throw Error(ErrorKind::resource, why);
  create_folders(folder);
  write_file(folder + "/batch.json", json_text({{"step", step.number},
                                                {"cause", step.cause},
                                                {"epoch", step.position.epoch},
                                                {"offset", step.position.offset},
                                                {"samples", run.data.sample_numbers(step.position, step.samples)}}) +
                                         "\n");
  return step.state_is_that_before ? std::make_unique<CheckpointStore>(folder, StorePolicy{1}) : nullptr;
}

}  // namespace

std::string kept_step_folder(const std::string& run_directory, std::int64_t number) {
  return format("{}/not-finite/step-{:08}", run_directory, number);
}

std::string keep_not_finite(RankRun& run, Job& job, const SnapshotPlan& plan, Snapshot snapshot,
                            const NotFiniteStep& step) {
  Communicator& world = run.context.world.communicator();
  Stream& stream = run.device.host;
  const std::string directory = run.files.directory ? run.files.directory->path() : "";
  const std::string folder = directory.empty() ? "" : kept_step_folder(directory, step.number);
  try {
    std::unique_ptr<CheckpointStore> store;
    JointAttempt attempt(world, stream);
    attempt.run([&] {
      if (folder.empty()) return;
      store = open_folder(run, folder, step.state_is_that_before ? plan.weights.bytes() + plan.state.bytes() : 0, step);
    });
    attempt.throw_if_any_failed();
    if (step.state_is_that_before) {
      FolderSink sink;
      job.engine().download();
      snapshot.weights = job.engine().weights();
      snapshot.state = job.engine().state();
      SnapshotSaver(plan, {run.shares_directory ? &sink : nullptr, store.get(), false}, world, stream).save(snapshot);
    }
  } catch (const CollectiveError& error) {
    if (folder.empty()) return "";
    log::warning(format("the state before step {} is not kept: {}", step.number, error.what()));
    return "";
  }
  if (folder.empty()) return "";
  return format("; `trainctl replay {} --step {}` repeats the step and names the sample", directory, step.number);
}

}  // namespace trainctl
