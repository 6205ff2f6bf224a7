// The roll call: sends an empty message to each rank, which sends an empty message back.
#include "parallel/comm/mpi_attendance.h"

#include <algorithm>
#include <thread>

#include "core/base/format.h"

namespace trainctl {
namespace {

using Clock = std::chrono::steady_clock;

// The meaning of an empty message.
enum Tag : int { are_you_there = 1, here = 2 };

// Sends an empty message. Does not wait until it is sent, since the receiver may have ended.
void send(Tag tag, int rank) {
  MPI_Request request = MPI_REQUEST_NULL;
  if (MPI_Isend(nullptr, 0, MPI_BYTE, rank, tag, MPI_COMM_WORLD, &request) == MPI_SUCCESS) MPI_Request_free(&request);
}

// Receives an empty message and returns its sender; returns an empty value if no message has arrived.
std::optional<int> receive(Tag tag) {
  int found = 0;
  MPI_Status status{};
  if (MPI_Iprobe(MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &found, &status) != MPI_SUCCESS || !found) return {};
  if (MPI_Recv(nullptr, 0, MPI_BYTE, status.MPI_SOURCE, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE) != MPI_SUCCESS)
    return {};
  return status.MPI_SOURCE;
}

}  // namespace

MpiAttendance::MpiAttendance(std::chrono::milliseconds deadline) : Attendance(deadline) {
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);
}

void MpiAttendance::set_hosts(const std::vector<std::string>& hosts) {
  const bool several = std::any_of(hosts.begin(), hosts.end(), [&](const auto& host) { return host != hosts.front(); });
  if (several) hosts_ = hosts;
}

void MpiAttendance::answer() {
  const std::unique_lock lock(mutex_, std::try_to_lock);  // if another thread holds the lock, that thread answers
  if (lock.owns_lock()) answer_calls();
}

void MpiAttendance::answer_calls() {
  while (const std::optional<int> caller = receive(are_you_there)) send(here, *caller);
}

void MpiAttendance::note_answers(std::vector<bool>& is_there) {
  while (const std::optional<int> rank = receive(here)) is_there[static_cast<std::size_t>(*rank)] = true;
}

std::vector<int> MpiAttendance::absent() {
  constexpr std::chrono::milliseconds poll_interval{1};
  const std::lock_guard lock(mutex_);
  if (absent_) return *absent_;
  std::vector<bool> is_there(static_cast<std::size_t>(size_));
  is_there[static_cast<std::size_t>(rank_)] = true;
  for (int rank = 0; rank < size_; ++rank) {
    if (rank != rank_) send(are_you_there, rank);
  }
  const auto end = Clock::now() + roll_call_time();
  while (std::find(is_there.begin(), is_there.end(), false) != is_there.end() && Clock::now() < end) {
    answer_calls();
    note_answers(is_there);
    std::this_thread::sleep_for(poll_interval);
  }
  absent_.emplace();
  for (int rank = 0; rank < size_; ++rank) {
    if (!is_there[static_cast<std::size_t>(rank)]) absent_->push_back(rank);
  }
  return *absent_;
}

std::string MpiAttendance::name(const std::vector<int>& ranks) const {
  if (hosts_.empty()) return Attendance::name(ranks);
  std::string text;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const auto rank = static_cast<std::size_t>(ranks[i]);
    text += format("{}rank {} on {}", i ? ", " : "", ranks[i], hosts_[rank]);
  }
  return text;
}

}  // namespace trainctl
