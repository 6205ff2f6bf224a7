// Blocking calls of MPI, which make communicators and memory, with the deadline of all waits for other ranks.
#pragma once

#include <chrono>
#include <future>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>

#include "core/backend/attendance.h"

namespace trainctl {

// Runs `work` on a thread of its own and returns or throws what it does. After the deadline it throws Error{peer} that
// names the missing ranks, and leaves the thread, which waits for ever, to the process' end: `work` must own all that
// it uses. `what` is what the ranks do: "making a communicator".
template <class Work>
std::invoke_result_t<Work> bounded(Attendance& attendance, std::string_view what, Work work) {
  constexpr std::chrono::milliseconds between_answers{20};
  if (attendance.deadline().count() == 0) return work();
  std::packaged_task<std::invoke_result_t<Work>()> task(std::move(work));
  auto result = task.get_future();
  std::thread(std::move(task)).detach();
  PeerWait wait(attendance);
  while (result.wait_for(between_answers) != std::future_status::ready) {
    if (!wait.goes_on()) attendance.report_missing(what);
  }
  return result.get();
}

}  // namespace trainctl
