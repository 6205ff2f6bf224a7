// Implements core's streams and events by CUDA's streams and events.
#include "core/backend/cuda/runtime/streams.h"

#include <utility>

#include "core/base/error.h"
#include "core/base/log.h"

namespace trainctl::cuda {
namespace {

class CudaEvent final : public Event {
 public:
  explicit CudaEvent(std::shared_ptr<Waits> waits)
      : event_(
            make<OwnedEvent>([](cudaEvent_t* event) { return cudaEventCreateWithFlags(event, cudaEventDisableTiming); },
                             "cudaEventCreate")),
        waits_(std::move(waits)) {}
  void record(Stream& stream) override { check(cudaEventRecord(event_.get(), stream_of(stream)), "cudaEventRecord"); }
  void wait(Stream& stream) override {
    check(cudaStreamWaitEvent(stream_of(stream), event_.get(), 0), "cudaStreamWaitEvent");
  }
  void synchronize() override {  // returns immediately if the event was never recorded
    waits_->await([](void* event) { return cudaEventQuery(static_cast<cudaEvent_t>(event)); }, event_.get(),
                  "cudaEventSynchronize");
    waits_->rethrow();
  }

 private:
  OwnedEvent event_;
  std::shared_ptr<Waits> waits_;
};

}  // namespace

CudaStream::CudaStream(std::shared_ptr<Waits> waits, Priority priority)
    : stream_(make<OwnedStream>(
          [priority](cudaStream_t* stream) {
            int least = 0, greatest = 0;
            const cudaError_t status = cudaDeviceGetStreamPriorityRange(&least, &greatest);
            if (status != cudaSuccess) return status;
            return cudaStreamCreateWithPriority(stream, cudaStreamNonBlocking,
                                                priority == Priority::high ? greatest : least);
          },
          "cudaStreamCreate")),
      waits_(std::move(waits)),
      ring_(64) {}

// Waits for queued tasks, since they refer to this object.
CudaStream::~CudaStream() {
  try {
    drain();
  } catch (const Error& error) {
    log::debug(error.what());
  }
}

void CudaStream::enqueue(HostTask task) {
  Queued& queued = ring_[next_++ % ring_.size()];
  if (queued.waiting.load(std::memory_order_acquire)) drain();
  queued.waits = waits_.get();
  queued.task = task;
  queued.waiting.store(true, std::memory_order_release);
  check(cudaLaunchHostFunc(get(), run, &queued), "cudaLaunchHostFunc");
}

void CudaStream::run(void* context) {
  auto& queued = *static_cast<Queued*>(context);
  try {
    queued.task.run(queued.task.context);
  } catch (...) {
    queued.waits->fail(std::current_exception());
  }
  queued.waiting.store(false, std::memory_order_release);
}

void CudaStream::drain() {
  waits_->await([](void* stream) { return cudaStreamQuery(static_cast<cudaStream_t>(stream)); }, get(),
                "cudaStreamSynchronize");
}

void CudaStream::synchronize() {
  drain();
  waits_->rethrow();
}

std::unique_ptr<Event> make_event(std::shared_ptr<Waits> waits) {
  return std::make_unique<CudaEvent>(std::move(waits));
}

}  // namespace trainctl::cuda
