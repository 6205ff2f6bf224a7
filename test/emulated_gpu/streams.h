// Streams, events and captures of the emulated runtime.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "test/emulated_gpu/runtime.h"

namespace emulated {

struct Queue;

// A graph in the making: operations, each after others.
struct Capture {
  struct Node {
    Operation operation;
    std::vector<std::size_t> after;
  };
  std::vector<Node> nodes;
  Queue* origin = nullptr;
  std::thread::id thread;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  bool valid = true;
  std::vector<std::shared_ptr<Queue>> members;

  // Whether `node` is among those that `tips` come after, or one of them.
  std::vector<bool> before(const std::vector<std::size_t>& tips) const;
};

// What waits on a stream. Runs when somebody waits for it.
struct Queue {
  int device = 0;
  bool blocking = true;  // ordered with the legacy default stream
  std::deque<Operation> waiting;
  std::uint64_t queued = 0, done = 0, asked = 0;  // operations so far; asked: somebody is at it
  std::mutex running;                             // held while an operation runs
  // While it captures: into what, and the nodes that the next one comes after.
  std::shared_ptr<Capture> capture;
  std::vector<std::size_t> tips;
};

// A place in a stream: after its first `position` operations.
struct Mark {
  std::shared_ptr<Queue> queue;
  std::uint64_t position = 0;
};

// All state of the process, guarded by its mutex.
struct State {
  std::mutex mutex;
  std::vector<std::shared_ptr<Queue>> legacy;  // the default stream of each device
  std::vector<std::shared_ptr<Queue>> queues;  // all streams with work, destroyed ones too
  std::vector<std::shared_ptr<Capture>> captures;
  // Queries are answered by threads that run what was asked about; host functions and ranks may have to be waited for.
  std::deque<Mark> asked;
  int idle_threads = 0;
  std::condition_variable asked_or_done;
  bool overseen = false;  // whether the thread that looks for forgotten work was started
};
State& state();

// The queue of a stream of this thread's device; null for a handle that is none.
std::shared_ptr<Queue> queue_of(cudaStream_t stream);
// Runs a stream's operations up to the mark, and what they wait for.
void run_until(const Mark& mark);
bool is_done(const Mark& mark);
// Has another thread run up to the mark. True where that is done within a moment.
bool ask_for(const Mark& mark);
void run_all();
// The end of the stream as it is now; with the mutex held.
inline Mark end_of(const std::shared_ptr<Queue>& queue) { return {queue, queue->queued}; }

cudaError_t queue_on(const std::shared_ptr<Queue>& queue, Operation operation);

// The capture mode of this thread, see cudaThreadExchangeStreamCaptureMode.
cudaStreamCaptureMode& thread_capture_mode();
cudaError_t spoil(Capture& capture, cudaError_t status);

}  // namespace emulated

struct CUstream_st {
  std::shared_ptr<emulated::Queue> queue;
  int priority = 0;
};
