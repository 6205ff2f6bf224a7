// Runs blocking MPI calls, which create communicators and shared memory, with the deadline of all waits for other
// ranks.
#pragma once

#include <chrono>
#include <future>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>

#include "core/backend/attendance.h"

namespace trainctl {

// Runs `work` on its own thread and returns its result or rethrows its exception. After the deadline it throws
// Error{peer} with the missing ranks and abandons the thread, which may never return. Therefore `work` must own
// everything that it uses. `what` names the work in messages: "making a communicator".
template <class Work>
std::invoke_result_t<Work> bounded(Attendance& attendance, std::string_view what, Work work) {
  constexpr std::chrono::milliseconds poll_interval{20};
  if (attendance.deadline().count() == 0) return work();
  std::packaged_task<std::invoke_result_t<Work>()> task(std::move(work));
  auto result = task.get_future();
  std::thread(std::move(task)).detach();
  PeerWait wait(attendance);
  while (result.wait_for(poll_interval) != std::future_status::ready) {
    if (!wait.goes_on()) attendance.report_missing(what);
  }
  return result.get();
}

}  // namespace trainctl
