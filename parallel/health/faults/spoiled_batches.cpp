// Replaces the weights of the samples of a batch by NaN.
#include "parallel/health/faults/spoiled_batches.h"

#include <limits>
#include <utility>

namespace trainctl {

const Batch& SpoiledBatches::next() {
  const Batch& batch = source_.next();
  if (!std::exchange(spoils_, false)) return batch;
  batch_ = batch;
  weights_.assign(static_cast<std::size_t>(batch.weights.count), std::numeric_limits<float>::quiet_NaN());
  batch_.weights.data = weights_.data();
  return batch_;
}

}  // namespace trainctl
