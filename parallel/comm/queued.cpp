// Queues collectives on streams.
#include "parallel/comm/queued.h"

#include <sched.h>

#include <exception>

#include "core/base/error.h"
#include "core/base/format.h"

namespace trainctl {

void QueuedCommunicator::all_reduce(View data, Reduction reduction, Stream& stream) {
  submit({.kind = CallKind::all_reduce, .reduction = reduction, .data = data}, stream);
}

void QueuedCommunicator::reduce_scatter(View data, Reduction reduction, Stream& stream) {
  require(data.count % size() == 0, "reduce_scatter needs size() equal parts");
  submit({.kind = CallKind::reduce_scatter, .reduction = reduction, .data = data}, stream);
}

void QueuedCommunicator::all_gather(View data, Stream& stream) {
  require(data.count % size() == 0, "all_gather needs size() equal parts");
  submit({.kind = CallKind::all_gather, .data = data}, stream);
}

void QueuedCommunicator::all_to_all(View send, View receive, Stream& stream) {
  require(send.count % size() == 0 && send.count == receive.count && send.dtype == receive.dtype,
          "all_to_all needs size() equal parts on both sides");
  submit({.kind = CallKind::all_to_all, .data = send, .result = receive}, stream);
}

void QueuedCommunicator::broadcast(View data, int root, Stream& stream) {
  require(root >= 0 && root < size(), "broadcast from a rank that does not exist");
  submit({.kind = CallKind::broadcast, .peer = root, .data = data}, stream);
}

void QueuedCommunicator::send(View data, int peer, Stream& stream) {
  require(peer >= 0 && peer < size() && peer != rank(), "send to a rank that does not exist, or to oneself");
  submit({.kind = CallKind::send, .peer = peer, .data = data}, stream);
}

void QueuedCommunicator::receive(View data, int peer, Stream& stream) {
  require(peer >= 0 && peer < size() && peer != rank(), "receive from a rank that does not exist, or from oneself");
  submit({.kind = CallKind::receive, .peer = peer, .data = data}, stream);
}

void QueuedCommunicator::barrier(Stream& stream) { submit({.kind = CallKind::barrier}, stream); }

void QueuedCommunicator::submit(const Call& call, Stream& stream) {
  Task& task = ring_[next_ % ring_.size()];
  while (task.queued.load(std::memory_order_acquire) && !attendance_->has_ended()) sched_yield();
  if (attendance_->has_ended()) {
    // The stream may have dropped tasks after the failure, so the ring can no longer be used.
    stream.enqueue({[](void* context) { static_cast<const QueuedCommunicator*>(context)->refuse(); }, this});
    return;
  }
  ++next_;
  task.owner = this;
  task.call = call;
  task.call.background = record_.is_background();
  task.entry = record_.entry_of(call);
  task.queued.store(true, std::memory_order_release);
  stream.enqueue({[](void* context) {
                    auto* task = static_cast<Task*>(context);
                    const Call call = task->call;
                    const FlightEntry entry = task->entry;
                    QueuedCommunicator* owner = task->owner;
                    task->queued.store(false, std::memory_order_release);
                    owner->execute(call, entry);
                  },
                  &task});
}

void QueuedCommunicator::execute(const Call& call, const FlightEntry& entry) {
  if (attendance_->has_ended()) refuse();
  const FlightScope recorded(record_.line(), entry);
  try {
    run(call);
  } catch (const std::exception& error) {
    attendance_->end(error.what());
    throw;
  }
}

void QueuedCommunicator::refuse() const {
  throw Error(ErrorKind::peer, format("the communicator has failed: {}", attendance_->reason()));
}

}  // namespace trainctl
