// Reads flight records once a second and answers the supervisor's requests.
#include "parallel/launch/watch/host_agent.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/flight_layout.h"
#include "core/base/flight_state.h"
#include "core/base/format.h"
#include "core/base/own_folder.h"
#include "parallel/launch/hosts.h"
#include "parallel/launch/ranks/stop.h"
#include "parallel/launch/slurm/lost_script.h"
#include "parallel/launch/variables.h"
#include "parallel/launch/watch/call_stack.h"
#include "parallel/launch/watch/copies_note.h"
#include "parallel/launch/watch/lease.h"
#include "parallel/launch/watch/messages.h"

namespace trainctl {
namespace {

using Clock = std::chrono::steady_clock;
namespace fs = std::filesystem;

constexpr std::size_t ranks_of_message = 64;
constexpr std::chrono::seconds time_for_threads(2);  // less than the supervisor waits (host_watch.cpp)

// A rank of this host and the path of its flight record.
struct LocalRank {
  RankView view;
  std::string path;
};

// Reads the records of the ranks on this host. Records that are being created, and those of other hosts that share the
// folder, are left out.
std::vector<LocalRank> local_ranks(const std::string& folder, const std::string& host) {
  std::vector<LocalRank> ranks;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (!entry.path().filename().string().starts_with("rank-")) continue;
    try {
      const FlightState state = read_flight_record(entry.path(), FlightEvents::last);
      if (state.host == host.substr(0, flight::host_bytes - 1))
        ranks.push_back({view_of(state, flight_clock()), entry.path()});
    } catch (const Error&) {
      continue;
    }
  }
  return ranks;
}

// Returns whether a process belongs to the launch with this folder: a process id may have been used again.
bool belongs_to(pid_t process, const std::string& folder) {
  std::ifstream file(format("/proc/{}/environ", process), std::ios::binary);
  const std::string wanted = format("{}={}", flight_variable, folder);
  for (std::string variable; std::getline(file, variable, '\0');) {
    if (variable == wanted) return true;
  }
  return false;
}

// The agent's claim to its host's ranks: a file with the process id of the newest agent.
class Claim {
 public:
  Claim(const std::string& folder, const std::string& host) : path_(format("{}/agent-{}", folder, host)) {
    std::ofstream(path_) << getpid();
  }
  ~Claim() {
    if (is_ours()) unlink(path_.c_str());
  }
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;

  bool is_ours() const {
    pid_t owner = 0;
    std::ifstream file(path_);
    return !(file >> owner) || owner == getpid();
  }

 private:
  std::string path_;
};

// Keeps a folder that ranks have created from being removed as abandoned (../host/scratch.h), and removes it at the
// end. If this host has the supervisor's folder, the supervisor holds this lock.
class FolderLock {
 public:
  explicit FolderLock(const std::string& folder) : folder_(folder) { lock(); }
  ~FolderLock() {
    if (lock_ < 0) lock();  // an agent that this one has replaced may have held the lock
    if (lock_ < 0) return;
    std::error_code ignored;
    if (removes_) fs::remove_all(folder_, ignored);
    close(lock_);
  }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

  void keep() { removes_ = false; }

 private:
  void lock() {
    lock_ = open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (lock_ >= 0 && flock(lock_, LOCK_EX | LOCK_NB) != 0) close(std::exchange(lock_, -1));
  }

  std::string folder_;
  int lock_ = -1;
  bool removes_ = true;
};

class HostAgent {
 public:
  explicit HostAgent(const HostAgentOptions& options)
      : options_(options),
        lock_(options.lease.count() > 0 ? std::make_unique<FolderLock>(options.folder) : nullptr),
        claim_(options.folder, options.host),
        lease_(options.lease, Clock::now()) {
    for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO}) {
      fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK);
    }
  }

  int serve() {
    unsent_ = "\n";  // a login script may have left an incomplete line
    send({.kind = WatchNews::Kind::hello, .version = watch_version});
    for (Clock::time_point next_news{}; !ended_;) {
      wait(next_news);
      read_requests();
      write_unsent();
      if (!claim_.is_ours()) {
        if (lock_) lock_->keep();
        return 0;
      }
      if (closed_ && options_.lease.count() == 0) return 0;
      if (lease_.is_over(Clock::now())) {
        kill_ranks();
        wait_for_killed_ranks();
        remove_noted_copies(options_.folder);
        requeue_if_script_is_lost(Variables::of_process(), [this] { return claim_.is_ours(); });
        return exit_code(ErrorKind::peer);
      }
      if (Clock::now() < next_news) continue;
      next_news = Clock::now() + std::chrono::seconds(1);
      if (unsent_.empty() && !closed_) send_news();
    }
    return 0;
  }

 private:
  // Waits for a request, for space in the channel, or until it is time for news.
  void wait(Clock::time_point next_news) const {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(next_news - Clock::now()).count();
    std::array<pollfd, 2> sources = {
        {{closed_ ? -1 : STDIN_FILENO, POLLIN, 0}, {closed_ || unsent_.empty() ? -1 : STDOUT_FILENO, POLLOUT, 0}}};
    poll(sources.data(), sources.size(), left > 0 ? static_cast<int>(left) + 1 : 0);
  }

  void read_requests() {
    std::array<char, 4096> buffer{};
    ssize_t count = 0;
    while (!closed_ && (count = read(STDIN_FILENO, buffer.data(), buffer.size())) > 0) {
      for (const std::string& line : requests_.add({buffer.data(), static_cast<std::size_t>(count)})) {
        if (const auto request = read_request(line)) answer(*request);
      }
    }
    if (count == 0) closed_ = true;
  }

  void answer(const WatchRequest& request) {
    lease_.renew(Clock::now());
    switch (request.kind) {
      case WatchRequest::Kind::alive:
        return;
      case WatchRequest::Kind::pause:
        return lease_.pause();
      case WatchRequest::Kind::places:
        return send_places();
      case WatchRequest::Kind::files:
        return send_files();
      case WatchRequest::Kind::end:
        ended_ = true;
    }
  }

  void send(const WatchNews& news) {
    unsent_ += to_line(news, options_.mark);
    write_unsent();
  }

  // Never waits: a supervisor that does not read must not prevent the agent from noticing the end of its lease.
  void write_unsent() {
    while (!closed_ && !unsent_.empty()) {
      const ssize_t count = write(STDOUT_FILENO, unsent_.data(), unsent_.size());
      if (count < 0 && errno == EAGAIN) return;
      if (count < 0) closed_ = true;
      if (count > 0) unsent_.erase(0, static_cast<std::size_t>(count));
    }
  }

  // Sends the ranks that have changed, in messages of a limited size; an empty message if none has.
  void send_news() {
    WatchNews news{.kind = WatchNews::Kind::ranks};
    bool sent = false;
    for (LocalRank& rank : local_ranks(options_.folder, host_)) {
      rank.view.step_seconds = measure_steps(rank);
      const auto before = sent_.find(rank.view.rank);
      if (before != sent_.end() && rank.view.same_as(before->second) && rank.view.step_seconds == 0) continue;
      sent_[rank.view.rank] = rank.view;
      news.ranks.push_back(rank.view);
      if (news.ranks.size() < ranks_of_message) continue;
      send(std::exchange(news, {.kind = WatchNews::Kind::ranks}));
      sent = true;
    }
    if (!news.ranks.empty() || !sent) send(news);
  }

  // Returns the time of a rank's steps once, as soon as enough of them are known; 0 before and afterwards. The first
  // steps may be over before two views could tell how long they took.
  double measure_steps(const LocalRank& rank) {
    constexpr int fewest = 3;
    if (measured_.contains(rank.view.rank) || rank.view.step < fewest) return 0;
    try {
      const double seconds = mean_step_seconds(read_flight_record(rank.path), fewest);
      if (seconds > 0) measured_.insert(rank.view.rank);
      return seconds;
    } catch (const Error&) {
      return 0;
    }
  }

  // The supervisor waits for some seconds. Ranks whose turn comes late are described without their threads.
  void send_places() {
    const Clock::time_point end = Clock::now() + time_for_threads;
    WatchNews news{.kind = WatchNews::Kind::places};
    for (const LocalRank& rank : local_ranks(options_.folder, host_)) {
      news.places = {{rank.view.rank, place_of_process(rank.view.process, stacks_, end)}};
      send(news);
    }
    send({.kind = WatchNews::Kind::places, .last = true});
  }

  void send_files() {
    for (const LocalRank& rank : local_ranks(options_.folder, host_)) {
      std::ifstream file(rank.path, std::ios::binary);
      std::string piece(piece_of_file, '\0');
      while (file.read(piece.data(), static_cast<std::streamsize>(piece.size())) || file.gcount() > 0) {
        send({.kind = WatchNews::Kind::file,
              .file_name = fs::path(rank.path).filename(),
              .bytes = piece.substr(0, static_cast<std::size_t>(file.gcount()))});
      }
    }
    send({.kind = WatchNews::Kind::files});
  }

  // Also kills ranks whose records were removed.
  void kill_ranks() {
    for (const LocalRank& rank : local_ranks(options_.folder, host_)) sent_[rank.view.rank] = rank.view;
    for (const auto& [number, view] : sent_) {
      if (belongs_to(view.process, options_.folder)) kill(view.process, SIGKILL);
    }
  }

  // Waits until the killed ranks have ended, so that they write no more files; at most 2 s.
  void wait_for_killed_ranks() const {
    const Clock::time_point end = Clock::now() + std::chrono::seconds(2);
    for (const auto& [number, view] : sent_) {
      while (belongs_to(view.process, options_.folder) && Clock::now() < end) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
    }
  }

  const HostAgentOptions& options_;
  const std::string host_ = this_host();
  std::unique_ptr<FolderLock> lock_;  // null: the folder belongs to the supervisor of this host
  Claim claim_;
  Lease lease_;
  LineReader requests_;
  CallStacks stacks_;
  std::map<int, RankView> sent_;
  std::set<int> measured_;  // ranks whose steps were measured
  std::string unsent_;
  bool closed_ = false;  // whether the channel is closed: the lease goes on, and a new agent may take over
  bool ended_ = false;
};

}  // namespace

int serve_as_host_agent(const HostAgentOptions& options) {
  ignore_requests();  // signals to all processes of a job must not end it before the ranks
  if (!is_own_folder(options.folder)) {
    std::fprintf(stderr, "%s is no folder of this user\n", options.folder.c_str());
    return 1;
  }
  return HostAgent(options).serve();
}

}  // namespace trainctl
