// The processes that serve an agent's connections, and the limit on their number.
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

  // Makes space for one more connection. Returns the process that must be killed: the process of the oldest connection
  // that has not proven to know the secret. Returns 0 if there is space already, and an empty value if all connections
  // have proven to know the secret.
  std::optional<pid_t> make_space();
  void add(pid_t process) { processes_.emplace(process, State{begun_++, false}); }
  void has_proven(pid_t process);
  void has_ended(pid_t process) { processes_.erase(process); }

 private:
  struct State {
    std::size_t number = 0;  // position of the connection in the order of their beginnings
    bool proven = false;
  };

  std::size_t max_;
  std::size_t begun_ = 0;
  std::map<pid_t, State> processes_;
};

// Counts connections that did not prove to know the secret, and reports them. So that such connections cannot fill a
// log, lines become rarer: the first is due immediately, the next after a minute, and each further line after twice the
// time, up to an hour.
class RefusalLog {
 public:
  using Time = std::chrono::steady_clock::time_point;

  void refused() { ++count_; }
  // Returns the line that is due now; "" if no line is due.
  std::string line_at(Time now);

 private:
  std::size_t count_ = 0;  // number of refusals since the last line
  std::optional<Time> due_;
  std::chrono::seconds pause_{60};
};

}  // namespace trainctl
