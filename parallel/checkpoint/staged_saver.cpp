// Copies snapshots on the training thread and writes them on another thread.
#include "parallel/checkpoint/staged_saver.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "core/base/clock.h"
#include "core/base/failure.h"
#include "core/base/format.h"
#include "core/base/log.h"

namespace trainctl {
namespace {

// A longer wait than this is logged.
constexpr std::chrono::milliseconds patience{100};

// Whether a message is due: the first one is, and later ones are a minute after the last.
bool is_due(double& next) {
  constexpr double seconds_between = 60;
  if (seconds_now() < next) return false;
  next = seconds_now() + seconds_between;
  return true;
}

// Returns the tensors of the engine that the rank writes according to the plan.
std::vector<NamedTensor> written_tensors(const ShardPlan& plan, int rank, const std::vector<NamedTensor>& held) {
  const auto held_by_name = by_name(held);
  std::vector<NamedTensor> written;
  for (const NamedTensor& shard : plan.shards_of(rank)) written.push_back(*held_by_name.at(shard.name));
  return written;
}

// Makes the calling thread a batch thread: when it wakes up, it does not interrupt a thread that computes. If the
// system refuses, the thread is scheduled as before. The thread keeps its priority: with a lower one, ranks that wait
// actively for a save would take the core from the thread that saves.
void work_in_background() {
  const sched_param none{};
  sched_setscheduler(0, SCHED_BATCH, &none);  // 0: the calling thread
}

}  // namespace

StagedSaver::StagedSaver(StepEngine& engine, const SnapshotPlan& plan, const SnapshotOutlet& outlet, bool background,
                         Communicator& world, Stream& stream)
    : engine_(engine),
      world_(world),
      logs_(outlet.store != nullptr),
      kind_(outlet.is_memory ? "copy in memory" : "checkpoint"),
      key_(outlet.is_memory ? "checkpoint.memory_every" : "checkpoint.every"),
      weights_(written_tensors(plan.weights, world.rank(), engine.weights())) {
  if (!outlet.weights_only) state_ = written_tensors(plan.state, world.rank(), engine.state());
  if (!background) {
    saver_ = std::make_unique<SnapshotSaver>(plan, outlet, world, stream);
    return;
  }
  own_ranks_ = world.split(0, world.rank());
  own_ranks_->set_background();
  if (FlightRecord* flight = world.attendance().flight())
    line_ = flight->line(FlightThread::saving, outlet.is_memory ? "copies" : "checkpoints");
  SnapshotOutlet own = outlet;
  if (outlet.is_memory) own.gives_up = &gives_up_;
  saver_ = std::make_unique<SnapshotSaver>(plan, own, *own_ranks_, own_stream_);
  for (Copy& copy : copies_) copy = make_copy();
  thread_ = std::thread([this] { write_staged(); });
}

StagedSaver::~StagedSaver() {
  if (!thread_.joinable()) return;
  gives_up_ = true;
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

StagedSaver::Copy StagedSaver::make_copy() const {
  std::int64_t bytes = 0;
  for (const auto* tensors : {&weights_, &state_}) {
    for (const NamedTensor& tensor : *tensors) bytes += tensor.view.bytes();
  }
  Copy copy{.memory = engine_.allocate_host(bytes)};
  copy.snapshot.weights = weights_;
  copy.snapshot.state = state_;
  std::byte* next = copy.memory.get();
  if (bytes > 0) std::memset(next, 0, static_cast<std::size_t>(bytes));  // maps the pages now, not during stage()
  for (auto* tensors : {&copy.snapshot.weights, &copy.snapshot.state}) {
    for (NamedTensor& tensor : *tensors) {
      tensor.view.data = next;
      next += tensor.view.bytes();
    }
  }
  return copy;
}

void StagedSaver::stage(Snapshot snapshot) {
  if (thread_.joinable()) return stage_copy(std::move(snapshot));
  const double begin = seconds_now();
  if (!weights_.empty() || !state_.empty()) engine_.download();
  snapshot.weights = weights_;
  snapshot.state = state_;
  EndedSave ended = save(snapshot);
  ended.seconds = ended.stall_seconds = stage_seconds_ = seconds_now() - begin;
  ended_.push_back(std::move(ended));
}

void StagedSaver::stage_if_free(Snapshot snapshot) {
  const auto is_next_free = [this] {
    const std::lock_guard lock(mutex_);
    return is_free(copies_[static_cast<std::size_t>(staged_ % copies)]);
  };
  const bool leaves_out = thread_.joinable() && !world_.true_on_all(is_next_free());
  if (!leaves_out) {
    stage(std::move(snapshot));
  } else if (logs_ && !left_out_) {
    log::info(
        format("the {} of step {} is left out, since others are still being written: {} is shorter than the time "
               "that writing takes",
               kind_, snapshot.step, key_));
  }
  left_out_ = leaves_out;
}

// Saves a snapshot. An error of writing, which all ranks have, is returned; other errors are thrown.
EndedSave StagedSaver::save(const Snapshot& snapshot) {
  EndedSave ended{.step = snapshot.step, .is_best = snapshot.best && snapshot.best->step == snapshot.step};
  try {
    ended.path = saver_->save(snapshot);
  } catch (const CollectiveError& error) {
    if (error.kind() != ErrorKind::resource) throw Error(error.kind(), error.location(), without_location(error));
    ended.failure = error;
  }
  return ended;
}

void StagedSaver::stage_copy(Snapshot snapshot) {
  Copy& copy = copies_[static_cast<std::size_t>(staged_++ % copies)];
  const double begin = seconds_now();
  wait_until_free(copy);
  const double begin_of_copy = seconds_now();
  engine_.copy(weights_, copy.memory.get());
  std::int64_t bytes = 0;
  for (const NamedTensor& tensor : weights_) bytes += tensor.view.bytes();
  engine_.copy(state_, copy.memory.get() + bytes);
  snapshot.weights = std::move(copy.snapshot.weights);
  snapshot.state = std::move(copy.snapshot.state);
  copy.snapshot = std::move(snapshot);
  copy.begin = begin;
  copy.stall = seconds_now() - begin;
  stage_seconds_ = seconds_now() - begin_of_copy;
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return;  // the snapshot is dropped, since the run ends
    if (logs_ && !queue_.empty() && seconds_now() - queue_.front()->begin > 1e-3 * patience.count() &&
        is_due(next_note_)) {
      log::info(format("the {} of step {} waits: that of step {} is still being written", kind_, copy.snapshot.step,
                       queue_.front()->snapshot.step));
    }
    queue_.push_back(&copy);
  }
  changed_.notify_all();
}

void StagedSaver::wait_until_free(const Copy& copy) {
  std::unique_lock lock(mutex_);
  const auto free = [&] { return is_free(copy); };
  if (changed_.wait_for(lock, patience, free)) return;
  if (logs_ && is_due(next_warning_)) {
    log::warning(
        format("training waits until the {} of step {} is written: {} is shorter than the time that writing takes",
               kind_, copy.snapshot.step, key_));
  }
  changed_.wait(lock, free);
}

bool StagedSaver::is_free(const Copy& copy) const {
  return std::find(queue_.begin(), queue_.end(), &copy) == queue_.end();
}

std::optional<EndedSave> StagedSaver::ended() {
  const std::lock_guard lock(mutex_);
  if (ended_.empty()) {
    if (failure_) std::rethrow_exception(failure_);
    return std::nullopt;
  }
  EndedSave ended = std::move(ended_.front());
  ended_.pop_front();
  return ended;
}

void StagedSaver::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return queue_.empty(); });
  if (failure_) std::rethrow_exception(failure_);
}

bool StagedSaver::is_idle() const {
  const std::lock_guard lock(mutex_);
  return queue_.empty();
}

// The thread's function. A failure ends the run: nothing is written after it.
void StagedSaver::write_staged() {
  work_in_background();
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ends_ || !queue_.empty(); });
    if (queue_.empty()) return;
    Copy& copy = *queue_.front();
    lock.unlock();
    EndedSave ended;
    std::exception_ptr failure;
    try {
      const FlightScope recorded(line_, {.activity = Activity::saving, .step = copy.snapshot.step, .text = kind_});
      ended = save(copy.snapshot);
      ended.seconds = seconds_now() - copy.begin;
      ended.stall_seconds = copy.stall;
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    queue_.pop_front();
    if (failure) {
      failure_ = failure;
      queue_.clear();
    } else {
      ended_.push_back(std::move(ended));
    }
    changed_.notify_all();
  }
}

}  // namespace trainctl
