// Going on from a checkpoint: what the ranks learn of it from rank 0, and what a run keeps of the one before.
#pragma once

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

// Step, position, metadata, metrics and best value of rank 0's snapshot on every rank; tensors stay where they are.
// Nothing where rank 0 has none. Collective.
std::optional<Snapshot> broadcast_position(const std::optional<Snapshot>& mine, Communicator& world, Stream& stream);

// What a checkpoint says of the run that wrote it; "" where it does not.
std::string metadata_value(const std::optional<Snapshot>& snapshot, const std::string& name);

// batch_size_per_rank becomes a batch of all ranks together when a run begins, and a learning rate that scales with the
// ranks one that is meant for that of a rank; a resume on other ranks keeps the batch, and with it the rate.
// Throws CollectiveError{data} where the checkpoint's batch is none.
TrainOptions with_global_batch(TrainOptions train, int ranks, const std::optional<Snapshot>& resumed);

// Says where a run goes on, and what differs from when the checkpoint at `path` was written. `scheduled_rate` is the
// learning rate of the config at a time.
void log_resume(const TrainingPlan& plan, const std::function<double(const ScheduleTime&)>& scheduled_rate,
                const Snapshot& resumed, const std::string& path);

}  // namespace trainctl
