// The processes that serve an agent's connections, and the limit of their number.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <string>

namespace trainctl {

// The connections of an agent, at most `max`. When there are too many, the oldest connection that has not proven to
// know the secret is closed.
class Connections {
 public:
  explicit Connections(std::size_t max) : max_(max) {}

  // Makes space for one more connection. Returns the process that must be killed: that of the oldest connection that
  // has proven nothing; 0 if there is space already; empty if all connections have proven to know the secret.
  std::optional<pid_t> make_space();
  void add(pid_t process) { processes_.emplace(process, State{begun_++, false}); }
  void has_proven(pid_t process);
  void has_ended(pid_t process) { processes_.erase(process); }

 private:
  struct State {
    std::size_t number = 0;  // its number in the order in which connections began
    bool proven = false;
  };

  std::size_t max_;
  std::size_t begun_ = 0;
  std::map<pid_t, State> processes_;
};

// Counts connections that proved nothing, and reports them in lines that become rarer, so that nobody can fill a log:
// the first at once, the next after a minute, and each further one after twice the time, up to an hour.
class RefusalLog {
 public:
  using Time = std::chrono::steady_clock::time_point;

  void refused() { ++count_; }
  // The line that is due now; "" if none is.
  std::string line_at(Time now);

 private:
  std::size_t count_ = 0;  // refusals since the last line
  std::optional<Time> due_;
  std::chrono::seconds pause_{60};
};

}  // namespace trainctl
