// The collectives of a host group. Data that all ranks see is reduced and copied in place; other data goes through
// the staging buffers, chunk by chunk.
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

// Calls body(first, count) for consecutive chunks of at most `most` elements.
template <class Body>
void for_chunks(std::int64_t count, std::int64_t most, Body body) {
  for (std::int64_t first = 0; first < count; first += most) body(first, std::min(most, count - first));
}

// Elements [first, first + most) of a part of the data, as far as the part has them.
View chunk_of(View data, const Part& part, std::int64_t first, std::int64_t most) {
  return data.part(part.first + first, std::clamp<std::int64_t>(part.count - first, 0, most));
}

}  // namespace

void HostGroup::all_reduce(const Call& call) {
  const View data = call.data;
  if (bridge_) return all_reduce_across(call);
  if (data.bytes() <= small_bytes && data.bytes() * size() <= 16 * small_bytes) return all_reduce_small(call);
  if (exchange_calls(call)) return all_reduce_in_place(call, data.count);
  for_chunks(data.count, staging_bytes / size_of(data.dtype), [&](std::int64_t first, std::int64_t count) {
    const View chunk = data.part(first, count);
    copy(staging_buffer(rank_), chunk.data, chunk.bytes());
    synchronize();
    for (int rank = 0; rank < size(); ++rank) data_[rank] = staging_buffer(rank);
    all_reduce_in_place(call, count);
    copy(chunk.data, staging_buffer(rank_), chunk.bytes());
  });
}

// One synchronization: every rank publishes a copy and sums all of them. The copy is overwritten two calls later at the
// earliest, when all have been in the call in between.
void HostGroup::all_reduce_small(const Call& call) {
  const View data = call.data;
  const std::uint64_t use = calls_;
  copy(small_buffer(rank_, use), data.data, data.bytes());
  exchange_calls(call);
  for (int rank = 0; rank < size(); ++rank) data_[rank] = small_buffer(rank, use);
  auto* own = data.as<std::byte>();
  reduce(data_, {&own, 1}, data.dtype, data.count, call.reduction);
}

// Reduces the memory at data_, which all have filled: each rank its part, into everybody's memory.
void HostGroup::all_reduce_in_place(const Call& call, std::int64_t count) {
  const Part part = part_of(count, rank_, size());
  for (std::byte*& data : data_) data += part.first * size_of(call.data.dtype);
  reduce(data_, data_, call.data.dtype, part.count, call.reduction);
  synchronize();
}

// Each rank i < shards sums shard i of its host, carries it across, and gives it to its host.
void HostGroup::all_reduce_across(const Call& call) {
  const View data = call.data;
  const bool visible = exchange_calls(call);
  parts_.resize(static_cast<std::size_t>(bridge_->shards()));
  for (int shard = 0; shard < bridge_->shards(); ++shard) parts_[shard] = part_of(data.count, shard, bridge_->shards());
  if (size() > 1) reduce_parts(call, visible);
  if (rank_ < bridge_->shards()) {
    bridge_->all_reduce(data.part(parts_[rank_].first, parts_[rank_].count), call.reduction, call);
  }
  if (size() == 1) return;
  if (visible) synchronize();
  spread_parts(call, visible);
}

void HostGroup::reduce_scatter(const Call& call) {
  cut_equally(call.data);
  const bool visible = exchange_calls(call);
  reduce_parts(call, visible);
  if (visible) synchronize();
}

void HostGroup::all_gather(const Call& call) {
  cut_equally(call.data);
  spread_parts(call, exchange_calls(call));
}

void HostGroup::cut_equally(View data) {
  const std::int64_t count = data.count / size();
  parts_.resize(bases_.size());
  for (int rank = 0; rank < size(); ++rank) parts_[rank] = {rank * count, count};
}

// Rank i reduces part i of all ranks' data into its own. Where the data is visible, others may read on after this.
void HostGroup::reduce_parts(const Call& call, bool visible) {
  const View data = call.data;
  const bool has_part = rank_ < static_cast<int>(parts_.size());
  if (visible) {
    if (!has_part) return;
    const std::int64_t offset = parts_[rank_].first * size_of(data.dtype);
    for (int rank = 0; rank < size(); ++rank) sources_[rank] = data_[rank] + offset;
    return reduce(sources_, {&sources_[rank_], 1}, data.dtype, parts_[rank_].count, call.reduction);
  }
  // The chunks of all parts lie side by side in the staging buffer.
  const std::int64_t most = part_chunk_count(data.dtype);
  for_chunks(longest_phase(), most, [&](std::int64_t first, std::int64_t) {
    const std::uint64_t use = staging_uses_++;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const View chunk = chunk_of(data, parts_[i], first, most);
      copy(staging_buffer(rank_, use) + static_cast<std::int64_t>(i) * most * size_of(data.dtype), chunk.data,
           chunk.bytes());
    }
    synchronize();
    if (!has_part) return;
    const View chunk = chunk_of(data, parts_[rank_], first, most);
    for (int rank = 0; rank < size(); ++rank)
      sources_[rank] = staging_buffer(rank, use) + rank_ * most * size_of(data.dtype);
    auto* to = chunk.as<std::byte>();
    reduce(sources_, {&to, 1}, data.dtype, chunk.count, call.reduction);
  });
}

// Part i of rank i's data is copied to everybody's.
void HostGroup::spread_parts(const Call& call, bool visible) {
  const View data = call.data;
  const int parts = static_cast<int>(parts_.size());
  if (visible) {
    for (int rank = 0; rank < parts; ++rank) {
      const View part = data.part(parts_[rank].first, parts_[rank].count);
      if (rank != rank_) copy(part.data, data_[rank] + parts_[rank].first * size_of(data.dtype), part.bytes());
    }
    return synchronize();
  }
  const std::int64_t most = half_staging_bytes / size_of(data.dtype);
  for_chunks(longest_phase(), most, [&](std::int64_t first, std::int64_t) {
    const std::uint64_t use = staging_uses_++;
    if (rank_ < parts) {
      const View own = chunk_of(data, parts_[rank_], first, most);
      copy(staging_buffer(rank_, use), own.data, own.bytes());
    }
    synchronize();
    for (int rank = 0; rank < parts; ++rank) {
      const View chunk = chunk_of(data, parts_[rank], first, most);
      if (rank != rank_) copy(chunk.data, staging_buffer(rank, use), chunk.bytes());
    }
  });
}

std::int64_t HostGroup::longest_phase() const {
  std::int64_t longest = 0;
  for (const Part& part : parts_) longest = std::max(longest, part.count);
  return longest;
}

std::int64_t HostGroup::part_chunk_count(DType dtype) const {
  return std::max<std::int64_t>(1, half_staging_bytes / size_of(dtype) / static_cast<std::int64_t>(parts_.size()));
}

void HostGroup::all_to_all(const Call& call) {
  const View data = call.data;
  const bool visible = exchange_calls(call);
  cut_equally(data);
  const auto result_of = [&](int rank, std::int64_t first, std::int64_t most) {
    return chunk_of(call.result, parts_[rank], first, most);
  };
  if (visible) {
    for (int rank = 0; rank < size(); ++rank) {
      const View to = result_of(rank, 0, parts_[rank].count);
      copy(to.data, data_[rank] + rank_ * to.bytes(), to.bytes());
    }
    return synchronize();
  }
  const std::int64_t most = part_chunk_count(data.dtype);
  for_chunks(longest_phase(), most, [&](std::int64_t first, std::int64_t) {
    const std::uint64_t use = staging_uses_++;
    for (int rank = 0; rank < size(); ++rank) {
      const View chunk = chunk_of(data, parts_[rank], first, most);
      copy(staging_buffer(rank_, use) + rank * most * size_of(data.dtype), chunk.data, chunk.bytes());
    }
    synchronize();
    for (int rank = 0; rank < size(); ++rank) {
      const View to = result_of(rank, first, most);
      copy(to.data, staging_buffer(rank, use) + rank_ * most * size_of(data.dtype), to.bytes());
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
    const View chunk = data.part(first, length);
    if (rank_ == call.peer) copy(staging_buffer(rank_, use), chunk.data, chunk.bytes());
    synchronize();
    if (rank_ != call.peer) copy(chunk.data, staging_buffer(call.peer, use), chunk.bytes());
  });
}

}  // namespace trainctl
