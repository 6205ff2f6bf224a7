// The copies of a run's state in the shared memory of two hosts (checkpoint.memory_every): that of rank 0, and a second
// one, the peer.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/backend/communicator.h"
#include "core/base/memory_folder.h"
#include "io/checkpoint/store.h"
#include "io/metrics/run_lock.h"
#include "parallel/checkpoint/shard_plan.h"

namespace trainctl {

class StepEngine;
class Stream;
class World;
struct CheckpointOptions;
struct RankRun;
struct Restart;

// Returns the rank that keeps the second copy: the lowest rank on another host than rank 0. Empty if all ranks run on
// one host. `hosts`: the host of each rank.
std::optional<int> peer_of(const std::vector<std::string>& hosts);

// Which rank writes what of the copies on the peer's host. The ranks are numbered anew, so that the peer is rank 0: it
// writes what it holds itself, and receives the rest from the other ranks.
struct PeerPlan {
  std::unique_ptr<Communicator> ranks;
  SnapshotPlan plan;

  // The bytes of host memory of this rank's copies of its shards; see background_savers().
  std::int64_t staged_bytes(const CheckpointOptions& options) const;
};

// Returns the plan; empty if there is no peer. Collective.
std::optional<PeerPlan> plan_peer(const StepEngine& engine, World& world, Stream& stream);

// A lock that is taken as soon as it exists.
struct TakenLock : RunLock {
  TakenLock(const std::string& folder, const Generation& generation) : RunLock(generation) { take(folder); }
};

// The store of the copies on this host. Its folder has a lock file that names this start of the run.
struct MemoryStore {
  // `resumed_from`: see CheckpointStore. Tells the agent of this host (parallel/launch/watch), which removes the folder
  // if the supervisor is lost.
  MemoryStore(std::string folder_path, const Generation& generation, const std::string& resumed_from);
  ~MemoryStore() {
    if (!is_kept) remove_memory_folder(folder);
  }
  MemoryStore(const MemoryStore&) = delete;
  MemoryStore& operator=(const MemoryStore&) = delete;

  std::string folder;
  TakenLock lock;
  CheckpointStore store;
  bool is_kept = false;  // whether the copies stay, since another attempt may go on from them
};

// Opens the peer's store of copies of `bytes` bytes each, in run.files of the peer. Removes copies on other hosts that
// this run does not use. Returns the peer, equal on all ranks; empty if there is none, or if its host shares the memory
// of rank 0's host. If the peer's host has too little memory, throws CollectiveError{resource}; after a restart, rank 0
// logs a warning instead, and there is no peer. Collective.
std::optional<int> open_peer_copies(RankRun& run, std::int64_t bytes);

// Called after a restart, before rank 0 looks for the state to go on from: if the newest state that the run has left is
// on another host than rank 0's, in its memory or in a run directory that the hosts do not share, copies it to the
// shared memory of rank 0's host. If this fails, rank 0 logs a warning. Collective.
void fetch_newest_state(const Restart& restart, const Generation& generation, World& world, Stream& stream);

}  // namespace trainctl
