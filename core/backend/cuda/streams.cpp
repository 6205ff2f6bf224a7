// Streams and events of CUDA.
#include "core/backend/cuda/streams.h"

#include <utility>

namespace trainctl::cuda {
namespace {

class CudaEvent final : public Event {
 public:
  CudaEvent()
      : event_(
            make<OwnedEvent>([](cudaEvent_t* event) { return cudaEventCreateWithFlags(event, cudaEventDisableTiming); },
                             "cudaEventCreate")) {}
  void record(Stream& stream) override { check(cudaEventRecord(event_.get(), stream_of(stream)), "cudaEventRecord"); }
  void wait(Stream& stream) override {
    check(cudaStreamWaitEvent(stream_of(stream), event_.get(), 0), "cudaStreamWaitEvent");
  }

 private:
  OwnedEvent event_;
};

}  // namespace

CudaStream::CudaStream()
    : stream_(make<OwnedStream>(
          [](cudaStream_t* stream) { return cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking); },
          "cudaStreamCreate")),
      ring_(64) {}

// Tasks that still wait refer to this object.
CudaStream::~CudaStream() { cudaStreamSynchronize(stream_.get()); }

void CudaStream::enqueue(HostTask task) {
  Queued& queued = ring_[next_++ % ring_.size()];
  if (queued.waiting.load(std::memory_order_acquire)) check(cudaStreamSynchronize(get()), "cudaStreamSynchronize");
  queued.owner = this;
  queued.task = task;
  queued.waiting.store(true, std::memory_order_release);
  check(cudaLaunchHostFunc(get(), run, &queued), "cudaLaunchHostFunc");
}

void CudaStream::run(void* context) {
  auto& queued = *static_cast<Queued*>(context);
  try {
    queued.task.run(queued.task.context);
  } catch (...) {
    if (!queued.owner->error_) queued.owner->error_ = std::current_exception();
  }
  queued.waiting.store(false, std::memory_order_release);
}

void CudaStream::synchronize() {
  check(cudaStreamSynchronize(get()), "cudaStreamSynchronize");
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

std::unique_ptr<Event> make_event() { return std::make_unique<CudaEvent>(); }

}  // namespace trainctl::cuda
