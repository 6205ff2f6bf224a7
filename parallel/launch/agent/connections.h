// The processes that serve an agent's connections, and what the agent does when there are too many of them.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <string>

namespace trainctl {

// The connections of an agent, of which there are at most `most`. Those that have not proven to know the secret make
// room for newer ones.
class Connections {
 public:
  explicit Connections(std::size_t most) : most_(most) {}

  // Makes room for one more: the process of the oldest connection that has proven nothing is to be killed, which is
  // returned; 0 if there is room already. Nothing if all have proven themselves.
  std::optional<pid_t> make_room();
  void add(pid_t process) { processes_.emplace(process, State{begun_++, false}); }
  void has_proven(pid_t process);
  void has_ended(pid_t process) { processes_.erase(process); }

 private:
  struct State {
    std::size_t number = 0;  // in the order of their beginnings
    bool proven = false;
  };

  std::size_t most_;
  std::size_t begun_ = 0;
  std::map<pid_t, State> processes_;
};

// Counts connections that proved nothing. Says so in lines that become rarer, so that nobody can fill a log: the first
// at once, then at most one a minute, and each time after twice as long, up to an hour.
class RefusalLog {
 public:
  using Time = std::chrono::steady_clock::time_point;

  void refused() { ++count_; }
  // The line that is due now; "" if none is.
  std::string line_at(Time now);

 private:
  std::size_t count_ = 0;  // since the last line
  std::optional<Time> due_;
  std::chrono::seconds pause_{60};
};

}  // namespace trainctl
