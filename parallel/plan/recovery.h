// Predicts what failures cost a run that starts again (cluster.restarts): how long it takes to go on.
#pragma once

#include "parallel/launch/options.h"

namespace trainctl {

struct Prediction;
struct PlanTarget;

// Times in seconds.
struct Recovery {
  double detection = 0;  // until a rank that does not answer is noticed; the end of a rank is noticed at once
  double start = 0;      // from the end of the old ranks until the new ones have found each other
  double reading = 0;    // until all ranks have the state of the newest checkpoint; 0: the speed of storage is unknown
  double again = 0;      // until the steps since the newest checkpoint are done again, on average
  double failures = 0;   // mean time between failures of the run

  // From the end of a rank, or from the moment when it no longer answers, to the first new step.
  double after_end() const { return start + reading; }
  double after_silence() const { return detection + start + reading; }
  // The share of the run's time that failures of ranks cost.
  double share() const { return (after_end() + again) / failures; }
};

struct RecoveryQuestion {
  int ranks = 1;
  int hosts = 1;
  int cores = 1;        // cores of all hosts
  double failures = 0;  // mean time between failures of the run in seconds
  double interval = 0;  // seconds between two checkpoints; 0: unknown
  HangTimeout hang_timeout = HangChoice::automatic;
  double timeout = 0;  // cluster.timeout, after which ranks that are not watched give up
};

// The start follows a model: mpirun starts its daemons through a tree of remote shells, in which each daemon starts up
// to 64 others (one second for each level is assumed), and each rank exchanges its address with all others
// (start_seconds(), measured with up to 64 ranks). Rank 0 reads the checkpoint and sends it to all.
Recovery predict_recovery(const Prediction& prediction, const PlanTarget& target, const RecoveryQuestion& question);

}  // namespace trainctl
