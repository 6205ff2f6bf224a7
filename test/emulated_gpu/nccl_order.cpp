// Orders the calls of several emulated NCCL communicators.
#include "test/emulated_gpu/nccl_order.h"

#include <nccl.h>

#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

namespace emulated {
namespace {

bool orders_launches() {
  const char* ordered = std::getenv("NCCL_LAUNCH_ORDER_IMPLICIT");
  return nccl_version() >= 22600 && ordered != nullptr && std::strcmp(ordered, "1") == 0;
}

// The calls of this process that are queued and not finished.
struct Unfinished {
  std::mutex mutex;
  std::multimap<const void*, cudaStream_t> calls;
};

// Returns the call, or nothing if a call of another communicator is not finished on another stream.
std::function<void()> in_stream_order(const void* communicator, cudaStream_t stream, std::function<void()> run) {
  static Unfinished& unfinished = *new Unfinished;
  const std::scoped_lock lock(unfinished.mutex);
  for (const auto& [other, on] : unfinished.calls) {
    if (other != communicator && on != stream) return {};
  }
  const auto own = unfinished.calls.emplace(communicator, stream);
  return [own, run = std::move(run)] {
    run();
    const std::scoped_lock done(unfinished.mutex);
    unfinished.calls.erase(own);
  };
}

// The order of the calls in the one hardware queue.
struct Order {
  std::mutex mutex;
  std::condition_variable changed;
  std::uint64_t queued = 0, finished = 0;
};

// Returns a call that waits for all calls that were queued before it.
std::function<void()> in_order(std::function<void()> run) {
  static Order& order = *new Order;
  const std::scoped_lock lock(order.mutex);
  return [run = std::move(run), number = order.queued++] {
    {
      std::unique_lock waiting(order.mutex);
      order.changed.wait(waiting, [number] { return order.finished == number; });
    }
    run();
    const std::scoped_lock done(order.mutex);
    ++order.finished;
    order.changed.notify_all();
  };
}

}  // namespace

int nccl_version() {
  const char* version = std::getenv("TRAINCTL_EMULATED_NCCL_VERSION");
  return version == nullptr ? NCCL_VERSION_CODE : std::atoi(version);
}

bool is_captured(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  cudaStreamIsCapturing(stream, &status);
  return status != cudaStreamCaptureStatusNone;
}

std::function<void()> in_launch_order(const void* communicator, cudaStream_t stream, std::function<void()> run) {
  static const bool one_queue = std::getenv("TRAINCTL_EMULATED_NCCL_ONE_QUEUE") != nullptr;
  if (is_captured(stream)) return run;
  if (one_queue) run = in_order(std::move(run));
  return orders_launches() ? run : in_stream_order(communicator, stream, std::move(run));
}

}  // namespace emulated
