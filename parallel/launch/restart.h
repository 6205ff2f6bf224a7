// Why the supervisor has started the ranks again: a failure, or a resize. The supervisor passes it to the ranks of the
// new attempt in an environment variable.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/exec/interfaces/restart_event.h"

namespace trainctl {

// The cause of a restart with another number of ranks (`trainctl resize`).
inline constexpr std::string_view cause_resized = "resized";

struct Restart {
  RestartEvent event;         // `ranks` is not set: the ranks know their number
  std::string run_directory;  // directory in which the run continues; "" if none was claimed

  bool operator==(const Restart&) const = default;
};

// Returns the restart as a line of text for the variable restart_variable.
std::string to_text(const Restart& restart);

// Reads a line of to_text(); empty if the text is not such a line.
std::optional<Restart> read_restart(const std::string& text);

}  // namespace trainctl
