// The communicator of MPI ranks: finds the ranks of each host and connects the host groups by messages.
#include "parallel/comm/communicators.h"

#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "core/base/format.h"
#include "core/base/log.h"
#include "parallel/comm/bounded.h"
#include "parallel/comm/environment.h"
#include "parallel/comm/host_memory.h"
#include "parallel/comm/host_messages.h"
#include "parallel/comm/mpi_peers.h"
#include "parallel/comm/queued.h"
#include "parallel/comm/shared_segment.h"

namespace trainctl {

namespace {

int rank_of(MPI_Comm ranks) {
  int rank = 0;
  MPI_Comm_rank(ranks, &rank);
  return rank;
}

int count_of(MPI_Comm ranks) {
  int size = 0;
  MPI_Comm_size(ranks, &size);
  return size;
}

MPI_Comm split_by(MPI_Comm ranks, int color, int key) {
  MPI_Comm part = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split(ranks, color, key, &part), "MPI_Comm_split");
  return part;
}

std::vector<int> gather(MPI_Comm ranks, int value) {
  std::vector<int> all(count_of(ranks));
  check_mpi(MPI_Allgather(&value, 1, MPI_INT, all.data(), 1, MPI_INT, ranks), "MPI_Allgather");
  return all;
}

// Returns the communicator of the ranks that share memory with this rank.
MPI_Comm host_of(MPI_Comm ranks, const MpiOptions& options) {
  if (!options.shared_memory) return split_by(ranks, rank_of(ranks), 0);
  MPI_Comm host = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split_type(ranks, MPI_COMM_TYPE_SHARED, rank_of(ranks), MPI_INFO_NULL, &host),
            "finding the host's ranks");
  return options.ranks_per_host == 0 ? host : split_by(host, rank_of(host) / options.ranks_per_host, 0);
}

// Returns the processors that this rank may use; empty if they are unknown.
cpu_set_t own_processors() {
  cpu_set_t own;
  CPU_ZERO(&own);
  if (sched_getaffinity(0, sizeof own, &own) != 0) CPU_ZERO(&own);
  return own;
}

// Returns whether the host's ranks outnumber the processors that they may use together.
bool is_oversubscribed(MPI_Comm host) {
  const cpu_set_t own = own_processors();
  if (CPU_COUNT(&own) == 0) return true;
  cpu_set_t all;
  check_mpi(MPI_Allreduce(&own, &all, sizeof own, MPI_BYTE, MPI_BOR, host), "counting processors");
  return count_of(host) > CPU_COUNT(&all);
}

class Mpi final : public QueuedCommunicator {
 public:
  Mpi(MPI_Comm ranks, const MpiOptions& options, std::shared_ptr<Attendance> attendance);

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string_view name() const override { return "mpi"; }
  Memory allocate(std::int64_t bytes) override;
  std::int64_t bytes_in_turn() const override {
    return messages_ && !bridge_ && has_one_core_ ? HostMessages::buffered_bytes() : 0;
  }
  std::unique_ptr<Communicator> split(int color, int key) override;

  [[noreturn]] void abort(int exit_code) override {
    std::fflush(nullptr);
    MPI_Abort(MPI_COMM_WORLD, exit_code);
    std::_Exit(exit_code);
  }

 private:
  void run(const Call& call) override;
  void share_base();
  void share_messages();
  void build_bridge(const std::vector<int>& world_ranks);
  void send_or_receive(const Call& call);

  MPI_Comm ranks_;
  MpiOptions options_;
  int rank_;
  int size_;
  MPI_Comm host_ = MPI_COMM_NULL;
  SameProcess own_addresses_;
  std::shared_ptr<SharedRegions> regions_;  // null: this rank shares memory with no other rank
  Memory base_;
  std::vector<std::byte*> bases_;
  std::unique_ptr<MpiPeers> peers_;
  std::unique_ptr<MpiBridge> bridge_;  // null: all ranks run on one host
  std::unique_ptr<HostGroup> group_;
  std::unique_ptr<HostMessages> messages_;  // null: this rank shares memory with no other rank
  bool has_one_core_ = false;
  std::vector<int> on_host_;  // number on this host of each rank; -1: the rank runs on another host
};

Mpi::Mpi(MPI_Comm ranks, const MpiOptions& options, std::shared_ptr<Attendance> attendance)
    : QueuedCommunicator(std::move(attendance)),
      ranks_(ranks),
      options_(options),
      rank_(rank_of(ranks)),
      size_(count_of(ranks)) {
  MPI_Comm_set_errhandler(ranks_, MPI_ERRORS_RETURN);
  const std::vector<int> world_ranks = gather(ranks_, rank_of(MPI_COMM_WORLD));
  set_world_ranks(world_ranks);
  peers_ = std::make_unique<MpiPeers>(ranks_, world_ranks, this->attendance());
  host_ = host_of(ranks_, options_);
  share_base();
  build_bridge(world_ranks);
  const AddressMap& addresses = regions_ ? static_cast<const AddressMap&>(*regions_) : own_addresses_;
  group_ = std::make_unique<HostGroup>(rank_of(host_), bases_, gather(host_, rank_of(MPI_COMM_WORLD)), addresses,
                                       is_oversubscribed(host_), bridge_.get(), this->attendance());
  if (regions_) share_messages();
  const cpu_set_t own = own_processors();
  has_one_core_ = CPU_COUNT(&own) == 1;
}

// Finds the ranks of this host and sets up the memory for messages between them, which follows the host group's memory.
void Mpi::share_messages() {
  std::vector<std::byte*> bases;
  for (std::byte* base : bases_) bases.push_back(base + HostGroup::base_bytes());
  messages_ = std::make_unique<HostMessages>(rank_of(host_), std::move(bases), gather(host_, rank_of(MPI_COMM_WORLD)),
                                             attendance());
  on_host_.assign(static_cast<std::size_t>(size_), -1);
  const std::vector<int> numbers = gather(host_, rank_);
  for (std::size_t i = 0; i < numbers.size(); ++i) on_host_[static_cast<std::size_t>(numbers[i])] = static_cast<int>(i);
}

// Creates the memory through which the ranks of the host communicate. If they cannot share memory, each rank counts as
// a host of its own.
void Mpi::share_base() {
  const std::int64_t bytes = HostGroup::base_bytes() + HostMessages::base_bytes(count_of(host_));
  if (count_of(host_) > 1) {
    std::string why;
    if (const auto segment = SharedSegment::create(host_, bytes, why)) {
      regions_ = std::make_shared<SharedRegions>(rank_of(host_));
      bases_ = segment->bases();
      base_ = {{bases_[rank_of(host_)], [segment](std::byte*) {}}, bytes};
      return;
    }
    if (!why.empty()) {
      log::warning(
          format("the ranks of this host cannot share memory ({}): they exchange messages, which is slower", why));
    }
    host_ = split_by(ranks_, rank_, 0);
  }
  base_ = allocate_host(bytes);
  bases_ = {base_.get()};
}

void Mpi::build_bridge(const std::vector<int>& world_ranks) {
  int host = rank_;  // a host's number is the lowest rank on it
  check_mpi(MPI_Bcast(&host, 1, MPI_INT, 0, host_), "MPI_Bcast");
  const std::vector<int> hosts = gather(ranks_, host);
  if (std::all_of(hosts.begin(), hosts.end(), [&](int other) { return other == hosts.front(); })) return;
  const std::vector<int> host_sizes = gather(ranks_, count_of(host_));
  const int shards = *std::min_element(host_sizes.begin(), host_sizes.end());
  const int shard = rank_of(host_);
  const MPI_Comm column = split_by(ranks_, shard < shards ? shard : MPI_UNDEFINED, host);
  std::unique_ptr<MpiPeers> peers;
  if (column != MPI_COMM_NULL)
    peers = std::make_unique<MpiPeers>(column, gather(column, world_ranks[rank_]), attendance());
  bridge_ = std::make_unique<MpiBridge>(shards, std::move(peers));
}

Memory Mpi::allocate(std::int64_t bytes) {
  if (!regions_) return allocate_host(bytes);
  auto [segment, why] = bounded(attendance(), "sharing memory", [host = host_, bytes] {
    std::string why;
    std::shared_ptr<SharedSegment> segment = SharedSegment::create(host, bytes, why);
    return std::pair(std::move(segment), std::move(why));
  });
  if (segment) return SharedRegions::add(regions_, std::move(segment), bytes);
  if (!why.empty()) log::warning(format("{} bytes cannot be shared by the ranks of this host: {}", bytes, why));
  return allocate_host(bytes);
}

std::unique_ptr<Communicator> Mpi::split(int color, int key) {
  return bounded(attendance(), "making a communicator",
                 [ranks = ranks_, color, key, options = options_, attendance = shared_attendance()] {
                   return std::make_unique<Mpi>(split_by(ranks, color, key), options, attendance);
                 });
}

void Mpi::run(const Call& call) {
  switch (call.kind) {
    case CallKind::send:
    case CallKind::receive:
      return send_or_receive(call);
    case CallKind::all_reduce:
      return group_->run(call);
    case CallKind::reduce_scatter: {
      if (!bridge_) return group_->run(call);
      // Summing within each host first sends less data between hosts than a reduce_scatter of all ranks would.
      Call whole = call;
      whole.kind = CallKind::all_reduce;
      return group_->run(whole);
    }
    default:
      return bridge_ ? peers_->run(call) : group_->run(call);
  }
}

void Mpi::send_or_receive(const Call& call) {
  const int on_host = messages_ ? on_host_[static_cast<std::size_t>(call.peer)] : -1;
  if (on_host < 0) return peers_->run(call);
  return call.kind == CallKind::send ? messages_->send(call, on_host) : messages_->receive(call, on_host);
}

}  // namespace

std::unique_ptr<Communicator> mpi_communicator(const MpiEnvironment& environment, const MpiOptions& options) {
  return bounded(*environment.attendance(), "making the communicator of all ranks",
                 [options, attendance = environment.attendance()] {
                   MPI_Comm all = MPI_COMM_NULL;
                   check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &all), "MPI_Comm_dup");
                   return std::make_unique<Mpi>(all, options, attendance);
                 });
}

}  // namespace trainctl
