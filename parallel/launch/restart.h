// Why the supervisor has started the ranks again: a failure, or a resize. The supervisor passes it to the ranks of the
// new attempt in an environment variable.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace trainctl {

// The cause of a restart with another number of ranks (`trainctl resize`).
inline constexpr std::string_view cause_resized = "resized";

struct Restart {
  int attempt = 2;                        // number of the new attempt; the first attempt of a supervisor is 1
  std::string cause;                      // kind of the failure, such as "rank_killed", or cause_resized
  std::optional<int> rank = {};           // the rank that failed; unknown values are empty
  std::string host = {};                  // its host, or the host that was lost
  std::optional<int> signal = {};         // signal that killed the rank
  std::optional<std::int64_t> step = {};  // number of training steps that the attempt had done
  std::string run_directory = {};         // directory in which the run continues; "" if none was claimed

  bool operator==(const Restart&) const = default;
};

// Returns the restart as a line of text for the variable restart_variable.
std::string to_text(const Restart& restart);

// Reads a line of to_text(); empty if the text is not such a line.
std::optional<Restart> read_restart(const std::string& text);

}  // namespace trainctl
