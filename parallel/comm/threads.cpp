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

// What one rank offers another: the receiver takes it and says so.
struct Mailbox {
  std::atomic<std::uint64_t> offered{0};
  std::atomic<std::uint64_t> taken{0};
  View data;
};

struct Member {
  int color;
  int key;
};

// What the ranks of one communicator share.
struct Company {
  explicit Company(std::vector<int> ranks)
      : world_ranks(std::move(ranks)),
        base(allocate_host(size() * HostGroup::base_bytes())),
        mail(static_cast<std::size_t>(size()) * size()),
        members(size()),
        successors(size()) {}

  int size() const { return static_cast<int>(world_ranks.size()); }
  std::vector<std::byte*> bases() const {
    std::vector<std::byte*> all;
    for (int rank = 0; rank < size(); ++rank) all.push_back(base.get() + rank * HostGroup::base_bytes());
    return all;
  }
  Mailbox& mailbox(int from, int to) { return mail[static_cast<std::size_t>(from) * size() + to]; }

  std::vector<int> world_ranks;
  Memory base;
  std::vector<Mailbox> mail;
  SameProcess addresses;
  std::atomic<bool> aborted{false};
  // For split().
  std::vector<Member> members;
  std::vector<std::shared_ptr<Company>> successors;
};

class ThreadRank final : public QueuedCommunicator {
 public:
  ThreadRank(std::shared_ptr<Company> company, int rank)
      : company_(std::move(company)),
        rank_(rank),
        group_(rank, company_->bases(), company_->world_ranks, company_->addresses, true, nullptr) {}

  int rank() const override { return rank_; }
  int size() const override { return company_->size(); }
  std::string_view name() const override { return "threads"; }
  Memory allocate(std::int64_t bytes) override { return allocate_host(bytes); }
  std::unique_ptr<Communicator> split(int color, int key) override;

  [[noreturn]] void abort(int exit_code) override {
    company_->aborted.store(true);
    group_.leave();
    throw Error(ErrorKind::peer, format("rank {} aborted with exit code {}", company_->world_ranks[rank_], exit_code));
  }

 private:
  void run(const Call& call) override {
    if (call.kind == Collective::send) return send_now(call);
    if (call.kind == Collective::receive) return receive_now(call);
    group_.run(call, deadline());
  }

  void send_now(const Call& call);
  void receive_now(const Call& call);
  void wait_for(const Call& call, const std::atomic<std::uint64_t>& counter, std::uint64_t value);

  std::shared_ptr<Company> company_;
  int rank_;
  HostGroup group_;
};

void ThreadRank::wait_for(const Call& call, const std::atomic<std::uint64_t>& counter, std::uint64_t value) {
  SpinWait waiting(deadline(), true);
  while (counter.load(std::memory_order_acquire) < value) {
    const int peer = company_->world_ranks[call.peer];
    if (company_->aborted) throw Error(ErrorKind::peer, format("{}: a rank has given up", describe(call)));
    if (!waiting.wait()) {
      throw Error(ErrorKind::peer,
                  format("{}: rank {} did not arrive within {} ms", describe(call), peer, deadline().count()));
    }
  }
}

void ThreadRank::send_now(const Call& call) {
  Mailbox& box = company_->mailbox(rank_, call.peer);
  box.data = call.data;
  const std::uint64_t number = box.offered.load(std::memory_order_relaxed) + 1;
  box.offered.store(number, std::memory_order_release);
  wait_for(call, box.taken, number);
}

void ThreadRank::receive_now(const Call& call) {
  Mailbox& box = company_->mailbox(call.peer, rank_);
  const std::uint64_t number = box.taken.load(std::memory_order_relaxed) + 1;
  wait_for(call, box.offered, number);
  require(box.data.dtype == call.data.dtype && box.data.count == call.data.count,
          "receive expects other data than was sent");
  if (call.data.count > 0) std::memcpy(call.data.data, box.data.data, static_cast<std::size_t>(call.data.bytes()));
  box.taken.store(number, std::memory_order_release);
}

std::unique_ptr<Communicator> ThreadRank::split(int color, int key) {
  const auto meet = [this] { group_.run({.kind = Collective::barrier}, deadline()); };
  Company& company = *company_;
  company.members[rank_] = {color, key};
  meet();
  std::vector<int> same;
  for (int rank = 0; rank < size(); ++rank) {
    if (company.members[rank].color == color) same.push_back(rank);
  }
  std::stable_sort(same.begin(), same.end(),
                   [&](int a, int b) { return company.members[a].key < company.members[b].key; });
  if (same.front() == rank_) {
    std::vector<int> world_ranks;
    for (int rank : same) world_ranks.push_back(company.world_ranks[rank]);
    company.successors[rank_] = std::make_shared<Company>(std::move(world_ranks));
  }
  meet();
  std::shared_ptr<Company> successor = company.successors[same.front()];
  const int rank = static_cast<int>(std::find(same.begin(), same.end(), rank_) - same.begin());
  meet();
  company.successors[rank_].reset();
  return std::make_unique<ThreadRank>(std::move(successor), rank);
}

}  // namespace

std::vector<std::unique_ptr<Communicator>> thread_communicators(int ranks) {
  std::vector<int> world_ranks(ranks);
  std::iota(world_ranks.begin(), world_ranks.end(), 0);
  const auto company = std::make_shared<Company>(std::move(world_ranks));
  std::vector<std::unique_ptr<Communicator>> all;
  for (int rank = 0; rank < ranks; ++rank) all.push_back(std::make_unique<ThreadRank>(company, rank));
  return all;
}

}  // namespace trainctl
