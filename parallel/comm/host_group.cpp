// Synchronization of a host group: blocks in shared memory, the calls in them, and waiting with a deadline.
#include "parallel/comm/host_group.h"

#include <algorithm>
#include <string>

#include "core/base/error.h"
#include "core/base/format.h"
#include "parallel/comm/host_group_layout.h"
#include "parallel/comm/spin_wait.h"

namespace trainctl {

std::int64_t HostGroup::base_bytes() { return sizeof(RankBlock) + 2 * small_bytes + 2 * half_staging_bytes; }

HostGroup::RankBlock& HostGroup::block(int rank) const { return *reinterpret_cast<RankBlock*>(bases_[rank]); }

std::byte* HostGroup::small_buffer(int rank, std::uint64_t use) const {
  return bases_[rank] + sizeof(RankBlock) + (use % 2) * small_bytes;
}

std::byte* HostGroup::staging_buffer(int rank, std::uint64_t use) const {
  return bases_[rank] + sizeof(RankBlock) + 2 * small_bytes + use % 2 * half_staging_bytes;
}

HostGroup::HostGroup(int rank, std::vector<std::byte*> bases, std::vector<int> world_ranks, const AddressMap& addresses,
                     bool oversubscribed, Bridge* bridge, Attendance& attendance)
    : rank_(rank),
      bases_(std::move(bases)),
      world_ranks_(std::move(world_ranks)),
      addresses_(addresses),
      oversubscribed_(oversubscribed),
      bridge_(bridge),
      attendance_(attendance),
      data_(bases_.size()),
      sources_(bases_.size()) {
  ranges_.reserve(bases_.size());
}

void HostGroup::run(const Call& call) {
  call_ = &call;
  try {
    dispatch(call);
  } catch (...) {
    leave();
    throw;
  }
}

void HostGroup::dispatch(const Call& call) {
  switch (call.kind) {
    case CallKind::all_reduce:
      return all_reduce(call);
    case CallKind::reduce_scatter:
      return reduce_scatter(call);
    case CallKind::all_gather:
      return all_gather(call);
    case CallKind::all_to_all:
      return all_to_all(call);
    case CallKind::broadcast:
      return broadcast(call);
    case CallKind::barrier:
      exchange_calls(call);
      return;
    case CallKind::send:
    case CallKind::receive:
      break;
  }
  require(false, "a host group supports neither send nor receive");
}

void HostGroup::leave() { block(rank_).gone.store(true, std::memory_order_release); }

bool HostGroup::exchange_calls(const Call& call) {
  // Two slots suffice: before a slot is written again, every rank has entered the next call.
  const std::size_t slot = calls_++ % 2;
  const SharedAddress address = addresses_.find(call.data.data, call.data.bytes());
  const CallRecord own{call.kind,      call.reduction,  call.data.dtype, call.peer,
                       address.region, call.data.count, address.offset};
  block(rank_).calls[slot] = own;
  synchronize();
  bool visible = address.region >= 0;
  for (int rank = 0; rank < size(); ++rank) {
    const CallRecord& other = block(rank).calls[slot];
    if (!other.same_call(own)) {
      throw Error(ErrorKind::internal,
                  format("ranks make different calls: rank {} a(n) {}, rank {} a(n) {}", world_ranks_[rank_],
                         describe(call), world_ranks_[rank], describe(other.call())));
    }
    visible = visible && other.region == own.region;
  }
  if (visible) {
    for (int rank = 0; rank < size(); ++rank) {
      const CallRecord& other = block(rank).calls[slot];
      data_[rank] = addresses_.resolve(rank, {other.region, other.offset});
    }
  }
  return visible;
}

void HostGroup::synchronize() {
  block(rank_).arrivals.store(++arrivals_, std::memory_order_release);
  SpinWait waiting(attendance_, oversubscribed_, *call_);
  for (int rank = 0; rank < size(); ++rank) {
    RankBlock& other = block(rank);
    while (other.arrivals.load(std::memory_order_acquire) < arrivals_) {
      if (other.gone.load(std::memory_order_relaxed)) attendance_.report_gone(describe(*call_), world_ranks_[rank]);
      if (bridge_) bridge_->make_progress();
      if (!waiting.wait()) report_missing();
    }
  }
}

void HostGroup::report_missing() {
  std::vector<int> missing;
  for (int rank = 0; rank < size(); ++rank) {
    if (block(rank).arrivals.load(std::memory_order_acquire) < arrivals_) missing.push_back(world_ranks_[rank]);
  }
  attendance_.report_missing(describe(*call_), missing);
}

}  // namespace trainctl
