// One start of a run's ranks by a supervisor, and the line that names it in lock files.
#pragma once

#include <string>

namespace trainctl {

// A supervisor may start the ranks of a run several times.
struct Generation {
  std::string launch = {};  // the supervisor; "" if there is none
  int number = 0;           // grows with each start
  bool restarts = false;    // whether the supervisor starts the ranks again after a failure

  // Whether the same supervisor has started this generation after `other`.
  bool follows(const Generation& other) const {
    return !launch.empty() && launch == other.launch && number > other.number;
  }
};

// Returns the beginning of the lines that name starts by a supervisor: "launch 4f2a generation ".
std::string line_of_launch(const std::string& launch);

// Returns the line with its end; "" without a supervisor.
std::string to_line(const Generation& generation);

// Returns the generation that a lock file names after its first line; an empty one if it names none.
Generation generation_in(const std::string& lock_text);

}  // namespace trainctl
