// Draws the progress on standard error.
#include "io/metrics/count_progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "core/base/clock.h"
#include "core/base/format.h"
#include "core/base/log.h"

namespace trainctl {

CountProgress::CountProgress(std::string what, std::size_t total)
    : what_(std::move(what)), total_(total), terminal_(isatty(STDERR_FILENO) == 1) {
  due_ = seconds_now() + (terminal_ ? 0.2 : 2.0);
}

CountProgress::~CountProgress() {
  if (drawn_) std::fputs("\r\x1b[K", stderr);
}

void CountProgress::next() {
  ++count_;
  const double now = seconds_now();
  if (now < due_) return;
  due_ = now + (terminal_ ? 0.1 : 10.0);
  const std::string count =
      total_ > 0 ? format("{} {}/{}", what_, count_, std::max(count_, total_)) : format("{}: {} so far", what_, count_);
  if (!terminal_) return log::info(count);
  constexpr std::size_t width = 30;
  const std::size_t done = total_ > 0 ? std::min(width, width * count_ / total_) : 0;
  const std::string bar = total_ > 0 ? "  [" + std::string(done, '=') + std::string(width - done, ' ') + "]" : "";
  std::fputs(("\r\x1b[K" + count + bar).c_str(), stderr);
  std::fflush(stderr);
  drawn_ = true;
}

}  // namespace trainctl
