// Resumes a run from a checkpoint: broadcasts its position and metadata from rank 0, and applies the settings that a
// run keeps.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "core/exec/interfaces/snapshot.h"

namespace trainctl {

class Communicator;
class Stream;
struct ScheduleTime;
struct TrainOptions;
struct TrainingPlan;

// Broadcasts step, position, metadata, metrics and best value of rank 0's snapshot, without tensors. Returns an empty
// value if rank 0 has no snapshot. All ranks must call this function.
std::optional<Snapshot> broadcast_position(const std::optional<Snapshot>& mine, Communicator& world, Stream& stream);

// Returns a value of the checkpoint's metadata; "" if it is missing.
std::string metadata_value(const std::optional<Snapshot>& snapshot, const std::string& name);

// Replaces batch_size_per_rank by the batch size of all ranks together when a run begins, and sets the batch size for
// which a learning rate that scales with the ranks is meant. A run that is resumed on another number of ranks keeps the
// batch size and therefore the learning rate. Throws CollectiveError{data} if the checkpoint's batch size is invalid.
TrainOptions with_global_batch(TrainOptions train, int ranks, const std::optional<Snapshot>& resumed);

// Whether a snapshot is of the end of an epoch whose evaluation was cut off, so that a resumed run begins with it.
bool awaits_evaluation(const Snapshot& snapshot, std::int64_t steps_per_epoch);

// Returns the snapshot without the best results so far, with which a run compares later ones, if they are of other data
// than the plan's.
Snapshot without_results_of_other_data(Snapshot snapshot, const TrainingPlan& plan);

// Logs where a run resumes, and what has changed since the checkpoint at `path` was written. `scheduled_rate` returns
// the learning rate of the config at a time.
void log_resume(const TrainingPlan& plan, const std::function<double(const ScheduleTime&)>& scheduled_rate,
                const Snapshot& resumed, const std::string& path);

}  // namespace trainctl
