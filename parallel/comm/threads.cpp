// Communicators of ranks that are threads, with one host group in ordinary memory and a mailbox for each pair of ranks.
#include "parallel/comm/communicators.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <thread>

#include "core/base/error.h"
#include "core/base/format.h"
#include "parallel/comm/host_group.h"
#include "parallel/comm/host_memory.h"
#include "parallel/comm/queued.h"
#include "parallel/comm/spin_wait.h"

namespace trainctl {

namespace {

// The number of roll calls so far, and the number of the last one that each rank of the world has answered.
struct Roll {
  explicit Roll(int ranks) : answered(static_cast<std::size_t>(ranks)) {}

  std::atomic<int> calls{0};
  std::vector<std::atomic<int>> answered;  // number of the last call that each rank has answered
};

class ThreadAttendance final : public Attendance {
 public:
  ThreadAttendance(std::shared_ptr<Roll> roll, int rank, std::chrono::milliseconds deadline)
      : Attendance(deadline), roll_(std::move(roll)), rank_(static_cast<std::size_t>(rank)) {}

  void answer() override { roll_->answered[rank_] = roll_->calls.load(); }

  std::vector<int> absent() override {
    using Clock = std::chrono::steady_clock;
    const int call = ++roll_->calls;
    const auto end = Clock::now() + roll_call_time();
    std::vector<int> missing;
    do {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      answer();
      missing.clear();
      for (std::size_t rank = 0; rank < roll_->answered.size(); ++rank) {
        if (roll_->answered[rank] < call) missing.push_back(static_cast<int>(rank));
      }
    } while (!missing.empty() && Clock::now() < end);
    return missing;
  }

 private:
  std::shared_ptr<Roll> roll_;
  std::size_t rank_;
};

// Data that one rank sends to another: the receiver copies it and increments `taken`.
struct Mailbox {
  std::atomic<std::uint64_t> offered{0};
  std::atomic<std::uint64_t> taken{0};
  View data;
};

struct Member {
  int color;
  int key;
};

// State that the ranks of one communicator share.
struct SharedState {
  explicit SharedState(std::vector<int> ranks)
      : world_ranks(std::move(ranks)),
        base(allocate_host(size() * HostGroup::base_bytes())),
        mailboxes(static_cast<std::size_t>(size()) * size()),
        members(size()),
        split_states(size()) {}

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
  // Data that split() exchanges:
  std::vector<Member> members;
  std::vector<std::shared_ptr<SharedState>> split_states;
};

class ThreadRank final : public QueuedCommunicator {
 public:
  ThreadRank(std::shared_ptr<SharedState> shared, int rank, std::shared_ptr<Attendance> attendance)
      : QueuedCommunicator(std::move(attendance)),
        shared_(std::move(shared)),
        rank_(rank),
        group_(rank, shared_->bases(), shared_->world_ranks, shared_->addresses, true, nullptr, this->attendance()) {
    set_world_ranks(shared_->world_ranks);
  }

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
    group_.run(call);
  }

  void send_now(const Call& call);
  void receive_now(const Call& call);
  void wait_for(const Call& call, const std::atomic<std::uint64_t>& counter, std::uint64_t value);

  std::shared_ptr<SharedState> shared_;
  int rank_;
  HostGroup group_;
};

void ThreadRank::wait_for(const Call& call, const std::atomic<std::uint64_t>& counter, std::uint64_t value) {
  SpinWait waiting(attendance(), true, call);
  while (counter.load(std::memory_order_acquire) < value) {
    if (shared_->aborted) throw Error(ErrorKind::peer, format("{}: a rank has given up", describe(call)));
    if (!waiting.wait()) attendance().report_missing(describe(call), {shared_->world_ranks[call.peer]});
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
          "the data that receive expects differs from the sent data in size or dtype");
  if (call.data.count > 0) std::memcpy(call.data.data, box.data.data, static_cast<std::size_t>(call.data.bytes()));
  box.taken.store(number, std::memory_order_release);
}

std::unique_ptr<Communicator> ThreadRank::split(int color, int key) {
  const auto synchronize = [this] { group_.run({.kind = CallKind::barrier}); };
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
    shared.split_states[rank_] = std::make_shared<SharedState>(std::move(world_ranks));
  }
  synchronize();
  std::shared_ptr<SharedState> split_state = shared.split_states[same.front()];
  const int rank = static_cast<int>(std::find(same.begin(), same.end(), rank_) - same.begin());
  synchronize();
  shared.split_states[rank_].reset();
  return std::make_unique<ThreadRank>(std::move(split_state), rank, shared_attendance());
}

}  // namespace

std::vector<std::unique_ptr<Communicator>> thread_communicators(int ranks, std::chrono::milliseconds deadline) {
  std::vector<int> world_ranks(ranks);
  std::iota(world_ranks.begin(), world_ranks.end(), 0);
  const auto shared = std::make_shared<SharedState>(std::move(world_ranks));
  const auto roll = std::make_shared<Roll>(ranks);
  std::vector<std::unique_ptr<Communicator>> all;
  for (int rank = 0; rank < ranks; ++rank) {
    all.push_back(std::make_unique<ThreadRank>(shared, rank, std::make_shared<ThreadAttendance>(roll, rank, deadline)));
  }
  return all;
}

}  // namespace trainctl
