// Trains a phase of a run on one rank: builds its job, its batches and the training loop with its hooks.
#pragma once

#include <optional>

#include "core/exec/interfaces/metrics_sink.h"
#include "parallel/trainer/loop/not_finite_step.h"

namespace trainctl {

struct PhaseStart;
struct RankRun;
struct Snapshot;

// How a phase ended, and whether the next one follows, or the run goes back to a checkpoint.
struct PhaseEnd {
  EndEvent event;
  bool next_follows = false;
  std::optional<Rollback> rollback = {};
};

// Trains a phase that begins, or that continues from the checkpoint in run.files, whose position is `resumed`.
// `begins`: it is the first phase that this process trains, and so begins the run (begin_run). Collective. Rethrows
// errors of training, after reporting them to the sink.
PhaseEnd train_phase(RankRun& run, const PhaseStart& phase, const std::optional<Snapshot>& resumed, bool begins);

}  // namespace trainctl
