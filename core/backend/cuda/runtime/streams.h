// Implements core's streams and events by CUDA's streams and events.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "core/backend/cuda/runtime/handle.h"
#include "core/backend/cuda/runtime/waits.h"
#include "core/backend/stream.h"

namespace trainctl::cuda {

class CudaStream final : public Stream {
 public:
  enum class Priority { usual, high };
  // `waits` is the object that all streams and events of the backend share.
  CudaStream(std::shared_ptr<Waits> waits, Priority priority);
  ~CudaStream() override;

  // Host work runs on a thread of CUDA, on which the task must not call CUDA.
  void enqueue(HostTask task) override;
  void synchronize() override;

  cudaStream_t get() const { return stream_.get(); }
  const std::shared_ptr<Waits>& waits() const { return waits_; }

 private:
  struct Queued {
    Waits* waits = nullptr;
    HostTask task;
    std::atomic<bool> waiting{false};
  };
  static void run(void* queued);
  void drain();

  OwnedStream stream_;
  std::shared_ptr<Waits> waits_;
  std::vector<Queued> ring_;
  std::size_t next_ = 0;
};

// The CUDA stream of a stream that this backend made.
inline cudaStream_t stream_of(Stream& stream) { return static_cast<CudaStream&>(stream).get(); }

std::unique_ptr<Event> make_event(std::shared_ptr<Waits> waits);

}  // namespace trainctl::cuda
