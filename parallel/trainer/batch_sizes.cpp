// Batch arithmetic.
#include "parallel/trainer/batch_sizes.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/format.h"

namespace trainctl {
namespace {

// Every replica's part of a full batch is cut into micro-batches of one size.
void check_accumulation(const BatchSizes& sizes, int replicas) {
  for (int rank = 0; rank < replicas; ++rank) {
    const std::int64_t samples = share_of(sizes.training, replica(rank, replicas)).count;
    if (samples % sizes.gradient_accumulation == 0) continue;
    throw Error(ErrorKind::config,
                format("train.gradient_accumulation: {} does not divide the {} samples that rank {} has of each batch "
                       "of {}",
                       sizes.gradient_accumulation, samples, rank, sizes.training),
                "choose a batch size that is a multiple of ranks times gradient_accumulation");
  }
}

}  // namespace

BatchSizes batch_sizes(const TrainOptions& train, const StrategyOptions& strategy, const DataInfo& data, int ranks,
                       const DataPosition& start) {
  const std::int64_t batch = train.global_batch(ranks);
  BatchSizes sizes;
  sizes.training = std::min(batch, data.training_samples);
  sizes.training_last = data.training_samples % batch;
  sizes.training_resumed_last = std::max<std::int64_t>(data.training_samples - start.offset, 0) % batch;
  sizes.evaluation = std::min(batch, data.validation_samples);
  sizes.evaluation_last = data.validation_samples % batch;
  sizes.gradient_accumulation = static_cast<int>(train.gradient_accumulation);
  check_accumulation(sizes, mesh_of(strategy, ranks).data);
  return sizes;
}

BatchCut batch_cut(const BatchSizes& sizes, const MeshRank& rank) {
  return {sizes.training, sizes.gradient_accumulation, share_of(sizes.training, rank).count};
}

}  // namespace trainctl
