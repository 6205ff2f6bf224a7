// The host's waits: a spin loop that calls the watches every millisecond.
#include "core/backend/cuda/runtime/waits.h"

#include <sched.h>

#include <algorithm>
#include <utility>

#include "core/backend/cuda/runtime/check.h"

namespace trainctl::cuda {

void Waits::add(Watch& watch) {
  if (std::find(watches_.begin(), watches_.end(), &watch) == watches_.end()) watches_.push_back(&watch);
}

void Waits::remove(Watch& watch) { std::erase(watches_, &watch); }

void Waits::await(cudaError_t (*query)(void*), void* object, std::string_view call) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  auto next_look = start + std::chrono::milliseconds(1);
  cudaError_t status = query(object);
  for (; status == cudaErrorNotReady; status = query(object)) {
    cudaGetLastError();  // clears cudaErrorNotReady, which is not a failure
    const auto now = Clock::now();
    if (now - start > std::chrono::milliseconds(1)) sched_yield();  // gives the core to host work that may need it
    if (now < next_look) continue;
    const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(now - start);
    call_watches(waited);
    next_look = now + std::chrono::milliseconds(1);
  }
  check(status, call);
}

// Calls all watches, even after one has thrown: each watch ends the kernels that wait for its own peers, and memory is
// freed only when no kernel waits.
void Waits::call_watches(std::chrono::milliseconds waited) const {
  std::exception_ptr first;
  for (Watch* watch : watches_) {
    try {
      watch->check(waited);
    } catch (...) {
      if (!first) first = std::current_exception();
    }
  }
  if (first) std::rethrow_exception(first);
}

void Waits::fail(std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  if (!error_) error_ = std::move(error);
}

void Waits::rethrow() {
  const std::lock_guard lock(mutex_);
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

}  // namespace trainctl::cuda
