// Runs a child process, for commands that start other programs or compare several runs.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "parallel/launch/supervisor/signals.h"

namespace trainctl {

// How a child ended.
struct ChildEnd {
  int exit_code = 0;   // 128 + n if signal n ended it
  std::string errors;  // text of its standard error
};

// Runs a command to its end and passes each line of its standard output to `take` immediately. A request to stop ends
// the child; then Error{interrupted} is thrown. Throws Error{resource} if the command cannot be started.
ChildEnd run_child(const Signals& signals, const std::vector<std::string>& command,
                   const std::function<void(std::string_view line)>& take);

}  // namespace trainctl
