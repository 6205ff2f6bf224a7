// Collectives that use messages between pairs of ranks: across hosts, and if processes cannot share memory.
#pragma once

#include <vector>

#include "core/backend/memory.h"
#include "parallel/comm/host_group.h"
#include "parallel/comm/mpi_check.h"

namespace trainctl {

// All calls block until they are complete. After the deadline they throw Error{peer}, which names the awaited ranks.
class MpiPeers {
 public:
  // `world_ranks`: the numbers of these ranks for messages.
  MpiPeers(MPI_Comm ranks, std::vector<int> world_ranks, Attendance& attendance);

  // Runs a collective: any kind except reduce_scatter.
  void run(const Call& call);

  // Reduces `data` in the order of the ranks: each rank sums one range of all ranks' data and sends the sum back.
  // `call`: the call that this reduction belongs to, for messages.
  void all_reduce(View data, Reduction reduction, const Call& call);

 private:
  int size() const { return static_cast<int>(world_ranks_.size()); }
  View receive_buffer(int rank, std::int64_t capacity, DType dtype, std::int64_t count) const;
  void reduce_received(View own, Reduction reduction, std::int64_t capacity, View result);
  void all_reduce_whole(View data, Reduction reduction);
  void all_reduce_ranges(View block, Reduction reduction, std::int64_t capacity);

  void post_send(View data, int peer);
  void post_receive(View data, int peer);
  void complete();
  [[noreturn]] void report_missing();

  MPI_Comm ranks_;
  std::vector<int> world_ranks_;
  Attendance& attendance_;
  int rank_ = 0;
  Memory scratch_;
  std::vector<std::byte*> sources_;
  std::vector<MPI_Request> requests_;
  std::vector<int> waited_for_;  // the other rank of each request; -1: several ranks
  const Call* call_ = nullptr;
};

// Connects host groups: communicator i of `peers` contains rank i of each group, for every i < shards.
class MpiBridge final : public Bridge {
 public:
  // `peers`: null if this rank reduces no shard.
  MpiBridge(int shards, std::unique_ptr<MpiPeers> peers) : shards_(shards), peers_(std::move(peers)) {}

  int shards() const override { return shards_; }
  void all_reduce(View shard, Reduction reduction, const Call& call) override {
    peers_->all_reduce(shard, reduction, call);
  }
  void make_progress() override {
    int found = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &found, MPI_STATUS_IGNORE);
  }

 private:
  int shards_;
  std::unique_ptr<MpiPeers> peers_;
};

}  // namespace trainctl
