// Computes the samples of every batch from (start, samples, batch size), the same on all ranks and workers.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/exec/interfaces/batch_source.h"

namespace trainctl {

class BatchPlan {
 public:
  // `start` may be anywhere in an epoch; the first batch begins there.
  BatchPlan(std::int64_t samples, std::int64_t batch_size, const DataPosition& start)
      : samples_(samples), batch_(std::min(batch_size, samples)), start_(start) {
    if (start_.offset >= samples_) start_ = {start_.seed, start_.epoch + 1, 0};
    first_epoch_ = batches(samples_ - start_.offset);
  }

  struct Entry {
    DataPosition position;   // position of the batch's first sample
    std::int64_t count = 0;  // number of the batch's samples on all ranks
    bool last_of_epoch = false;
  };
  // Batch k, counted from the start.
  Entry at(std::int64_t k) const {
    DataPosition position = start_;
    if (k < first_epoch_) {
      position.offset += k * batch_;
    } else {
      const std::int64_t per_epoch = batches(samples_);
      position.epoch += 1 + (k - first_epoch_) / per_epoch;
      position.offset = (k - first_epoch_) % per_epoch * batch_;
    }
    const std::int64_t count = std::min(batch_, samples_ - position.offset);
    return {position, count, position.offset + count == samples_};
  }
  // The position of the first sample after a batch.
  DataPosition after(const Entry& entry) const {
    const DataPosition& first = entry.position;
    if (entry.last_of_epoch) return {first.seed, first.epoch + 1, 0};
    return {first.seed, first.epoch, first.offset + entry.count};
  }
  const DataPosition& start() const { return start_; }
  std::int64_t samples() const { return samples_; }
  std::int64_t batch_size() const { return batch_; }
  std::int64_t last_batch_size() const { return samples_ % batch_ == 0 ? batch_ : samples_ % batch_; }

 private:
  std::int64_t batches(std::int64_t samples) const { return (samples + batch_ - 1) / batch_; }

  std::int64_t samples_, batch_;
  DataPosition start_;
  std::int64_t first_epoch_ = 0;  // number of batches from `start` to the end of its epoch
};

}  // namespace trainctl
