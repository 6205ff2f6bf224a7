// Collectives by messages between pairs of ranks, which are awaited together with a deadline.
#include "parallel/comm/mpi_peers.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include "parallel/comm/host_memory.h"
#include "parallel/comm/reduction.h"
#include "parallel/comm/spin_wait.h"

namespace trainctl {

namespace {

constexpr int tag = 1;
constexpr std::int64_t scratch_bytes = 4 << 20;
constexpr std::int64_t message_bytes = 1 << 30;  // MPI counts elements in int
// Up to this size every rank sends all its data to every other rank, in one step.
constexpr std::int64_t whole_bytes = 16 << 10;
constexpr int polls_before_sleep = 200;
constexpr std::chrono::microseconds sleep_time{50};

template <class Message>
void for_messages(View data, Message message) {
  auto* begin = data.as<std::byte>();
  for (std::int64_t first = 0; first < data.bytes(); first += message_bytes) {
    message(begin + first, static_cast<int>(std::min(message_bytes, data.bytes() - first)));
  }
}

}  // namespace

MpiPeers::MpiPeers(MPI_Comm ranks, std::vector<int> world_ranks, Attendance& attendance)
    : ranks_(ranks),
      world_ranks_(std::move(world_ranks)),
      attendance_(attendance),
      scratch_(allocate_host(scratch_bytes)),
      sources_(world_ranks_.size()) {
  MPI_Comm_rank(ranks_, &rank_);
  MPI_Comm_set_errhandler(ranks_, MPI_ERRORS_RETURN);
  requests_.reserve(2 * world_ranks_.size());
  waited_for_.reserve(2 * world_ranks_.size());
}

void MpiPeers::run(const Call& call) {
  call_ = &call;
  const View data = call.data;
  const std::int64_t part = data.count / size();
  switch (call.kind) {
    case CallKind::all_reduce:
      return all_reduce(data, call.reduction, call);
    case CallKind::all_gather:
      for (int step = 1; step < size(); ++step) {
        const int to = (rank_ + step) % size();
        const int from = (rank_ + size() - step) % size();
        post_receive(data.slice(from * part, part), from);
        post_send(data.slice(rank_ * part, part), to);
      }
      return complete();
    case CallKind::all_to_all:
      for (int step = 1; step < size(); ++step) {
        const int to = (rank_ + step) % size();
        const int from = (rank_ + size() - step) % size();
        post_receive(call.result.slice(from * part, part), from);
        post_send(data.slice(to * part, part), to);
      }
      if (part > 0) {
        const View own = data.slice(rank_ * part, part);
        std::memcpy(call.result.slice(rank_ * part, part).data, own.data, static_cast<std::size_t>(own.bytes()));
      }
      return complete();
    case CallKind::broadcast:
      for_messages(data, [&](std::byte* begin, int bytes) {
        waited_for_.push_back(-1);
        check_mpi(MPI_Ibcast(begin, bytes, MPI_BYTE, call.peer, ranks_, &requests_.emplace_back()), "MPI_Ibcast");
      });
      return complete();
    case CallKind::send:
      post_send(data, call.peer);
      return complete();
    case CallKind::receive:
      post_receive(data, call.peer);
      return complete();
    case CallKind::barrier:
      waited_for_.push_back(-1);
      check_mpi(MPI_Ibarrier(ranks_, &requests_.emplace_back()), "MPI_Ibarrier");
      return complete();
    case CallKind::reduce_scatter:
      break;
  }
  require(false, "reduce_scatter is not implemented by messages alone");
}

void MpiPeers::all_reduce(View data, Reduction reduction, const Call& call) {
  call_ = &call;
  if (size() == 1) return;
  if (data.bytes() * size() <= whole_bytes) return all_reduce_whole(data, reduction);
  // Number of elements of a range; the ranges of all ranks fit in the scratch memory.
  const std::int64_t capacity = std::max<std::int64_t>(16, scratch_.bytes / size() / size_of(data.dtype) / 16 * 16);
  for (std::int64_t first = 0; first < data.count; first += capacity * size()) {
    all_reduce_ranges(data.slice(first, std::min(capacity * size(), data.count - first)), reduction, capacity);
  }
}

// Returns the scratch memory that receives the values of `rank`.
View MpiPeers::receive_buffer(int rank, std::int64_t capacity, DType dtype, std::int64_t count) const {
  return {scratch_.get() + rank * capacity * size_of(dtype), dtype, count};
}

void MpiPeers::reduce_received(View own, Reduction reduction, std::int64_t capacity, View result) {
  for (int rank = 0; rank < size(); ++rank) {
    const View values = rank == rank_ ? own : receive_buffer(rank, capacity, own.dtype, own.count);
    sources_[rank] = values.as<std::byte>();
  }
  auto* to = result.as<std::byte>();
  reduce(sources_, {&to, 1}, own.dtype, own.count, reduction);
}

void MpiPeers::all_reduce_whole(View data, Reduction reduction) {
  for (int rank = 0; rank < size(); ++rank) {
    if (rank != rank_) post_receive(receive_buffer(rank, data.count, data.dtype, data.count), rank);
  }
  for (int rank = 0; rank < size(); ++rank) {
    if (rank != rank_) post_send(data, rank);
  }
  complete();
  reduce_received(data, reduction, data.count, data);
}

void MpiPeers::all_reduce_ranges(View block, Reduction reduction, std::int64_t capacity) {
  const auto range = [&](int rank) {
    const ElementRange part = range_of(block.count, rank, size());
    return block.slice(part.first, part.count);
  };
  const View own = range(rank_);
  for (int step = 1; step < size(); ++step) {
    const int to = (rank_ + step) % size();
    const int from = (rank_ + size() - step) % size();
    post_receive(receive_buffer(from, capacity, own.dtype, own.count), from);
    post_send(range(to), to);
  }
  complete();
  reduce_received(own, reduction, capacity, own);
  for (int step = 1; step < size(); ++step) {
    const int to = (rank_ + step) % size();
    const int from = (rank_ + size() - step) % size();
    post_receive(range(from), from);
    post_send(own, to);
  }
  complete();
}

void MpiPeers::post_send(View data, int peer) {
  for_messages(data, [&](std::byte* begin, int bytes) {
    waited_for_.push_back(peer);
    check_mpi(MPI_Isend(begin, bytes, MPI_BYTE, peer, tag, ranks_, &requests_.emplace_back()), "MPI_Isend");
  });
}

void MpiPeers::post_receive(View data, int peer) {
  for_messages(data, [&](std::byte* begin, int bytes) {
    waited_for_.push_back(peer);
    check_mpi(MPI_Irecv(begin, bytes, MPI_BYTE, peer, tag, ranks_, &requests_.emplace_back()), "MPI_Irecv");
  });
}

void MpiPeers::complete() {
  // MPI_Testall checks every connection, which is so expensive that it pays to yield in between.
  SpinWait waiting(attendance_, true, *call_);
  // A message may be awaited for long, while another thread of this rank computes. Then this thread sleeps, since
  // several threads that yield to each other would take the core from the computation.
  const bool is_message = call_->kind == CallKind::send || call_->kind == CallKind::receive;
  int polls = 0, done = 0;
  while (true) {
    const int code = MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &done, MPI_STATUSES_IGNORE);
    if (code != MPI_SUCCESS) check_mpi(code, describe(*call_));
    if (done) break;
    if (!waiting.wait()) report_missing();
    if (is_message && ++polls > polls_before_sleep) std::this_thread::sleep_for(sleep_time);
  }
  requests_.clear();
  waited_for_.clear();
}

void MpiPeers::report_missing() {
  std::vector<int> missing;
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    int done = 0;
    if (MPI_Test(&requests_[i], &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done) continue;
    if (waited_for_[i] >= 0) missing.push_back(world_ranks_[waited_for_[i]]);
  }
  std::sort(missing.begin(), missing.end());
  missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
  attendance_.report_missing(describe(*call_), missing);
}

}  // namespace trainctl
