// The thread that receives signals, and stops ranks if the main thread does not.
#include "parallel/launch/supervisor/stop_guard.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <utility>

#include "core/base/error.h"
#include "core/base/format.h"
#include "parallel/launch/host/process.h"
#include "parallel/launch/ranks/report.h"
#include "parallel/launch/ranks/status.h"
#include "parallel/launch/supervisor/copies.h"
#include "parallel/launch/watch/copies_note.h"

namespace trainctl {
namespace {

// How long a supervisor without ranks may be stuck after a request to stop.
constexpr std::chrono::seconds time_without_ranks(20);

// Writes a line to standard error, unless its reader would have to be waited for.
void tell(const std::string& line) {
  pollfd target{STDERR_FILENO, POLLOUT, 0};
  const std::string text = line + "\n";
  if (poll(&target, 1, 0) == 1 && (target.revents & POLLOUT) != 0) {
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
  }
}

}  // namespace

StopGuard::StopGuard(const Signals& signals) : signals_(signals), wake_(eventfd(0, EFD_CLOEXEC)) {
  std::array<int, 2> ends = {-1, -1};
  if (wake_ < 0 || pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
    throw Error(ErrorKind::resource, "the limit on open files is too low", "raise the limit (ulimit -n)");
  }
  received_ = ends[0];
  forward_ = ends[1];
  thread_ = std::jthread([this](const std::stop_token& ended) { run(ended); });
}

StopGuard::~StopGuard() {
  thread_.request_stop();
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_, &one, sizeof one);
  thread_.join();
  for (const int descriptor : {received_, forward_, wake_}) close(descriptor);
}

int StopGuard::next() const {
  unsigned char number = 0;
  while (read(received_, &number, 1) == 1) {
    if (number != SIGTSTP) return number;
    signals_.suspend();
  }
  return 0;
}

void StopGuard::expect_within(std::chrono::milliseconds time) {
  const std::lock_guard lock(mutex_);
  expected_ = Clock::now() + time;
}

void StopGuard::watch(std::optional<GuardedRanks> ranks) {
  const std::lock_guard lock(mutex_);
  note_run();
  ranks_ = std::move(ranks);
}

// Keeps the path of the run's log that the ranks have reported. The caller holds the mutex.
void StopGuard::note_run() {
  if (!ranks_) return;
  launch_ = ranks_->launch;
  if (std::string log = read_log_path(ranks_->status_file); !log.empty()) log_ = std::move(log);
}

void StopGuard::run(const std::stop_token& ended) {
  while (!ended.stop_requested()) {
    std::array<pollfd, 2> sources = {{{signals_.descriptor(), POLLIN, 0}, {wake_, POLLIN, 0}}};
    poll(sources.data(), sources.size(), requests_.asked ? 100 : -1);
    receive();
    const auto now = Clock::now();
    if (requests_.asked && is_stuck(now)) act(now);
  }
}

void StopGuard::receive() {
  while (const int number = signals_.take()) {
    if (number != SIGCHLD && number != SIGTSTP) {
      note_request(requests_, number, Clock::now());
      if (is_other_fatal_signal(number)) requests_.at_once = true;
    }
    const auto byte = static_cast<unsigned char>(number);
    [[maybe_unused]] const ssize_t written = write(forward_, &byte, 1);
  }
}

bool StopGuard::is_stuck(Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  return now > expected_;
}

void StopGuard::act(Clock::time_point now) {
  std::optional<GuardedRanks> ranks;
  {
    const std::lock_guard lock(mutex_);
    ranks = ranks_;
  }
  if (ranks) return stop(std::move(*ranks), now);
  if (requests_.at_once) end(exit_code(ErrorKind::interrupted), "stopped at once");
  if (now - *requests_.asked < time_without_ranks) return;
  end(exit_code(ErrorKind::stopped), "stopped while no ranks ran");
}

// Ranks that have ended by themselves have left their status.
void StopGuard::stop(GuardedRanks ranks, Clock::time_point now) {
  const std::string& status_file = ranks.status_file;
  if (!ranks.stops_in_order) requests_.at_once = true;
  if (has_ended(ranks.launcher)) {
    const RankStatus lost{exit_code(ErrorKind::peer), "the ranks have ended"};
    const RankStatus status = read_status(status_file).value_or(lost);
    end(status.exit_code, status.message, ranks);
  }
  ranks.asked.ready = is_ready(status_file);
  ranks.asked.relayed = relayed_;
  if (const StopTime needs = read_stop_time(status_file); needs != needs_) {
    needs_ = needs;
    needs_changed_ = now;
  }
  ranks.asked.needs = needs_;
  ranks.asked.needs_changed = needs_changed_;
  switch (stop_action(requests_, ranks.asked, now)) {
    case StopAction::wait:
      return;
    case StopAction::relay:
      relayed_ = true;
      kill(ranks.launcher, SIGCONT);
      kill(ranks.launcher, SIGUSR1);  // a second one has no effect
      return tell("stopping after this step (Ctrl-C again stops at once); a file system of the run does not answer");
    case StopAction::end_unstarted:
      end(exit_code(ErrorKind::stopped), std::string(unstarted_text), ranks);
    case StopAction::end_at_once:
      end(exit_code(ErrorKind::interrupted), "stopped at once", ranks);
    case StopAction::end_late:
      end(exit_code(ErrorKind::peer),
          format("the ranks did not stop within {:g} s and were ended",
                 std::chrono::duration<double>(time_to_stop(requests_, ranks.asked)).count()),
          ranks);
  }
}

// The main thread may never continue. Its folders for temporary files would be removed by the next supervisor only.
// Copies in the memory of other hosts are removed by the agents there, when their leases end. If rank 0 is on another
// host, the copies on this host are known by their note alone.
void StopGuard::end(int code, const std::string& message, const GuardedRanks& ranks) {
  kill_children({}, std::chrono::seconds(2));
  {
    const std::lock_guard lock(mutex_);
    note_run();
    remove_copies_here(log_, launch_);
  }
  if (!ranks.flight_folder.empty()) remove_noted_copies(ranks.flight_folder);
  for (const std::string& folder : ranks.folders) {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  }
  tell(message);
  tell("trainctl has ended without writing to the run's directory, since its file system does not answer");
  _exit(code);
}

}  // namespace trainctl
