// Ranks that are threads: one host group in plain memory, and a mailbox for each pair of ranks.
#include "parallel/comm/threads.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "core/base/error.h"
#include "core/base/format.h"
#include "parallel/comm/host_group.h"
#include "parallel/comm/host_memory.h"
#include "parallel/comm/queued.h"
#include "parallel/comm/spin_wait.h"

namespace trainctl {

namespace {

// Data that one rank sends to another: the receiver copies it and counts it as taken.
struct Mailbox {
  std::atomic<std::uint64_t> offered{0};
  std::atomic<std::uint64_t> taken{0};
  View data;
};

struct Member {
  int color;
  int key;
};

// The state that the ranks of one communicator share.
struct SharedState {
  explicit SharedState(std::vector<int> ranks)
      : world_ranks(std::move(ranks)),
        base(allocate_host(size() * HostGroup::base_bytes())),
        mailboxes(static_cast<std::size_t>(size()) * size()),
        members(size()),
        successors(size()) {}

  int size() const { return static_cast<int>(world_ranks.size()); }
  std::vector<std::byte*> bases() const {
    std::vector<std::byte*> all;
    for (int rank = 0; rank < size(); ++rank) all.push_back(base.get() + rank * HostGroup::base_bytes());
    return all;
  }
  Mailbox& mailbox(int from, int to) { return mailboxes[static_cast<std::size_t>(from) * size() + to]; }

  std::vector<int> world_ranks;
  Memory base;
  std::vector<Mailbox> mailboxes;
  SameProcess addresses;
  std::atomic<bool> aborted{false};
  // For split().
  std::vector<Member> members;
  std::vector<std::shared_ptr<SharedState>> successors;
};

class ThreadRank final : public QueuedCommunicator {
 public:
  ThreadRank(std::shared_ptr<SharedState> shared, int rank)
      : shared_(std::move(shared)),
        rank_(rank),
        group_(rank, shared_->bases(), shared_->world_ranks, shared_->addresses, true, nullptr) {}

  int rank() const override { return rank_; }
  int size() const override { return shared_->size(); }
  std::string_view name() const override { return "threads"; }
  Memory allocate(std::int64_t bytes) override { return allocate_host(bytes); }
  std::unique_ptr<Communicator> split(int color, int key) override;

  [[noreturn]] void abort(int exit_code) override {
    shared_->aborted.store(true);
    group_.leave();
    throw Error(ErrorKind::peer, format("rank {} aborted with exit code {}", shared_->world_ranks[rank_], exit_code));
  }

 private:
  void run(const Call& call) override {
    if (call.kind == CallKind::send) return send_now(call);
    if (call.kind == CallKind::receive) return receive_now(call);
    group_.run(call, deadline());
  }

  void send_now(const Call& call);
  void receive_now(const Call& call);
  void wait_for(const Call& call, const std::atomic<std::uint64_t>& counter, std::uint64_t value);

  std::shared_ptr<SharedState> shared_;
  int rank_;
  HostGroup group_;
};

void ThreadRank::wait_for(const Call& call, const std::atomic<std::uint64_t>& counter, std::uint64_t value) {
  SpinWait waiting(deadline(), true);
  while (counter.load(std::memory_order_acquire) < value) {
    const int peer = shared_->world_ranks[call.peer];
    if (shared_->aborted) throw Error(ErrorKind::peer, format("{}: a rank has given up", describe(call)));
    if (!waiting.wait()) {
      throw Error(ErrorKind::peer,
                  format("{}: rank {} did not arrive within {} ms", describe(call), peer, deadline().count()));
    }
  }
}

void ThreadRank::send_now(const Call& call) {
  Mailbox& box = shared_->mailbox(rank_, call.peer);
  box.data = call.data;
  const std::uint64_t number = box.offered.load(std::memory_order_relaxed) + 1;
  box.offered.store(number, std::memory_order_release);
  wait_for(call, box.taken, number);
}

void ThreadRank::receive_now(const Call& call) {
  Mailbox& box = shared_->mailbox(call.peer, rank_);
  const std::uint64_t number = box.taken.load(std::memory_order_relaxed) + 1;
  wait_for(call, box.offered, number);
  require(box.data.dtype == call.data.dtype && box.data.count == call.data.count,
          "receive expects other data than was sent");
  if (call.data.count > 0) std::memcpy(call.data.data, box.data.data, static_cast<std::size_t>(call.data.bytes()));
  box.taken.store(number, std::memory_order_release);
}

std::unique_ptr<Communicator> ThreadRank::split(int color, int key) {
  const auto synchronize = [this] { group_.run({.kind = CallKind::barrier}, deadline()); };
  SharedState& shared = *shared_;
  shared.members[rank_] = {color, key};
  synchronize();
  std::vector<int> same;
  for (int rank = 0; rank < size(); ++rank) {
    if (shared.members[rank].color == color) same.push_back(rank);
  }
  std::stable_sort(same.begin(), same.end(),
                   [&](int a, int b) { return shared.members[a].key < shared.members[b].key; });
  if (same.front() == rank_) {
    std::vector<int> world_ranks;
    for (int rank : same) world_ranks.push_back(shared.world_ranks[rank]);
    shared.successors[rank_] = std::make_shared<SharedState>(std::move(world_ranks));
  }
  synchronize();
  std::shared_ptr<SharedState> successor = shared.successors[same.front()];
  const int rank = static_cast<int>(std::find(same.begin(), same.end(), rank_) - same.begin());
  synchronize();
  shared.successors[rank_].reset();
  return std::make_unique<ThreadRank>(std::move(successor), rank);
}

}  // namespace

std::vector<std::unique_ptr<Communicator>> thread_communicators(int ranks) {
  std::vector<int> world_ranks(ranks);
  std::iota(world_ranks.begin(), world_ranks.end(), 0);
  const auto shared = std::make_shared<SharedState>(std::move(world_ranks));
  std::vector<std::unique_ptr<Communicator>> all;
  for (int rank = 0; rank < ranks; ++rank) all.push_back(std::make_unique<ThreadRank>(shared, rank));
  return all;
}

}  // namespace trainctl
