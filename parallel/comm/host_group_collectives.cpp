// The collectives of a host group. Data that all ranks can access is reduced and copied in place; other data passes
// through the staging buffers in chunks.
#include <algorithm>
#include <cstring>

#include "parallel/comm/host_group.h"
#include "parallel/comm/host_group_layout.h"
#include "parallel/comm/reduction.h"

namespace trainctl {

namespace {

void copy(void* to, const void* from, std::int64_t bytes) {
  if (bytes > 0) std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

// Calls body(first, count) for consecutive chunks of `chunk_size` elements; the last one may be smaller.
template <class Body>
void for_chunks(std::int64_t count, std::int64_t chunk_size, Body body) {
  for (std::int64_t first = 0; first < count; first += chunk_size) body(first, std::min(chunk_size, count - first));
}

// Elements [first, first + chunk_size) of a range of the data, clamped to the range.
View chunk_of(View data, const ElementRange& range, std::int64_t first, std::int64_t chunk_size) {
  return data.slice(range.first + first, std::clamp<std::int64_t>(range.count - first, 0, chunk_size));
}

}  // namespace

void HostGroup::all_reduce(const Call& call) {
  const View data = call.data;
  if (bridge_) return all_reduce_across(call);
  if (data.bytes() <= small_bytes && data.bytes() * size() <= 16 * small_bytes) return all_reduce_small(call);
  if (exchange_calls(call)) return all_reduce_in_place(call, data.count);
  for_chunks(data.count, staging_bytes / size_of(data.dtype), [&](std::int64_t first, std::int64_t count) {
    const View chunk = data.slice(first, count);
    copy(staging_buffer(rank_), chunk.data, chunk.bytes());
    synchronize();
    for (int rank = 0; rank < size(); ++rank) data_[rank] = staging_buffer(rank);
    all_reduce_in_place(call, count);
    copy(chunk.data, staging_buffer(rank_), chunk.bytes());
  });
}

// Needs one synchronization: every rank publishes a copy of its data and sums all copies. The copy is overwritten two
// calls later at the earliest, when all ranks have entered the call in between.
void HostGroup::all_reduce_small(const Call& call) {
  const View data = call.data;
  const std::uint64_t use = calls_;
  copy(small_buffer(rank_, use), data.data, data.bytes());
  exchange_calls(call);
  for (int rank = 0; rank < size(); ++rank) data_[rank] = small_buffer(rank, use);
  auto* own = data.as<std::byte>();
  reduce(data_, {&own, 1}, data.dtype, data.count, call.reduction);
}

// Reduces the memory at data_, which all ranks have filled: each rank reduces its range and writes the result to the
// memory of all ranks.
void HostGroup::all_reduce_in_place(const Call& call, std::int64_t count) {
  const ElementRange range = range_of(count, rank_, size());
  for (std::byte*& data : data_) data += range.first * size_of(call.data.dtype);
  reduce(data_, data_, call.data.dtype, range.count, call.reduction);
  synchronize();
}

// Each rank i < shards sums shard i of its host, reduces it with the other hosts, and distributes it within its host.
void HostGroup::all_reduce_across(const Call& call) {
  const View data = call.data;
  const bool visible = exchange_calls(call);
  ranges_.resize(static_cast<std::size_t>(bridge_->shards()));
  for (int shard = 0; shard < bridge_->shards(); ++shard)
    ranges_[shard] = range_of(data.count, shard, bridge_->shards());
  if (size() > 1) reduce_ranges(call, visible);
  if (rank_ < bridge_->shards()) {
    bridge_->all_reduce(data.slice(ranges_[rank_].first, ranges_[rank_].count), call.reduction, call);
  }
  if (size() == 1) return;
  if (visible) synchronize();
  copy_ranges(call, visible);
}

void HostGroup::reduce_scatter(const Call& call) {
  cut_equally(call.data);
  const bool visible = exchange_calls(call);
  reduce_ranges(call, visible);
  if (visible) synchronize();
}

void HostGroup::all_gather(const Call& call) {
  cut_equally(call.data);
  copy_ranges(call, exchange_calls(call));
}

void HostGroup::cut_equally(View data) {
  const std::int64_t count = data.count / size();
  ranges_.resize(bases_.size());
  for (int rank = 0; rank < size(); ++rank) ranges_[rank] = {rank * count, count};
}

// Rank i reduces range i of all ranks' data into its own data. If the data is visible, the caller must synchronize
// afterwards, since other ranks may still be reading.
void HostGroup::reduce_ranges(const Call& call, bool visible) {
  const View data = call.data;
  const bool has_range = rank_ < static_cast<int>(ranges_.size());
  if (visible) {
    if (!has_range) return;
    const std::int64_t offset = ranges_[rank_].first * size_of(data.dtype);
    for (int rank = 0; rank < size(); ++rank) sources_[rank] = data_[rank] + offset;
    return reduce(sources_, {&sources_[rank_], 1}, data.dtype, ranges_[rank_].count, call.reduction);
  }
  // The chunks of all ranges are stored next to each other in the staging buffer.
  const std::int64_t chunk_size = range_chunk_size(data.dtype);
  for_chunks(longest_range(), chunk_size, [&](std::int64_t first, std::int64_t) {
    const std::uint64_t use = staging_uses_++;
    for (std::size_t i = 0; i < ranges_.size(); ++i) {
      const View chunk = chunk_of(data, ranges_[i], first, chunk_size);
      copy(staging_buffer(rank_, use) + static_cast<std::int64_t>(i) * chunk_size * size_of(data.dtype), chunk.data,
           chunk.bytes());
    }
    synchronize();
    if (!has_range) return;
    const View chunk = chunk_of(data, ranges_[rank_], first, chunk_size);
    for (int rank = 0; rank < size(); ++rank)
      sources_[rank] = staging_buffer(rank, use) + rank_ * chunk_size * size_of(data.dtype);
    auto* to = chunk.as<std::byte>();
    reduce(sources_, {&to, 1}, data.dtype, chunk.count, call.reduction);
  });
}

// Copies range i of rank i's data to all other ranks.
void HostGroup::copy_ranges(const Call& call, bool visible) {
  const View data = call.data;
  const int ranges = static_cast<int>(ranges_.size());
  if (visible) {
    for (int rank = 0; rank < ranges; ++rank) {
      const View part = data.slice(ranges_[rank].first, ranges_[rank].count);
      if (rank != rank_) copy(part.data, data_[rank] + ranges_[rank].first * size_of(data.dtype), part.bytes());
    }
    return synchronize();
  }
  const std::int64_t chunk_size = half_staging_bytes / size_of(data.dtype);
  for_chunks(longest_range(), chunk_size, [&](std::int64_t first, std::int64_t) {
    const std::uint64_t use = staging_uses_++;
    if (rank_ < ranges) {
      const View own = chunk_of(data, ranges_[rank_], first, chunk_size);
      copy(staging_buffer(rank_, use), own.data, own.bytes());
    }
    synchronize();
    for (int rank = 0; rank < ranges; ++rank) {
      const View chunk = chunk_of(data, ranges_[rank], first, chunk_size);
      if (rank != rank_) copy(chunk.data, staging_buffer(rank, use), chunk.bytes());
    }
  });
}

std::int64_t HostGroup::longest_range() const {
  std::int64_t longest = 0;
  for (const ElementRange& range : ranges_) longest = std::max(longest, range.count);
  return longest;
}

std::int64_t HostGroup::range_chunk_size(DType dtype) const {
  return std::max<std::int64_t>(1, half_staging_bytes / size_of(dtype) / static_cast<std::int64_t>(ranges_.size()));
}

void HostGroup::all_to_all(const Call& call) {
  const View data = call.data;
  const bool visible = exchange_calls(call);
  cut_equally(data);
  const auto result_of = [&](int rank, std::int64_t first, std::int64_t chunk_size) {
    return chunk_of(call.result, ranges_[rank], first, chunk_size);
  };
  if (visible) {
    for (int rank = 0; rank < size(); ++rank) {
      const View to = result_of(rank, 0, ranges_[rank].count);
      copy(to.data, data_[rank] + rank_ * to.bytes(), to.bytes());
    }
    return synchronize();
  }
  const std::int64_t chunk_size = range_chunk_size(data.dtype);
  for_chunks(longest_range(), chunk_size, [&](std::int64_t first, std::int64_t) {
    const std::uint64_t use = staging_uses_++;
    for (int rank = 0; rank < size(); ++rank) {
      const View chunk = chunk_of(data, ranges_[rank], first, chunk_size);
      copy(staging_buffer(rank_, use) + rank * chunk_size * size_of(data.dtype), chunk.data, chunk.bytes());
    }
    synchronize();
    for (int rank = 0; rank < size(); ++rank) {
      const View to = result_of(rank, first, chunk_size);
      copy(to.data, staging_buffer(rank, use) + rank_ * chunk_size * size_of(data.dtype), to.bytes());
    }
  });
}

void HostGroup::broadcast(const Call& call) {
  const View data = call.data;
  if (exchange_calls(call)) {
    if (rank_ != call.peer) copy(data.data, data_[call.peer], data.bytes());
    return synchronize();
  }
  for_chunks(data.count, half_staging_bytes / size_of(data.dtype), [&](std::int64_t first, std::int64_t length) {
    const std::uint64_t use = staging_uses_++;
    const View chunk = data.slice(first, length);
    if (rank_ == call.peer) copy(staging_buffer(rank_, use), chunk.data, chunk.bytes());
    synchronize();
    if (rank_ != call.peer) copy(chunk.data, staging_buffer(call.peer, use), chunk.bytes());
  });
}

}  // namespace trainctl
