// Keeps the end of a rehearsed full disk.
#include "core/base/full_disk.h"

#include <atomic>
#include <cerrno>

#include "core/base/output.h"

namespace trainctl {
namespace {

using Clock = std::chrono::steady_clock;

// The end of the rehearsal as a time of the clock; 0: there is none. Global, since a process has one set of files.
std::atomic<Clock::rep> full_until{0};

// The number of saves that still fail.
std::atomic<std::int64_t> saves_to_fail{0};

}  // namespace

void rehearse_full_disk(std::chrono::duration<double> time) {
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(time);
  full_until.store(end.time_since_epoch().count(), std::memory_order_relaxed);
}

void rehearse_full_disk(std::int64_t failing_saves) { saves_to_fail.store(failing_saves, std::memory_order_relaxed); }

int full_disk_error() {
  if (saves_to_fail.load(std::memory_order_relaxed) > 0) return ENOSPC;
  const Clock::rep end = full_until.load(std::memory_order_relaxed);
  return end != 0 && Clock::now().time_since_epoch().count() < end ? ENOSPC : 0;
}

int save_error() {
  std::int64_t left = saves_to_fail.load(std::memory_order_relaxed);
  while (left > 0 && !saves_to_fail.compare_exchange_weak(left, left - 1, std::memory_order_relaxed)) {
  }
  return left > 0 ? ENOSPC : full_disk_error();
}

int write_to_disk(int descriptor, std::string_view text) {
  const int error = full_disk_error();
  return error != 0 ? error : write_all(descriptor, text);
}

}  // namespace trainctl
