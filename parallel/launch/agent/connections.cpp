// Chooses the connection to close, and decides when a log line is due.
#include "parallel/launch/agent/connections.h"

#include <algorithm>

#include "core/base/format.h"

namespace trainctl {

std::optional<pid_t> Connections::make_space() {
  if (processes_.size() < max_) return 0;
  auto oldest = processes_.end();
  for (auto each = processes_.begin(); each != processes_.end(); ++each) {
    if (each->second.proven) continue;
    if (oldest == processes_.end() || each->second.number < oldest->second.number) oldest = each;
  }
  if (oldest == processes_.end()) return {};
  const pid_t process = oldest->first;
  processes_.erase(oldest);
  return process;
}

void Connections::has_proven(pid_t process) {
  if (const auto found = processes_.find(process); found != processes_.end()) found->second.proven = true;
}

std::string RefusalLog::line_at(Time now) {
  if (count_ == 0 || (due_ && now < *due_)) return "";
  const std::string line =
      count_ == 1 ? std::string("a connection was refused: it did not prove that it knows the secret")
                  : format("{} connections were refused: they did not prove that they know the secret", count_);
  if (due_) pause_ = std::min(2 * pause_, std::chrono::seconds(3600));
  due_ = now + pause_;
  count_ = 0;
  return line;
}

}  // namespace trainctl
