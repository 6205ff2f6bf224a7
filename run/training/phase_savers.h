// The savers of a phase: that of the checkpoints, and those of the copies in the memory of two hosts.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "io/checkpoint/store.h"
#include "run/training/memory_copies.h"

namespace trainctl {

class Job;
class StagedSaver;
struct CheckpointOptions;
struct RankRun;
struct SnapshotPlan;

class PhaseSavers {
 public:
  // Plans the copies on a second host. All parameters must outlive the object. Collective.
  PhaseSavers(RankRun& run, Job& job, const SnapshotPlan& snapshots, const CheckpointOptions& options);
  ~PhaseSavers();

  // The bytes of host memory of this rank's copies of its shards, which the threads that save read.
  std::int64_t staged_bytes() const;

  // Opens the folder of the copies on a second host, in the first phase of a start. Called after begin_run().
  // Collective.
  void open_copies();

  // Starts the threads that save. Called after open_copies(). Collective.
  void start();

  StagedSaver& of_checkpoints() { return *checkpoints_; }
  StagedSaver* of_memory() { return memory_.get(); }  // null without checkpoint.memory_every
  StagedSaver* of_peer() { return peer_.get(); }      // null without copies on a second host
  std::string peer_host() const;                      // the second host; "" if there is none

  // The run directory, if this rank shares it; else null.
  SnapshotSink* folder();

 private:
  bool keeps_copies() const;

  RankRun& run_;
  Job& job_;
  const SnapshotPlan& snapshots_;
  const CheckpointOptions& options_;
  FolderSink folder_;
  FolderSink memory_folder_{Storage::shared_memory};
  std::optional<PeerPlan> peer_plan_;  // empty if there can be no second copies
  std::unique_ptr<StagedSaver> checkpoints_, memory_, peer_;
};

}  // namespace trainctl
