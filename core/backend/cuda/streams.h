// Streams and events of CUDA behind core's interfaces.
#pragma once

#include <atomic>
#include <exception>
#include <memory>
#include <vector>

#include "core/backend/cuda/handle.h"
#include "core/backend/stream.h"

namespace trainctl::cuda {

// Looks after what a stream waits for: a peer that has failed, a deadline.
class Watch {
 public:
  virtual ~Watch() = default;
  // Throws Error{peer} where waiting any longer is in vain. Called about every millisecond of a wait.
  virtual void look() = 0;
};

class CudaStream final : public Stream {
 public:
  CudaStream();
  ~CudaStream() override;

  // Every wait of the host for this stream, and for events in it, looks at the watch, which the caller removes before
  // it dies.
  void add(Watch& watch);
  void remove(Watch& watch);
  // Waits until query() no longer says cudaErrorNotReady.
  void await(cudaError_t (*query)(void* object), void* object, std::string_view call);

  // Host work runs on a thread of CUDA's, which must not call CUDA itself.
  void enqueue(HostTask task) override;
  void synchronize() override;

  cudaStream_t get() const { return stream_.get(); }

 private:
  struct Queued {
    CudaStream* owner = nullptr;
    HostTask task;
    std::atomic<bool> waiting{false};
  };
  static void run(void* queued);

  OwnedStream stream_;
  std::vector<Watch*> watches_;
  std::vector<Queued> ring_;
  std::size_t next_ = 0;
  std::exception_ptr error_;  // of the first task that threw; read after a synchronisation
};

// The CUDA stream behind a stream that this backend made.
inline cudaStream_t stream_of(Stream& stream) { return static_cast<CudaStream&>(stream).get(); }

std::unique_ptr<Event> make_event();

}  // namespace trainctl::cuda
