// Keeps what is needed to repeat a step that was not finite: RUN/not-finite/step-N has a checkpoint of the state before
// step N, and batch.json with the numbers of its samples.
#pragma once

#include <cstdint>
#include <string>

namespace trainctl {

class Job;
struct NotFiniteStep;
struct RankRun;
struct Snapshot;
struct SnapshotPlan;

// The folder for step N, counted from 1, of a run. It has checkpoints like a run directory.
std::string kept_step_folder(const std::string& run_directory, std::int64_t number);

// Keeps the step; `snapshot` has no tensors yet. If it cannot be written, for example since the disk is full, rank 0
// logs a warning. Returns on rank 0 how the user can repeat the step, and "" on the other ranks. Collective.
std::string keep_not_finite(RankRun& run, Job& job, const SnapshotPlan& plan, Snapshot snapshot,
                            const NotFiniteStep& step);

}  // namespace trainctl
