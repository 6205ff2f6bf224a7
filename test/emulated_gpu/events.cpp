// Implements the API's functions for streams and events in the emulated runtime.
#include <chrono>

#include "test/emulated_gpu/streams.h"

using namespace emulated;

namespace {

using Time = std::chrono::steady_clock::time_point;

// The state of an event after its last cudaEventRecord().
struct Recorded {
  Mark mark;
  std::shared_ptr<Time> time;        // when the stream reached the mark
  std::shared_ptr<Capture> capture;  // the capture in which it was recorded, if any,
  std::vector<std::size_t> tips;     // and the nodes that it comes after
};

cudaError_t create_stream(cudaStream_t* stream, unsigned flags, int priority) {
  return call([&] {
    if ((flags & ~static_cast<unsigned>(cudaStreamNonBlocking)) != 0) return cudaErrorInvalidValue;
    *stream = new CUstream_st{std::make_shared<Queue>(), priority};
    (*stream)->queue->device = current_device();
    (*stream)->queue->blocking = (flags & cudaStreamNonBlocking) == 0;
    return cudaSuccess;
  });
}

// Does not wait for a stream that captures, since that would never end.
cudaError_t wait_for_stream(cudaStream_t stream, bool only_ask) {
  const auto queue = queue_of(stream);
  if (queue == nullptr) return cudaErrorInvalidResourceHandle;
  Mark end;
  {
    const std::scoped_lock lock(state().mutex);
    if (queue->capture != nullptr) return invalidate(*queue->capture, cudaErrorStreamCaptureUnsupported);
    end = end_of(queue);
  }
  if (only_ask) return ask_for(end) ? cudaSuccess : cudaErrorNotReady;
  run_until(end);
  return cudaSuccess;
}

}  // namespace

struct CUevent_st {
  Recorded recorded;
  bool timing = true;
};

namespace {

cudaError_t record(cudaEvent_t event, cudaStream_t stream) {
  const auto queue = queue_of(stream);
  if (event == nullptr || queue == nullptr) return cudaErrorInvalidResourceHandle;
  const auto time = std::make_shared<Time>();
  {
    const std::scoped_lock lock(state().mutex);
    if (queue->capture != nullptr) {
      if (!queue->capture->valid) return cudaErrorStreamCaptureInvalidated;
      event->recorded = {{}, time, queue->capture, queue->tips};
      return cudaSuccess;
    }
  }
  const cudaError_t status =
      queue_on(queue, {Operation::Kind::device, [time] { *time = std::chrono::steady_clock::now(); }});
  const std::scoped_lock lock(state().mutex);
  if (status == cudaSuccess) event->recorded = {end_of(queue), time, nullptr, {}};
  return status;
}

// Makes later work on the stream wait for the event; the stream joins the capture that recorded the event, if any.
cudaError_t wait(cudaStream_t stream, cudaEvent_t event) {
  const auto queue = queue_of(stream);
  if (event == nullptr || queue == nullptr) return cudaErrorInvalidResourceHandle;
  const Recorded& recorded = event->recorded;
  if (recorded.capture == nullptr) {
    if (queue->capture != nullptr) {
      const std::scoped_lock lock(state().mutex);
      return invalidate(*queue->capture, cudaErrorStreamCaptureIsolation);
    }
    if (recorded.mark.queue == nullptr) return cudaSuccess;  // never recorded
    return queue_on(queue, {Operation::Kind::wait, [mark = recorded.mark] { run_until(mark); }});
  }
  const std::scoped_lock lock(state().mutex);
  Capture& capture = *recorded.capture;
  if (!capture.valid) return cudaErrorStreamCaptureInvalidated;
  if (capture.origin == nullptr) return cudaErrorCapturedEvent;  // the capture has ended
  if (stream == nullptr) return invalidate(capture, cudaErrorStreamCaptureImplicit);
  if (queue->capture == nullptr) {
    queue->capture = recorded.capture;
    queue->tips = recorded.tips;
    capture.members.push_back(queue);
    return cudaSuccess;
  }
  if (queue->capture != recorded.capture) {
    invalidate(*queue->capture, cudaErrorStreamCaptureMerge);
    return invalidate(capture, cudaErrorStreamCaptureMerge);
  }
  queue->tips.insert(queue->tips.end(), recorded.tips.begin(), recorded.tips.end());
  return cudaSuccess;
}

cudaError_t wait_for_event(cudaEvent_t event, bool only_ask) {
  if (event == nullptr) return cudaErrorInvalidResourceHandle;
  const Recorded recorded = event->recorded;
  if (recorded.capture != nullptr) {
    const std::scoped_lock lock(state().mutex);
    return invalidate(*recorded.capture, cudaErrorCapturedEvent);
  }
  if (only_ask) {
    if (const cudaError_t forbidden = forbid_while_capturing()) return forbidden;
    return ask_for(recorded.mark) ? cudaSuccess : cudaErrorNotReady;
  }
  run_until(recorded.mark);
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t cudaStreamCreate(cudaStream_t* stream) { return create_stream(stream, cudaStreamDefault, 0); }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) { return create_stream(stream, flags, 0); }
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  return create_stream(stream, flags, priority);
}
cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  return call([&] {
    *priority = stream == nullptr ? 0 : stream->priority;
    return cudaSuccess;
  });
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return call([&] {
    *least = 0;
    *greatest = -5;
    return cudaSuccess;
  });
}
// Work that is queued on the stream still runs.
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return call([&] {
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    {
      const std::scoped_lock lock(state().mutex);
      if (stream->queue->capture != nullptr) invalidate(*stream->queue->capture, cudaErrorStreamCaptureInvalidated);
    }
    delete stream;
    return cudaSuccess;
  });
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return call([&] { return wait_for_stream(stream, false); });
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return call([&] { return wait_for_stream(stream, true); });
}
cudaError_t cudaDeviceSynchronize() {
  return call([&] {
    if (const cudaError_t forbidden = forbid_while_capturing()) return forbidden;
    run_all();
    return cudaSuccess;
  });
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* context) {
  return call([&] { return queue(stream, {Operation::Kind::host, [=] { function(context); }}); });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return call([&] {
    if ((flags & cudaEventInterprocess) != 0) return cudaErrorNotSupported;
    *event = new CUevent_st{{}, (flags & cudaEventDisableTiming) == 0};
    return cudaSuccess;
  });
}
cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return call([&] {
    delete event;
    return event == nullptr ? cudaErrorInvalidResourceHandle : cudaSuccess;
  });
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return call([&] { return record(event, stream); });
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  return call([&] { return flags == cudaEventRecordDefault ? record(event, stream) : cudaErrorNotSupported; });
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  return call([&] { return flags == cudaEventWaitDefault ? wait(stream, event) : cudaErrorNotSupported; });
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return call([&] { return wait_for_event(event, false); });
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  return call([&] { return wait_for_event(event, true); });
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  return call([&] {
    const auto fits = [](cudaEvent_t event) {
      return event != nullptr && event->timing && event->recorded.mark.queue != nullptr;
    };
    if (!fits(begin) || !fits(end)) return cudaErrorInvalidResourceHandle;
    if (!is_done(begin->recorded.mark) || !is_done(end->recorded.mark)) return cudaErrorNotReady;
    *milliseconds = std::chrono::duration<float, std::milli>(*end->recorded.time - *begin->recorded.time).count();
    return cudaSuccess;
  });
}
}
