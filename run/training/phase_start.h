// What a phase of a run begins with: its plan and its weights.
#pragma once

#include <cstdint>
#include <string>

#include "parallel/checkpoint/shard_plan.h"
#include "parallel/trainer/training_plan.h"

namespace trainctl {

class Job;
struct CheckpointOptions;
struct PhaseStart;
struct RankRun;
struct RunFiles;
struct RunSpec;

// Returns the plan of the training loop for a phase with this config.
TrainingPlan plan_of(const RankRun& run, const RunSpec& spec, const Job& job, const PhaseStart& phase);

// Fills the weights on all ranks: from the checkpoint or `model.weights`, which rank 0 has, or with initial values,
// which every rank computes itself. The optimizer's state comes from the checkpoint if `keeps_state`; otherwise it is
// initial. Collective.
void fill_engine(const RunSpec& spec, Job& job, const SnapshotPlan& plan, const RunFiles& files, bool resumed,
                 bool keeps_state, const std::string& config_file);

// Returns the bytes of host memory of a rank's copies for checkpoints.
std::int64_t staged_bytes(const SnapshotPlan& plan, int rank, const CheckpointOptions& options);

// Restores the weights of the run's best checkpoint. `missing`: the step of the best result if it could not be saved,
// so that the weights stay as they are; otherwise -1. Collective.
void restore_best(RankRun& run, Job& job, std::int64_t missing);

}  // namespace trainctl
