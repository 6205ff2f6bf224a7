// The layout of the memory that each rank shares with its host group.
#pragma once

#include <atomic>

#include "parallel/comm/host_group.h"

namespace trainctl {

// The rank's block is followed by two buffers for small data, used alternately, and by a staging buffer with two halves
// for larger data.
inline constexpr std::int64_t small_bytes = 4 << 10;
inline constexpr std::int64_t half_staging_bytes = 128 << 10;
inline constexpr std::int64_t staging_bytes = 2 * half_staging_bytes;

// A call as it is published to the other ranks.
struct HostGroup::CallRecord {
  CallKind kind;
  Reduction reduction;
  DType dtype;
  std::int32_t peer;
  std::int32_t region;
  std::int64_t count;
  std::int64_t offset;

  bool same_call(const CallRecord& other) const {
    return kind == other.kind && reduction == other.reduction && dtype == other.dtype && peer == other.peer &&
           count == other.count;
  }
  Call call() const { return {.kind = kind, .reduction = reduction, .peer = peer, .data = {nullptr, dtype, count}}; }
};

// The block of one rank, written by that rank only; it has its own cache lines.
struct alignas(128) HostGroup::RankBlock {
  std::atomic<std::uint64_t> arrivals;
  std::atomic<bool> gone;
  CallRecord calls[2];
};

}  // namespace trainctl
