// Going on from a checkpoint: from rank 0's disk into the engines of all ranks, and what a run keeps of the one before.
#pragma once

#include <optional>
#include <string>

#include "cmd/run_spec.h"
#include "core/backend/communicator.h"
#include "core/exec/engine.h"
#include "io/checkpoint/load.h"
#include "parallel/trainer/trainer.h"

namespace trainctl {

// Copies a checkpoint's tensors by name. Throws Error{config} that names the checkpoint, the config and the tensors
// that differ when it is of another model. A checkpoint without optimizer state leaves the state as it is and says so.
void restore(const LoadedCheckpoint& checkpoint, const std::vector<NamedTensor>& weights,
             const std::vector<NamedTensor>& state, const std::string& config_file);

// Step, position, facts, metrics and best value of rank 0's snapshot on every rank; tensors stay where they are.
// Nothing where rank 0 has none.
std::optional<Snapshot> broadcast_position(const std::optional<Snapshot>& mine, Communicator& world, Stream& stream);

// Rank 0's weights and state on every rank, in the host's copies of the engine.
void broadcast_tensors(const Engine& engine, Communicator& world, Stream& stream);

// What a checkpoint says of the run that wrote it; "" where it does not.
std::string fact(const std::optional<Snapshot>& snapshot, const std::string& name);

// batch_size_per_rank becomes a batch of all ranks together when a run begins; a resume on other ranks keeps that.
// Throws CollectiveError{data} where the checkpoint's batch is none.
RunSpec with_global_batch(RunSpec spec, int ranks, const std::optional<Snapshot>& resumed);

// Says where a run goes on, and what differs from when the checkpoint at `path` was written.
void log_resume(const RunSpec& spec, const TrainingPlan& plan, const Snapshot& resumed, const std::string& path);

}  // namespace trainctl
