// Training a phase of a run on one rank: its job, its batches, and the loop with all that belongs to it.
#pragma once

#include <optional>

#include "core/exec/interfaces/metrics_sink.h"

namespace trainctl {

struct PhaseStart;
struct RankRun;
struct Snapshot;

// How a phase ended, and whether the next one follows.
struct PhaseEnd {
  EndEvent event;
  bool next_follows = false;
};

// Builds everything for a phase that begins or that goes on from the checkpoint in run.files, whose position is
// `resumed`, and trains it. `begins`: it is the first that this process trains, with which the run begins (begin_run).
// Collective; throws what the parts throw, after telling the sink of an error of the loop.
PhaseEnd train_phase(RankRun& run, const PhaseStart& phase, const std::optional<Snapshot>& resumed, bool begins);

}  // namespace trainctl
