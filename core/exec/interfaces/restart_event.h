// RestartEvent: why the supervisor has started the ranks of a run again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace trainctl {

// A failure, or a resize (the cause "resized"). Unknown values are empty.
struct RestartEvent {
  int attempt = 2;                        // number of the new attempt; the first attempt of a supervisor is 1
  std::string cause;                      // kind of the failure, such as "rank_killed"
  std::optional<int> rank = {};           // the rank that failed
  std::string host = {};                  // its host, or the host that was lost
  std::optional<int> signal = {};         // signal that killed the rank
  std::optional<std::int64_t> step = {};  // number of training steps that were done when it failed
  int ranks = 1;                          // number of ranks of the new attempt
  double detected = 0;                    // when the supervisor knew of it, in seconds since 1970

  bool operator==(const RestartEvent&) const = default;
};

}  // namespace trainctl
