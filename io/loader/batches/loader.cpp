// The loader. Each worker takes the next chunk of a batch and waits until the batch's buffer is given back; the caller
// of next() waits until all chunks of its batch are filled. Workers that are not needed yet sleep. Without workers, one
// thread with one buffer fills each batch when it is requested, so that a read that hangs does not block the caller.
// Threads synchronize by atomics without locks, and no memory is allocated once every buffer has been used.
#include "io/loader/batches/loader.h"

#include <chrono>
#include <limits>
#include <optional>
#include <thread>
#include <vector>

#include "core/base/blocked_signals.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/log.h"
#include "core/tensor/sample_numbers.h"
#include "io/loader/batches/batch_plan.h"
#include "io/loader/batches/buffer.h"
#include "io/loader/batches/slow_read.h"
#include "io/loader/batches/worker_tuning.h"
#include "io/loader/splits/split.h"

namespace trainctl {
namespace {

using Clock = std::chrono::steady_clock;

// The round of a buffer whose first batch was not requested yet (without workers).
constexpr std::uint32_t before_first_round = std::numeric_limits<std::uint32_t>::max();

// Limits a wait to one second after a request to stop.
class GracePeriod {
 public:
  explicit GracePeriod(const std::function<bool()>& stop_requested) : stop_requested_(stop_requested) {}

  // Whether a stop was requested more than a second ago.
  bool is_over() {
    if (!stop_requested_ || !stop_requested_()) return false;
    const Clock::time_point now = Clock::now();
    request_ = std::min(request_, now);
    return now - request_ > std::chrono::seconds(1);
  }

 private:
  const std::function<bool()>& stop_requested_;
  Clock::time_point request_ = Clock::time_point::max();
};

// Shared with its workers: a worker whose read never returns may outlive the user.
class Loader : public std::enable_shared_from_this<Loader> {
 public:
  Loader(std::shared_ptr<const DataSplit> split, const LoaderOptions& options)
      : split_(std::move(split)),
        options_(options),
        plan_(split_->size(), options.batch_size, options.start),
        slow_read_(*split_, std::max(1, options.workers), options.training, options.flight),
        position_(plan_.start()) {
    for (std::size_t i = 0; i < split_->inputs(); ++i) input_types_.push_back(split_->input_type(i));
    for (std::size_t i = 0; i < split_->targets(); ++i) {
      target_types_.push_back(split_->target_type(i, options.targets[i]));
    }
    batch_.inputs.resize(input_types_.size());
    batch_.targets.resize(target_types_.size());
    buffer_plan_ = plan_buffers(input_types_, target_types_, split_->weight_count(), plan_.batch_size(), options.rank,
                                options.workers > 0, options.prefetch);
    chunks_ = static_cast<std::uint32_t>(
        std::clamp<std::int64_t>(options.workers, 1, std::max<std::int64_t>(1, buffer_plan_.rows)));
    if (options.tuned && options.workers > 1) tuning_.emplace(options.workers, buffer_plan_.buffers);
    awake_ = static_cast<std::uint32_t>(tuning_ ? tuning_->workers() : std::max(1, options.workers));
    for (int i = 0; i < buffer_plan_.buffers; ++i) {
      buffers_.push_back(std::make_unique<BatchBuffer>(buffer_plan_, chunks_, options.allocate));
    }
    if (options.workers == 0) buffers_.front()->round = before_first_round;
  }
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  const Batch& next() {
    if (abandoned_) {
      ++used_;
      return incomplete();
    }
    if (used_ >= 0 || options_.workers == 0) {
      give_back(*buffers_[static_cast<std::size_t>(std::max<std::int64_t>(used_, 0) % buffer_count())]);
    }
    ++used_;
    BatchBuffer& buffer = *buffers_[static_cast<std::size_t>(used_ % buffer_count())];
    batch_.waited_seconds = 0;
    if (buffer.pending.load(std::memory_order_acquire) != 0 && !wait_for(buffer)) return incomplete();
    for (const std::exception_ptr& error : buffer.errors) {
      if (error) std::rethrow_exception(error);
    }
    describe(buffer);
    if (tuning_ && tuning_->add(batch_.waited_seconds, seconds_now())) {
      log::debug(format("the loader has {} workers from now on", tuning_->workers()));
      wake_workers(static_cast<std::uint32_t>(tuning_->workers()));
    }
    return batch_;
  }

  const DataPosition& position() const { return position_; }
  const BatchPlan& plan() const { return plan_; }
  std::int64_t bytes() const {
    std::int64_t sum = 0;
    for (const auto& buffer : buffers_) sum += buffer->bytes();
    return sum;
  }

  void start_workers() {
    const BlockedSignals blocked;
    try {
      for (int i = 0; i < std::max(1, options_.workers); ++i) {
        workers_.emplace_back([self = shared_from_this(), i] {
          self->work(static_cast<std::uint32_t>(i));
          self->working_.fetch_sub(1);
          wake_waiter(self->working_);
        });
        working_.fetch_add(1);
      }
    } catch (...) {
      stop_workers();
      throw;
    }
  }

  void stop_workers() {
    stopping_.store(true);
    wake_workers(std::numeric_limits<std::uint32_t>::max());
    for (const auto& buffer : buffers_) {
      buffer->round.fetch_add(1u << 31);  // a round that no worker waits for: all waiting workers wake up
      buffer->round.notify_all();
    }
    GracePeriod grace(options_.stop_requested);
    for (std::uint32_t working; !abandoned_ && (working = working_.load()) != 0;) {
      wait_while(working_, working, 100);
      abandoned_ = grace.is_over();
    }
    for (std::thread& worker : workers_) abandoned_ ? worker.detach() : worker.join();
    workers_.clear();
  }

 private:
  std::int64_t buffer_count() const { return static_cast<std::int64_t>(buffers_.size()); }

  void wake_workers(std::uint32_t count) {
    awake_.store(count);
    awake_.notify_all();
  }

  void work(std::uint32_t worker) {
    for (std::uint32_t awake; (awake = awake_.load()) <= worker;) awake_.wait(awake);
    DataSplit::Scratch scratch = split_->scratch(options_.targets);
    DataSplit::Row row;
    row.inputs.resize(input_types_.size());
    row.targets.resize(target_types_.size());
    while (!stopping_.load(std::memory_order_relaxed)) {
      const std::int64_t ticket = next_ticket_.fetch_add(1, std::memory_order_relaxed);
      const std::int64_t batch = ticket / chunks_;
      BatchBuffer& buffer = *buffers_[static_cast<std::size_t>(batch % buffer_count())];
      const auto round = static_cast<std::uint32_t>(batch / buffer_count());
      for (std::uint32_t now; (now = buffer.round.load(std::memory_order_acquire)) != round;) {
        if (stopping_.load()) return;
        buffer.round.wait(now);
      }
      fill_chunk(buffer, batch, static_cast<std::uint32_t>(ticket % chunks_), worker, scratch, row);
      slow_read_.reads(worker, -1);
      if (buffer.pending.fetch_sub(1, std::memory_order_acq_rel) == 1) wake_waiter(buffer.pending);
    }
  }

  // Fills the rows of one chunk of this rank's share of a batch.
  void fill_chunk(BatchBuffer& buffer, std::int64_t batch, std::uint32_t chunk, std::uint32_t worker,
                  DataSplit::Scratch& scratch, DataSplit::Row& row) noexcept {
    try {
      const BatchPlan::Entry entry = plan_.at(batch);
      const Share share = share_of(entry.count, options_.rank);
      const EpochOrder order(plan_.samples(), entry.position.seed, entry.position.epoch,
                             options_.training && options_.shuffle);
      const std::int64_t end = share.count * (chunk + 1) / chunks_;
      slow_read_.begins(worker, batch);
      for (std::int64_t i = share.count * chunk / chunks_; i < end && !stopping_.load(std::memory_order_relaxed); ++i) {
        const std::int64_t position = order[entry.position.offset + share.at(i)];
        const std::int64_t number = split_->subset()[position];
        slow_read_.reads(worker, position);
        point_at(buffer, i, row);
        const bool read = split_->read(number, options_.training, entry.position.epoch, scratch, row, options_.targets);
        buffer.samples[static_cast<std::size_t>(i)] = read ? number : skipped_sample(number);
      }
    } catch (...) {
      buffer.errors[chunk] = std::current_exception();
    }
  }

  void point_at(BatchBuffer& buffer, std::int64_t number, DataSplit::Row& row) const {
    for (std::size_t i = 0; i < buffer_plan_.inputs.size(); ++i) {
      row.inputs[i] = buffer.inputs[i].get() + number * buffer_plan_.inputs[i];
    }
    for (std::size_t i = 0; i < buffer_plan_.targets.size(); ++i) {
      row.targets[i] = buffer.targets[i].get() + number * buffer_plan_.targets[i];
    }
    row.weights = buffer.weights.data() + number * buffer_plan_.weights;
  }

  // Waits for a batch. Returns false if a stop was requested and the data does not arrive.
  bool wait_for(BatchBuffer& buffer) {
    const Clock::time_point start = Clock::now();
    GracePeriod grace(options_.stop_requested);
    for (std::uint32_t pending; (pending = buffer.pending.load(std::memory_order_acquire)) != 0;) {
      wait_while(buffer.pending, pending, 100);
      abandoned_ = grace.is_over();
      if (abandoned_) return false;
      if (Clock::now() - start > std::chrono::milliseconds(100)) slow_read_.waits(used_);
    }
    slow_read_.ends();
    batch_.waited_seconds = std::chrono::duration<double>(Clock::now() - start).count();
    return true;
  }

  // Returns an incomplete batch in memory that no worker writes to: zeros, with NaN as weights.
  const Batch& incomplete() {
    const DataPosition before = position_;
    if (!incomplete_buffer_) incomplete_buffer_ = std::make_unique<BatchBuffer>(buffer_plan_, 1, nullptr);
    for (const auto* list : {&incomplete_buffer_->inputs, &incomplete_buffer_->targets}) {
      for (const Memory& memory : *list) std::fill_n(memory.get(), memory.bytes, std::byte{0});
    }
    std::fill(incomplete_buffer_->weights.begin(), incomplete_buffer_->weights.end(),
              std::numeric_limits<float>::quiet_NaN());
    describe(*incomplete_buffer_);
    batch_.host_memory = false;
    batch_.complete = false;
    position_ = before;
    return batch_;
  }

  void give_back(BatchBuffer& buffer) {
    buffer.pending.store(chunks_, std::memory_order_relaxed);
    buffer.round.fetch_add(1, std::memory_order_release);
    buffer.round.notify_all();
  }

  void describe(BatchBuffer& buffer) {
    const BatchPlan::Entry entry = plan_.at(used_);
    const std::int64_t count = share_of(entry.count, options_.rank).count;
    const auto view = [&](const std::vector<Memory>& memory, const std::vector<TensorType>& types, std::size_t i) {
      return View{memory[i].get(), types[i].dtype, count * types[i].shape.count()};
    };
    for (std::size_t i = 0; i < input_types_.size(); ++i) batch_.inputs[i] = view(buffer.inputs, input_types_, i);
    for (std::size_t i = 0; i < target_types_.size(); ++i) batch_.targets[i] = view(buffer.targets, target_types_, i);
    batch_.weights = {buffer.weights.data(), DType::float32, count * buffer_plan_.weights};
    batch_.samples = {buffer.samples.data(), DType::int64, count};
    batch_.host_memory = options_.allocate != nullptr;
    batch_.count = count;
    batch_.global_count = entry.count;
    batch_.position = entry.position;
    batch_.last_of_epoch = entry.last_of_epoch;
    position_ = plan_.after(entry);
  }

  std::shared_ptr<const DataSplit> split_;
  LoaderOptions options_;
  BatchPlan plan_;
  std::vector<TensorType> input_types_, target_types_;  // types of one sample
  BufferPlan buffer_plan_;
  SlowRead slow_read_;
  std::uint32_t chunks_ = 1;
  std::vector<std::unique_ptr<BatchBuffer>> buffers_;
  std::atomic<std::int64_t> next_ticket_{0};
  std::atomic<bool> stopping_{false};
  std::atomic<std::uint32_t> awake_{1};  // workers with a number below this do not sleep
  std::vector<std::thread> workers_;
  std::atomic<std::uint32_t> working_{0};  // number of workers that have not ended

  // The members below are used by the caller's thread only.
  std::int64_t used_ = -1;  // number of the batch that next() returned last
  DataPosition position_;
  Batch batch_;
  bool abandoned_ = false;
  std::unique_ptr<BatchBuffer> incomplete_buffer_;
  std::optional<WorkerTuning> tuning_;
};

class LoaderSource final : public BatchSource {
 public:
  explicit LoaderSource(std::shared_ptr<Loader> loader) : loader_(std::move(loader)) { loader_->start_workers(); }
  ~LoaderSource() override { loader_->stop_workers(); }
  LoaderSource(const LoaderSource&) = delete;
  LoaderSource& operator=(const LoaderSource&) = delete;

  const Batch& next() override { return loader_->next(); }
  DataPosition position() const override { return loader_->position(); }
  std::int64_t samples_per_epoch() const override { return loader_->plan().samples(); }
  std::int64_t batch_size() const override { return loader_->plan().batch_size(); }
  std::int64_t last_batch_size() const override { return loader_->plan().last_batch_size(); }
  std::int64_t batch_bytes() const override { return loader_->bytes(); }

 private:
  std::shared_ptr<Loader> loader_;
};

}  // namespace

std::unique_ptr<BatchSource> make_loader(std::shared_ptr<const DataSplit> split, const LoaderOptions& options) {
  if (split->size() == 0) throw Error(ErrorKind::data, "the data has no samples");
  require(options.batch_size > 0 && options.workers >= 0 && options.prefetch.or_else(1) >= 1,
          "the batch size, workers or prefetch of a loader are out of range");
  return std::make_unique<LoaderSource>(std::make_shared<Loader>(std::move(split), options));
}

}  // namespace trainctl
