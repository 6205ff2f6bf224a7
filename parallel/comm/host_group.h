// Collectives between ranks that can access each other's memory: threads of one process, or processes of one host with
// shared segments. They synchronize through counters in that memory, without system calls.
#pragma once

#include <atomic>
#include <vector>

#include "core/backend/attendance.h"
#include "parallel/comm/call.h"

namespace trainctl {

// A memory location that is valid on every rank of the group.
struct SharedAddress {
  std::int32_t region = -1;  // -1: other ranks cannot access it
  std::int64_t offset = 0;
};

// Translates between addresses of this process and shared addresses.
class AddressMap {
 public:
  virtual ~AddressMap() = default;
  virtual SharedAddress find(const void* data, std::int64_t bytes) const = 0;
  // The address, in this process, of a shared address of `rank`.
  virtual std::byte* resolve(int rank, const SharedAddress& address) const = 0;
};

// Address map for ranks of one process: every address is valid for all.
class SameProcess final : public AddressMap {
 public:
  SharedAddress find(const void* data, std::int64_t) const override {
    return {0, reinterpret_cast<std::int64_t>(data)};
  }
  std::byte* resolve(int, const SharedAddress& address) const override {
    return reinterpret_cast<std::byte*>(address.offset);
  }
};

// Reduces across hosts in the middle of an all_reduce within each host.
class Bridge {
 public:
  virtual ~Bridge() = default;
  // The number of shards of the data; rank i < shards() of the group reduces shard i with the other hosts.
  virtual int shards() const = 0;
  virtual void all_reduce(View shard, Reduction reduction, const Call& call) = 0;
  // Called while the group waits, so that pending messages make progress.
  virtual void make_progress() = 0;
};

class HostGroup {
 public:
  // Size of the zeroed, shared memory that each rank provides: its block, and its buffers for data that other ranks
  // cannot access.
  static std::int64_t base_bytes();

  // `bases`: the base memory of every rank, at its address in this process. `world_ranks`: the ranks' numbers for
  // messages. `oversubscribed`: there are more ranks than cores. `bridge`: null if there is one host.
  HostGroup(int rank, std::vector<std::byte*> bases, std::vector<int> world_ranks, const AddressMap& addresses,
            bool oversubscribed, Bridge* bridge, Attendance& attendance);

  // Runs a collective: any kind except send and receive; with a bridge only all_reduce. Throws Error{peer} that names
  // the ranks that did not arrive before the deadline, and Error{internal} if ranks make different calls.
  void run(const Call& call);

  // Marks this rank as left, so that the waits of the other ranks end with Error{peer}. A failed run() calls it.
  void leave();

 private:
  struct CallRecord;
  struct RankBlock;

  int size() const { return static_cast<int>(bases_.size()); }
  RankBlock& block(int rank) const;
  std::byte* small_buffer(int rank, std::uint64_t use) const;
  std::byte* staging_buffer(int rank, std::uint64_t use = 0) const;

  // Publishes the call and waits for the calls of the other ranks; afterwards data_[i] is rank i's data. Returns
  // whether all ranks can access all data.
  bool exchange_calls(const Call& call);
  void synchronize();
  [[noreturn]] void report_missing();

  void dispatch(const Call& call);
  void all_reduce(const Call& call);
  void all_reduce_small(const Call& call);
  void all_reduce_in_place(const Call& call, std::int64_t count);
  void all_reduce_across(const Call& call);
  void reduce_scatter(const Call& call);
  void all_gather(const Call& call);
  void all_to_all(const Call& call);
  void broadcast(const Call& call);

  void cut_equally(View data);
  void reduce_ranges(const Call& call, bool visible);
  void copy_ranges(const Call& call, bool visible);
  std::int64_t longest_range() const;
  std::int64_t range_chunk_size(DType dtype) const;

  int rank_;
  std::vector<std::byte*> bases_;
  std::vector<int> world_ranks_;
  const AddressMap& addresses_;
  bool oversubscribed_;
  Bridge* bridge_;
  Attendance& attendance_;
  std::vector<std::byte*> data_;  // data of every rank in the current call
  std::vector<std::byte*> sources_;
  std::vector<ElementRange> ranges_;  // the ranges of the data in the current call: range i belongs to rank i
  std::uint64_t arrivals_ = 0;
  // Selects the half of the staging buffer: since the halves alternate, each chunk needs only one synchronization.
  std::uint64_t staging_uses_ = 0;
  std::uint64_t calls_ = 0;
  const Call* call_ = nullptr;
};

}  // namespace trainctl
