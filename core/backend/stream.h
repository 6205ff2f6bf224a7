// Streams and events: a stream executes work in order on a device, an event orders the work of two streams.
#pragma once

namespace trainctl {

// Host work that a stream runs in its order. The context must exist until the work has run.
struct HostTask {
  void (*run)(void* context) = nullptr;
  void* context = nullptr;
};

// A queue of work executed in order. On the CPU the compute stream runs each task immediately on the calling thread,
// and an asynchronous stream runs tasks on a thread of its own; on CUDA a stream is a cudaStream_t.
class Stream {
 public:
  virtual ~Stream() = default;

  // Queues host work. The next synchronize() rethrows an exception of the task.
  virtual void enqueue(HostTask task) = 0;

  // Returns when all work queued so far has run; rethrows the exception of a task.
  virtual void synchronize() = 0;
};

// A mark in one stream that another stream can wait for. Reusable.
class Event {
 public:
  virtual ~Event() = default;

  // Marks the work queued on `stream` so far.
  virtual void record(Stream& stream) = 0;
  // Later work on `stream` runs after the marked work.
  virtual void wait(Stream& stream) = 0;
  // Returns when the marked work has run; throws the same exceptions as the stream's synchronize().
  virtual void synchronize() = 0;
};

}  // namespace trainctl
