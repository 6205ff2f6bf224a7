// Whether a supervisor that does not see a run directory may start its ranks there again.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "core/base/error.h"
#include "core/base/generation.h"

namespace trainctl {

// A supervisor keeps the directory of its run by a lock there (core/base/supervisor_lock.h). It cannot do so if rank 0
// is on another host: then a directory that its ranks have left stays theirs for the longest of a minute,
// cluster.timeout and cluster.start_timeout, which the next ranks may take to start. No value: there is no limit.
// `start_timeout`: zero if ranks may take any time to start.
std::optional<std::chrono::milliseconds> time_to_start_again(std::chrono::milliseconds timeout,
                                                             std::chrono::milliseconds start_timeout);

// Thrown if a directory is left to such a supervisor.
class MayStartAgain : public Error {
 public:
  // `last`: the start of the run that has locked the folder last.
  MayStartAgain(const std::string& folder, const Generation& last);

  // The message without a remedy.
  const std::string& text() const { return text_; }

 private:
  explicit MayStartAgain(std::string text);

  std::string text_;
};

// Whether the supervisor that has started the ranks which locked the folder last, `last`, may start them again, and is
// on another host without a lock in the folder. False if the run there has ended, or if nothing was written there for
// ten minutes.
bool may_start_again(const std::string& folder, const Generation& last);

}  // namespace trainctl
