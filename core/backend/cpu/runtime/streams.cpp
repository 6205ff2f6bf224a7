// The CPU's streams and events.
#include "core/backend/cpu/runtime/streams.h"

#include <omp.h>

#include <utility>

#include "core/backend/cpu/runtime/processor.h"
#include "core/base/clock.h"

namespace trainctl::cpu {
namespace {

// A mark in a ThreadStream. A mark in an ImmediateStream needs no wait, since all tasks of that stream have already
// run.
class CpuEvent final : public Event {
 public:
  void record(Stream& stream) override {
    stream_ = &stream;
    marked_ = dynamic_cast<ThreadStream*>(&stream);
    count_ = marked_ != nullptr ? marked_->queued() : 0;
  }
  void wait(Stream& stream) override {
    if (marked_ == nullptr || marked_ == &stream) return;
    if (dynamic_cast<ThreadStream*>(&stream) == nullptr) return marked_->wait_until(count_);
    stream.enqueue({[](void* context) {
                      const auto* event = static_cast<CpuEvent*>(context);
                      event->marked_->wait_until(event->count_);
                    },
                    this});
  }

  void synchronize() override {
    if (marked_ != nullptr) return marked_->wait_until(count_);
    if (stream_ != nullptr) stream_->synchronize();
  }

 private:
  Stream* stream_ = nullptr;
  ThreadStream* marked_ = nullptr;
  std::uint64_t count_ = 0;
};

// Waits up to 50 microseconds for the condition before the caller sleeps: waking a thread takes longer than many tasks
// do.
template <class Condition>
void spin_until(Condition condition) {
  constexpr double seconds = 50e-6;
  const double start = seconds_now();
  while (!condition() && seconds_now() - start < seconds) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
}

}  // namespace

ThreadStream::ThreadStream() : ring_(64), thread_([this] { work(); }) {}

ThreadStream::~ThreadStream() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void ThreadStream::enqueue(HostTask task) {
  {
    const std::lock_guard lock(mutex_);
    if (queued_ - started_ == ring_.size()) {
      std::vector<HostTask> larger(2 * ring_.size());
      for (std::uint64_t i = started_; i < queued_; ++i) larger[i % larger.size()] = ring_[i % ring_.size()];
      ring_ = std::move(larger);
    }
    ring_[queued_++ % ring_.size()] = task;
  }
  changed_.notify_all();
}

void ThreadStream::synchronize() {
  spin_until([this] { return done_ == queued_; });
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return done_ == queued_; });
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

std::uint64_t ThreadStream::queued() {
  const std::lock_guard lock(mutex_);
  return queued_;
}

void ThreadStream::wait_until(std::uint64_t count) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this, count] { return done_ >= count; });
}

void ThreadStream::work() {
  flush_denormals();
  omp_set_num_threads(1);  // for the loops of this thread
  std::unique_lock lock(mutex_);
  for (;;) {
    if (started_ == queued_) {
      lock.unlock();
      spin_until([this] { return started_ < queued_; });
      lock.lock();
    }
    changed_.wait(lock, [this] { return stop_ || started_ < queued_; });
    if (started_ == queued_) return;
    const HostTask task = ring_[started_++ % ring_.size()];
    lock.unlock();
    std::exception_ptr error;
    try {
      task.run(task.context);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    if (error && !error_) error_ = error;
    ++done_;
    changed_.notify_all();
  }
}

std::unique_ptr<Event> make_event() { return std::make_unique<CpuEvent>(); }

}  // namespace trainctl::cpu
