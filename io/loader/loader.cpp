// Workers take tickets, (batch, chunk) in order, and wait until the batch's buffer was given back; the caller waits
// until all chunks of its batch are there. Atomics only: no lock, and nothing is allocated once every buffer was used.
#include "io/loader/loader.h"

#include <pthread.h>
#include <signal.h>

#include <chrono>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "io/loader/buffer.h"
#include "io/loader/plan.h"

namespace trainctl {
namespace {

class Loader final : public BatchSource {
 public:
  Loader(std::shared_ptr<const DataPart> part, const LoaderOptions& options)
      : part_(std::move(part)),
        options_(options),
        plan_(part_->size(), options.batch_size, options.start),
        input_bytes_(checked_multiply(part_->sample_shape().count(), size_of(part_->input_dtype()))),
        target_values_(part_->target_shape().count()),
        target_bytes_(checked_multiply(target_values_, size_of(part_->target_dtype()))),
        position_(plan_.start()) {
    const std::int64_t rows = (plan_.batch_size() + options.share.ranks - 1) / options.share.ranks;
    chunks_ = static_cast<std::uint32_t>(std::clamp<std::int64_t>(options.workers, 1, std::max<std::int64_t>(1, rows)));
    const int buffers = options.workers == 0 ? 1 : options.prefetch + 1;
    for (int i = 0; i < buffers; ++i) {
      buffers_.push_back(std::make_unique<BatchBuffer>(rows, input_bytes_, target_bytes_, chunks_));
    }
    start_workers();
  }

  ~Loader() override { stop_workers(); }

  const Batch& next() override {
    if (used_ >= 0) give_back(*buffers_[static_cast<std::size_t>(used_ % buffer_count())]);
    ++used_;
    BatchBuffer& buffer = *buffers_[static_cast<std::size_t>(used_ % buffer_count())];
    batch_.waited_seconds = 0;
    if (buffer.pending.load(std::memory_order_acquire) != 0) wait_for(buffer);
    for (const std::exception_ptr& error : buffer.errors) {
      if (error) std::rethrow_exception(error);
    }
    describe(buffer);
    return batch_;
  }

  DataPosition position() const override { return position_; }
  std::int64_t samples_per_epoch() const override { return plan_.samples(); }
  std::int64_t batch_size() const override { return plan_.batch_size(); }
  std::int64_t last_batch_size() const override { return plan_.last_batch_size(); }

 private:
  std::int64_t buffer_count() const { return static_cast<std::int64_t>(buffers_.size()); }

  void start_workers() {
    // Signals are the main thread's: the workers inherit a mask that blocks them all.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      for (int i = 0; i < options_.workers; ++i) workers_.emplace_back([this] { work(); });
    } catch (...) {
      stop_workers();
      pthread_sigmask(SIG_SETMASK, &before, nullptr);
      throw;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  void stop_workers() {
    stopping_.store(true);
    for (const auto& buffer : buffers_) {
      buffer->turn.fetch_add(1u << 31);  // no turn that anyone waits for; wakes those that wait
      buffer->turn.notify_all();
    }
    for (std::thread& worker : workers_) worker.join();
  }

  void work() {
    DataPart::Scratch scratch;
    while (!stopping_.load(std::memory_order_relaxed)) {
      const std::int64_t ticket = next_ticket_.fetch_add(1, std::memory_order_relaxed);
      const std::int64_t batch = ticket / chunks_;
      BatchBuffer& buffer = *buffers_[static_cast<std::size_t>(batch % buffer_count())];
      const auto turn = static_cast<std::uint32_t>(batch / buffer_count());
      for (std::uint32_t now; (now = buffer.turn.load(std::memory_order_acquire)) != turn;) {
        if (stopping_.load()) return;
        buffer.turn.wait(now);
      }
      fill_chunk(buffer, batch, static_cast<std::uint32_t>(ticket % chunks_), scratch);
      if (buffer.pending.fetch_sub(1, std::memory_order_acq_rel) == 1) buffer.pending.notify_one();
    }
  }

  // Fills the rows of one chunk of this rank's share.
  void fill_chunk(BatchBuffer& buffer, std::int64_t batch, std::uint32_t chunk, DataPart::Scratch& scratch) noexcept {
    try {
      const BatchPlan::Entry entry = plan_.at(batch);
      const Share share = share_of(entry.count, options_.share);
      const EpochOrder order(plan_.samples(), entry.position.seed, entry.position.epoch,
                             options_.training && options_.shuffle);
      const std::int64_t end = share.count * (chunk + 1) / chunks_;
      for (std::int64_t row = share.count * chunk / chunks_; row < end && !stopping_.load(std::memory_order_relaxed);
           ++row) {
        const std::int64_t number = part_->subset()[order[entry.position.offset + share.first + row]];
        buffer.samples[static_cast<std::size_t>(row)] = number;
        part_->read(number, options_.training, entry.position.epoch, scratch,
                    {buffer.inputs.get() + row * input_bytes_, buffer.targets.get() + row * target_bytes_,
                     &buffer.weights[static_cast<std::size_t>(row)]});
      }
    } catch (...) {
      buffer.errors[chunk] = std::current_exception();
    }
  }

  void wait_for(BatchBuffer& buffer) {
    const auto start = std::chrono::steady_clock::now();
    if (options_.workers == 0) {
      fill_chunk(buffer, used_, 0, scratch_);
      buffer.pending.store(0, std::memory_order_relaxed);
    }
    for (std::uint32_t pending; (pending = buffer.pending.load(std::memory_order_acquire)) != 0;)
      buffer.pending.wait(pending);
    batch_.waited_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

  void give_back(BatchBuffer& buffer) {
    buffer.pending.store(chunks_, std::memory_order_relaxed);
    buffer.turn.fetch_add(1, std::memory_order_release);
    buffer.turn.notify_all();
  }

  void describe(BatchBuffer& buffer) {
    const BatchPlan::Entry entry = plan_.at(used_);
    const std::int64_t count = share_of(entry.count, options_.share).count;
    batch_.inputs = {buffer.inputs.get(), part_->input_dtype(), count * part_->sample_shape().count()};
    batch_.targets = {buffer.targets.get(), part_->target_dtype(), count * target_values_};
    batch_.weights = {buffer.weights.data(), DType::float32, count};
    batch_.samples = {buffer.samples.data(), DType::int64, count};
    batch_.count = count;
    batch_.global_count = entry.count;
    batch_.position = entry.position;
    batch_.last_of_epoch = entry.last_of_epoch;
    position_ = plan_.behind(entry);
  }

  std::shared_ptr<const DataPart> part_;
  LoaderOptions options_;
  BatchPlan plan_;
  std::int64_t input_bytes_, target_values_, target_bytes_;
  std::uint32_t chunks_ = 1;
  std::vector<std::unique_ptr<BatchBuffer>> buffers_;
  std::atomic<std::int64_t> next_ticket_{0};
  std::atomic<bool> stopping_{false};
  std::vector<std::thread> workers_;

  // The caller's.
  DataPart::Scratch scratch_;  // without workers
  std::int64_t used_ = -1;     // number of the batch that next() returned last
  DataPosition position_;
  Batch batch_;
};

}  // namespace

std::unique_ptr<BatchSource> make_loader(std::shared_ptr<const DataPart> part, const LoaderOptions& options) {
  if (part->size() == 0) throw Error(ErrorKind::data, "there are no samples");
  require(options.batch_size > 0 && options.workers >= 0 && options.prefetch >= 1,
          "batch size, workers and prefetch of a loader");
  return std::make_unique<Loader>(std::move(part), options);
}

}  // namespace trainctl
