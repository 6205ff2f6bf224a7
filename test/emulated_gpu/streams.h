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

// A graph that is being captured: operations, each of which comes after others.
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

  // Returns for each node whether it is one of `tips` or comes before one of them.
  std::vector<bool> before(const std::vector<std::size_t>& tips) const;
};

// The operations that are queued on a stream. They run when a thread waits for them.
struct Queue {
  int device = 0;
  bool blocking = true;  // ordered with the legacy default stream
  std::deque<Operation> waiting;
  std::uint64_t queued = 0, done = 0, asked = 0;  // numbers of operations; asked: those that ask_for() requested
  std::mutex running;                             // held while an operation runs
  // While the stream captures: the capture, and the nodes that the next operation comes after.
  std::shared_ptr<Capture> capture;
  std::vector<std::size_t> tips;
};

// A position in a stream: after its first `position` operations.
struct Mark {
  std::shared_ptr<Queue> queue;
  std::uint64_t position = 0;
};

// All state of the process, guarded by its mutex.
struct State {
  std::mutex mutex;
  std::vector<std::shared_ptr<Queue>> legacy;  // the default stream of each device
  std::vector<std::shared_ptr<Queue>> queues;  // all streams with work, also destroyed ones
  std::vector<std::shared_ptr<Capture>> captures;
  // Marks that queries ask for. Other threads run the operations up to them, since these operations may block.
  std::deque<Mark> asked;
  int idle_threads = 0;
  std::condition_variable asked_or_done;
  bool overseen = false;  // whether the thread that looks for forgotten work was started
};
State& state();

// Returns the queue of a stream of this thread's device; null for an invalid handle.
std::shared_ptr<Queue> queue_of(cudaStream_t stream);
// Runs a stream's operations up to the mark, and the operations that they wait for.
void run_until(const Mark& mark);
bool is_done(const Mark& mark);
// Lets another thread run the operations up to the mark. Returns whether these are done after a short wait.
bool ask_for(const Mark& mark);
void run_all();
// Returns the current end of a stream; the caller holds the mutex.
inline Mark end_of(const std::shared_ptr<Queue>& queue) { return {queue, queue->queued}; }

cudaError_t queue_on(const std::shared_ptr<Queue>& queue, Operation operation);

// The capture mode of this thread, see cudaThreadExchangeStreamCaptureMode.
cudaStreamCaptureMode& thread_capture_mode();
// Marks a capture as invalid, and returns the status.
cudaError_t invalidate(Capture& capture, cudaError_t status);

}  // namespace emulated

struct CUstream_st {
  std::shared_ptr<emulated::Queue> queue;
  int priority = 0;
};
