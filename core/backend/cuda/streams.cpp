// Streams and events of CUDA.
#include "core/backend/cuda/streams.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace trainctl::cuda {
namespace {

class CudaEvent final : public Event {
 public:
  CudaEvent()
      : event_(
            make<OwnedEvent>([](cudaEvent_t* event) { return cudaEventCreateWithFlags(event, cudaEventDisableTiming); },
                             "cudaEventCreate")) {}
  void record(Stream& stream) override {
    stream_ = static_cast<CudaStream*>(&stream);
    check(cudaEventRecord(event_.get(), stream_->get()), "cudaEventRecord");
  }
  void wait(Stream& stream) override {
    check(cudaStreamWaitEvent(stream_of(stream), event_.get(), 0), "cudaStreamWaitEvent");
  }

  void synchronize() override {
    if (stream_ == nullptr) return;
    stream_->await([](void* event) { return cudaEventQuery(static_cast<cudaEvent_t>(event)); }, event_.get(),
                   "cudaEventSynchronize");
  }

 private:
  OwnedEvent event_;
  CudaStream* stream_ = nullptr;  // that it was last recorded in
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

void CudaStream::add(Watch& watch) {
  if (std::find(watches_.begin(), watches_.end(), &watch) == watches_.end()) watches_.push_back(&watch);
}

void CudaStream::remove(Watch& watch) { std::erase(watches_, &watch); }

void CudaStream::await(cudaError_t (*query)(void*), void* object, std::string_view call) {
  using Clock = std::chrono::steady_clock;
  auto next_look = Clock::now() + std::chrono::milliseconds(1);
  cudaError_t status = query(object);
  for (; status == cudaErrorNotReady; status = query(object)) {
    if (Clock::now() < next_look) continue;
    for (Watch* watch : watches_) watch->look();
    next_look = Clock::now() + std::chrono::milliseconds(1);
  }
  check(status, call);
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void CudaStream::synchronize() {
  await([](void* stream) { return cudaStreamQuery(static_cast<cudaStream_t>(stream)); }, get(),
        "cudaStreamSynchronize");
}

std::unique_ptr<Event> make_event() { return std::make_unique<CudaEvent>(); }

}  // namespace trainctl::cuda
