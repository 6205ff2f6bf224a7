// Implements streams of the emulated runtime: queues that run when a thread waits for them.
#include "test/emulated_gpu/streams.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>

namespace emulated {
namespace {

using namespace std::chrono_literals;

// Runs a stream's operations up to the mark. `quick`: stops before an operation that may have to wait for others.
void run(const Mark& mark, bool quick) {
  std::optional<DeviceAccess> open;  // kept from one operation to the next
  while (!is_done(mark)) {
    const std::unique_lock running(mark.queue->running, std::try_to_lock);
    if (!running && quick) return;
    if (!running) {
      // The thread that runs this queue may wait for a queue of this thread: waiting for its lock could hang.
      open.reset();
      std::this_thread::sleep_for(20us);
      continue;
    }
    if (is_done(mark)) return;
    Operation operation;
    {
      const std::scoped_lock lock(state().mutex);
      auto& waiting = mark.queue->waiting;
      if (quick && waiting.front().kind != Operation::Kind::device) return;
      operation = std::move(waiting.front());
      waiting.pop_front();
    }
    if (operation.kind != Operation::Kind::device) {
      open.reset();
    } else if (!open) {
      open.emplace();
    }
    perform(operation);
    const std::scoped_lock lock(state().mutex);
    ++mark.queue->done;
  }
}

[[noreturn]] void answer() {
  std::unique_lock lock(state().mutex);
  for (;;) {
    ++state().idle_threads;
    state().asked_or_done.wait(lock, [] { return !state().asked.empty(); });
    --state().idle_threads;
    const Mark mark = state().asked.front();
    state().asked.pop_front();
    lock.unlock();
    run_until(mark);
    lock.lock();
    state().asked_or_done.notify_all();
  }
}

// The caller holds the mutex.
void ask(const Mark& mark) {
  if (mark.queue->asked >= mark.position) return;
  mark.queue->asked = mark.position;
  state().asked.push_back(mark);
  if (state().idle_threads < static_cast<int>(state().asked.size())) std::thread(answer).detach();
  state().asked_or_done.notify_all();
}

// On a GPU, work also runs if no thread waits for it; here it runs after a while.
[[noreturn]] void oversee() {
  for (std::vector<Mark> before;;) {
    std::this_thread::sleep_for(200ms);
    const std::scoped_lock lock(state().mutex);
    for (const Mark& mark : before) {
      if (mark.queue->done < mark.position) ask(mark);
    }
    before.clear();
    for (const auto& queue : state().queues) before.push_back(end_of(queue));
  }
}

// Returns the implied waits: the default stream waits for all blocking streams, and they wait for it.
std::vector<Mark> implied_waits(const std::shared_ptr<Queue>& queue) {
  std::vector<Mark> marks;
  const auto& legacy = state().legacy[static_cast<std::size_t>(queue->device)];
  if (!queue->blocking || legacy == nullptr) return marks;
  for (const auto& other : state().queues) {
    const bool ordered = other->blocking && other->device == queue->device && (queue == legacy || other == legacy);
    if (ordered && other != queue && other->done < other->queued) marks.push_back(end_of(other));
  }
  return marks;
}

void append(const std::shared_ptr<Queue>& queue, Operation operation) {
  auto& queues = state().queues;
  std::erase_if(queues, [&](const auto& other) { return other->done == other->queued && other != queue; });
  if (std::find(queues.begin(), queues.end(), queue) == queues.end()) queues.push_back(queue);
  queue->waiting.push_back(std::move(operation));
  ++queue->queued;
}

}  // namespace

State& state() {
  static State& all = *[] {
    auto* made = new State;  // never destroyed: streams may run until the process ends
    made->legacy.resize(static_cast<std::size_t>(std::max(device_count(), 1)));
    return made;
  }();
  return all;
}

std::shared_ptr<Queue> queue_of(cudaStream_t stream) {
  if (stream != nullptr && stream != cudaStreamLegacy) return stream == cudaStreamPerThread ? nullptr : stream->queue;
  const std::scoped_lock lock(state().mutex);
  auto& legacy = state().legacy[static_cast<std::size_t>(current_device())];
  if (legacy == nullptr) {
    legacy = std::make_shared<Queue>();
    legacy->device = current_device();
  }
  return legacy;
}

bool is_done(const Mark& mark) {
  const std::scoped_lock lock(state().mutex);
  return mark.queue == nullptr || mark.queue->done >= mark.position;
}

void run_until(const Mark& mark) { run(mark, false); }

bool ask_for(const Mark& mark) {
  if (mark.queue != nullptr) run(mark, true);
  if (is_done(mark)) return true;
  std::unique_lock lock(state().mutex);
  ask(mark);
  return state().asked_or_done.wait_for(lock, 200us, [&] { return mark.queue->done >= mark.position; });
}

void run_all() {
  std::vector<Mark> ends;
  {
    const std::scoped_lock lock(state().mutex);
    for (const auto& queue : state().queues) ends.push_back(end_of(queue));
  }
  // The last stream runs first: code must not rely on an order between streams.
  for (auto end = ends.rbegin(); end != ends.rend(); ++end) run_until(*end);
}

cudaError_t queue_on(const std::shared_ptr<Queue>& queue, Operation operation) {
  if (queue == nullptr) return cudaErrorInvalidResourceHandle;
  const std::scoped_lock lock(state().mutex);
  if (!state().overseen) std::thread(oversee).detach();
  state().overseen = true;
  if (const auto& capture = queue->capture) {
    if (!capture->valid) return cudaErrorStreamCaptureInvalidated;
    capture->nodes.push_back({std::move(operation), queue->tips});
    queue->tips = {capture->nodes.size() - 1};
    return cudaSuccess;
  }
  if (queue->blocking) {
    for (const auto& capture : state().captures) {  // the default stream would have to wait for a stream that captures
      const bool legacy = queue == state().legacy[static_cast<std::size_t>(queue->device)];
      if (legacy && capture->origin->blocking) return invalidate(*capture, cudaErrorStreamCaptureImplicit);
    }
  }
  for (const Mark& mark : implied_waits(queue)) {
    append(queue, {Operation::Kind::wait, [mark] { run_until(mark); }});
  }
  append(queue, std::move(operation));
  return cudaSuccess;
}

cudaError_t queue(cudaStream_t stream, Operation operation) { return queue_on(queue_of(stream), std::move(operation)); }

}  // namespace emulated
