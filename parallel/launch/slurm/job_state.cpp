// Reading what scontrol prints.
#include "parallel/launch/slurm/job_state.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "core/base/error.h"

namespace trainctl {
namespace {

// The value of KEY=VALUE among words with spaces between them, or "".
std::string value_of(std::string_view line, std::string_view key) {
  for (std::size_t begin = 0; begin < line.size();) {
    const std::size_t end = std::min(line.find_first_of(" \n", begin), line.size());
    const std::string_view word = line.substr(begin, end - begin);
    if (word.starts_with(key) && word.size() > key.size() && word[key.size()] == '=') {
      return std::string(word.substr(key.size() + 1));
    }
    begin = end + 1;
  }
  return "";
}

}  // namespace

bool JobState::ended() const {
  constexpr std::array<std::string_view, 9> ends = {"COMPLETED", "FAILED",    "TIMEOUT",  "CANCELLED",    "NODE_FAIL",
                                                    "PREEMPTED", "BOOT_FAIL", "DEADLINE", "OUT_OF_MEMORY"};
  return std::find(ends.begin(), ends.end(), name) != ends.end();
}

bool JobState::may_never_start() const {
  return name == "PENDING" &&
         (reason.starts_with("Partition") || reason.starts_with("Invalid") || reason == "BadConstraints");
}

std::optional<JobState> read_job_state(std::string_view line) {
  JobState state;
  state.name = value_of(line, "JobState");
  if (state.name.empty()) return {};
  state.reason = value_of(line, "Reason");
  if (state.reason == "None") state.reason.clear();
  std::sscanf(value_of(line, "ExitCode").c_str(), "%d:%d", &state.exit_code, &state.signal);
  std::sscanf(value_of(line, "Restarts").c_str(), "%d", &state.restarts);
  return state;
}

int exit_code_of(const JobState& state) {
  if (state.name == "COMPLETED") return 0;
  if (state.name == "OUT_OF_MEMORY") return exit_code(ErrorKind::resource);
  if (state.exit_code != 0) return state.exit_code;
  if (state.name == "FAILED" && state.signal != 0) return 128 + state.signal;
  return exit_code(ErrorKind::peer);
}

}  // namespace trainctl
