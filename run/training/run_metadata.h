// What a run says of itself: the event that it begins with, and the metadata that its checkpoints keep.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "core/exec/interfaces/snapshot_metadata.h"

namespace trainctl {

class Job;
class World;
struct DataInfo;
struct MemoryPlan;
struct RunSpec;
struct Snapshot;
struct StartEvent;
struct TrainingPlan;

// `spec`: of the whole run; `plan`: of the phase that it begins or goes on with; `memory`: of this rank.
StartEvent start_event(const RunSpec& spec, const World& world, const Job& job, const TrainingPlan& plan,
                       const MemoryPlan& memory, const std::optional<Snapshot>& resumed,
                       const std::string& resumed_from);

// Whether TensorBoard shows samples of the validation data: those of networks of one input of pictures and one output,
// which tells the class of the whole.
bool shows_samples(const RunSpec& spec, const DataInfo& data);

// What is kept with every checkpoint, and compared on a resume. `total_steps`: of the schedule; `shares`: measured
// ones.
SnapshotMetadata run_metadata(const Job& job, const DataInfo& data, int ranks, std::int64_t batch,
                              std::int64_t total_steps, const std::string& shares);

}  // namespace trainctl
