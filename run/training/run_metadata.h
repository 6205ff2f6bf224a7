// The event with which a run begins, and the metadata that its checkpoints keep.
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

// Returns the first event of a run. `spec` is the spec of the whole run, `plan` the plan of the phase with which the
// run begins or continues, and `memory` the memory plan of this rank.
StartEvent start_event(const RunSpec& spec, const World& world, const Job& job, const TrainingPlan& plan,
                       const MemoryPlan& memory, const std::optional<Snapshot>& resumed,
                       const std::string& resumed_from);

// Whether TensorBoard shows samples of the validation data. It does if the network has one input, of images, and one
// output, with the class of the whole image.
bool shows_samples(const RunSpec& spec, const DataInfo& data);

// The metadata that is kept with every checkpoint, and compared on a resume. `total_steps` is the number of steps of
// the schedule. `shares` is the measured number of samples of each replica, or "".
SnapshotMetadata run_metadata(const Job& job, const DataInfo& data, int ranks, std::int64_t batch,
                              std::int64_t total_steps, const std::string& shares);

}  // namespace trainctl
