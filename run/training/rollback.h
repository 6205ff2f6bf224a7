// Lets a run go back to a checkpoint after a step that was not finite.
#pragma once

#include "core/exec/interfaces/snapshot.h"

namespace trainctl {

struct RankRun;
struct Rollback;

// Loads the newest checkpoint whose values are all finite, and that was saved before the batch to skip, into run.files;
// reports the rollback. Returns the position of the checkpoint, with the skipped batches in its metadata. Throws
// CollectiveError{diverged} if there is no such checkpoint. Collective.
Snapshot roll_back(RankRun& run, const Rollback& rollback);

}  // namespace trainctl
