// The collectives of a host group. Data that all ranks see is worked on where it lies; other data goes through the
// stages, piece by piece.
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

// Calls piece(first, count) for consecutive pieces of at most `most` elements.
template <class Piece>
void for_pieces(std::int64_t count, std::int64_t most, Piece piece) {
  for (std::int64_t first = 0; first < count; first += most) piece(first, std::min(most, count - first));
}

}  // namespace

void HostGroup::all_reduce(const Call& call) {
  const View data = call.data;
  if (!bridge_ && data.bytes() <= small_bytes && data.bytes() * size() <= 8 * small_bytes)
    return all_reduce_small(call);
  if (open(call)) return all_reduce_in_place(call, data.count);
  for_pieces(data.count, stage_bytes / size_of(data.dtype), [&](std::int64_t first, std::int64_t count) {
    const View piece = data.part(first, count);
    copy(stage(rank_), piece.data, piece.bytes());
    meet();
    for (int rank = 0; rank < size(); ++rank) data_[rank] = stage(rank);
    all_reduce_in_place(call, count);
    copy(piece.data, stage(rank_), piece.bytes());
  });
}

// One meeting: everybody shows a copy and sums all of them. The copy is overwritten two calls later at the earliest,
// when all have been in the call in between.
void HostGroup::all_reduce_small(const Call& call) {
  const View data = call.data;
  const std::uint64_t turn = calls_;
  copy(small_buffer(rank_, turn), data.data, data.bytes());
  open(call);
  for (int rank = 0; rank < size(); ++rank) data_[rank] = small_buffer(rank, turn);
  auto* own = data.as<std::byte>();
  reduce(data_, {&own, 1}, data.dtype, data.count, call.reduction);
}

// Reduces the memory at data_, which all have filled: each rank its part, into everybody's memory.
void HostGroup::all_reduce_in_place(const Call& call, std::int64_t count) {
  const DType dtype = call.data.dtype;
  const int shards = bridge_ ? bridge_->shards() : size();
  if (rank_ < shards) {
    const Part part = part_of(count, rank_, shards);
    const std::int64_t offset = part.first * size_of(dtype);
    for (std::byte*& data : data_) data += offset;
    if (!bridge_) {
      reduce(data_, data_, dtype, part.count, call.reduction);
    } else {
      const View own{data_[rank_], dtype, part.count};
      if (size() > 1) reduce(data_, {&data_[rank_], 1}, dtype, part.count, call.reduction);
      bridge_->all_reduce(own, call.reduction, call, deadline_);
      for (int rank = 0; rank < size(); ++rank) {
        if (rank != rank_) copy(data_[rank], own.data, own.bytes());
      }
    }
  }
  meet();
}

void HostGroup::reduce_scatter(const Call& call) {
  const View data = call.data;
  const std::int64_t count = data.count / size();
  const View own = data.part(rank_ * count, count);
  if (open(call)) {
    for (std::byte*& address : data_) address += rank_ * own.bytes();
    reduce(data_, {&data_[rank_], 1}, data.dtype, count, call.reduction);
    return meet();
  }
  // Pieces of all parts lie side by side on the stage.
  const std::int64_t most = std::max<std::int64_t>(1, half_stage_bytes / size_of(data.dtype) / size());
  std::int64_t half = 0;
  for_pieces(count, most, [&](std::int64_t first, std::int64_t length) {
    const std::int64_t bytes = length * size_of(data.dtype);
    for (int rank = 0; rank < size(); ++rank) {
      copy(stage(rank_, half) + rank * bytes, data.part(rank * count + first, length).data, bytes);
    }
    meet();
    for (int rank = 0; rank < size(); ++rank) data_[rank] = stage(rank, half) + rank_ * bytes;
    auto* to = own.part(first, length).as<std::byte>();
    reduce(data_, {&to, 1}, data.dtype, length, call.reduction);
    ++half;
  });
}

void HostGroup::all_gather(const Call& call) {
  const View data = call.data;
  const std::int64_t count = data.count / size();
  if (open(call)) {
    for (int rank = 0; rank < size(); ++rank) {
      const View part = data.part(rank * count, count);
      if (rank != rank_) copy(part.data, data_[rank] + rank * part.bytes(), part.bytes());
    }
    return meet();
  }
  std::int64_t half = 0;
  for_pieces(count, half_stage_bytes / size_of(data.dtype), [&](std::int64_t first, std::int64_t length) {
    const std::int64_t bytes = length * size_of(data.dtype);
    copy(stage(rank_, half), data.part(rank_ * count + first, length).data, bytes);
    meet();
    for (int rank = 0; rank < size(); ++rank) {
      if (rank != rank_) copy(data.part(rank * count + first, length).data, stage(rank, half), bytes);
    }
    ++half;
  });
}

void HostGroup::all_to_all(const Call& call) {
  const View data = call.data;
  const std::int64_t count = data.count / size();
  const std::int64_t part_bytes = count * size_of(data.dtype);
  if (open(call)) {
    for (int rank = 0; rank < size(); ++rank) {
      copy(call.result.part(rank * count, count).data, data_[rank] + rank_ * part_bytes, part_bytes);
    }
    return meet();
  }
  const std::int64_t most = std::max<std::int64_t>(1, half_stage_bytes / size_of(data.dtype) / size());
  std::int64_t half = 0;
  for_pieces(count, most, [&](std::int64_t first, std::int64_t length) {
    const std::int64_t bytes = length * size_of(data.dtype);
    for (int rank = 0; rank < size(); ++rank) {
      copy(stage(rank_, half) + rank * bytes, data.part(rank * count + first, length).data, bytes);
    }
    meet();
    for (int rank = 0; rank < size(); ++rank) {
      copy(call.result.part(rank * count + first, length).data, stage(rank, half) + rank_ * bytes, bytes);
    }
    ++half;
  });
}

void HostGroup::broadcast(const Call& call) {
  const View data = call.data;
  if (open(call)) {
    if (rank_ != call.peer) copy(data.data, data_[call.peer], data.bytes());
    return meet();
  }
  std::int64_t half = 0;
  for_pieces(data.count, half_stage_bytes / size_of(data.dtype), [&](std::int64_t first, std::int64_t length) {
    const View piece = data.part(first, length);
    if (rank_ == call.peer) copy(stage(rank_, half), piece.data, piece.bytes());
    meet();
    if (rank_ != call.peer) copy(piece.data, stage(call.peer, half), piece.bytes());
    ++half;
  });
}

}  // namespace trainctl
