// Collectives of ranks that see each other's memory: threads of one process, or processes of one host with shared
// segments. They synchronize through counters in that memory, without system calls.
#pragma once

#include <atomic>
#include <vector>

#include "core/backend/attendance.h"
#include "parallel/comm/call.h"

namespace trainctl {

// The place of memory in terms that are valid on every rank of the group.
struct SharedPlace {
  std::int32_t region = -1;  // -1: other ranks cannot see it
  std::int64_t offset = 0;
};

// Translates between this rank's addresses and shared places.
class AddressMap {
 public:
  virtual ~AddressMap() = default;
  virtual SharedPlace find(const void* data, std::int64_t bytes) const = 0;
  // The address, in this process, of a place of `rank`.
  virtual std::byte* resolve(int rank, const SharedPlace& place) const = 0;
};

// Ranks of one process: every address is seen by all.
class SameProcess final : public AddressMap {
 public:
  SharedPlace find(const void* data, std::int64_t) const override { return {0, reinterpret_cast<std::int64_t>(data)}; }
  std::byte* resolve(int, const SharedPlace& place) const override {
    return reinterpret_cast<std::byte*>(place.offset);
  }
};

// Joins the groups of several hosts in the middle of an all_reduce.
class Bridge {
 public:
  virtual ~Bridge() = default;
  // The data is cut into this many shards; rank i < shards() of the group carries shard i across.
  virtual int shards() const = 0;
  virtual void all_reduce(View shard, Reduction reduction, const Call& call) = 0;
  // Called while the group waits, so that messages under way advance.
  virtual void make_progress() = 0;
};

class HostGroup {
 public:
  // Bytes of zeroed, shared memory that each rank provides: its block, and its buffers for data that others cannot see.
  static std::int64_t base_bytes();

  // `bases`: that memory of every rank, at its address in this process. `world_ranks`: the ranks' numbers in messages.
  // `oversubscribed`: more ranks than cores. `bridge` may be null: one host.
  HostGroup(int rank, std::vector<std::byte*> bases, std::vector<int> world_ranks, const AddressMap& addresses,
            bool oversubscribed, Bridge* bridge, Attendance& attendance);

  // Every kind but send and receive; with a bridge all_reduce only. Throws Error{peer} that names the ranks that did
  // not arrive before the deadline, Error{internal} where ranks make different calls.
  void run(const Call& call);

  // Marks this rank as gone: the waits of the others end with Error{peer}. A failed run() does so.
  void leave();

 private:
  struct CallRecord;
  struct RankBlock;

  int size() const { return static_cast<int>(bases_.size()); }
  RankBlock& block(int rank) const;
  std::byte* small_buffer(int rank, std::uint64_t use) const;
  std::byte* staging_buffer(int rank, std::uint64_t use = 0) const;

  // Publishes the call and waits for those of the other ranks; afterwards data_[i] is rank i's data. Returns whether
  // every rank sees all of it.
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
  void reduce_parts(const Call& call, bool visible);
  void spread_parts(const Call& call, bool visible);
  std::int64_t longest_phase() const;
  std::int64_t part_chunk_count(DType dtype) const;

  int rank_;
  std::vector<std::byte*> bases_;
  std::vector<int> world_ranks_;
  const AddressMap& addresses_;
  bool oversubscribed_;
  Bridge* bridge_;
  Attendance& attendance_;
  std::vector<std::byte*> data_;  // of every rank, in the current call
  std::vector<std::byte*> sources_;
  std::vector<Part> parts_;  // how the current call cuts its data: part i is rank i's
  std::uint64_t arrivals_ = 0;
  std::uint64_t staging_uses_ = 0;  // alternates its halves, so that each chunk needs one synchronization
  std::uint64_t calls_ = 0;
  const Call* call_ = nullptr;
};

}  // namespace trainctl
