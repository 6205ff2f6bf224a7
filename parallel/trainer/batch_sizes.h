// The batch sizes that occur in a run, and how a batch is cut.
#pragma once

#include "core/exec/interfaces/batch_source.h"

namespace trainctl {

struct BatchCut;
struct BatchSizes;
struct LogicalShards;
struct MeshRank;
struct StrategyOptions;
struct TrainOptions;

// The batch sizes that occur, and the micro-batches of a share: train.gradient_accumulation, in a pipeline
// strategy.micro_batches; `start` is where training begins in the data. Throws Error{config} with what would do where
// the number does not divide a replica's share of a full batch.
BatchSizes batch_sizes(const TrainOptions& train, const StrategyOptions& strategy, const DataInfo& data, int ranks,
                       const DataPosition& start = {});

// The logical shards of reproducible mode, where the strategy asks for it: `shards` of a full batch, each cut further
// by train.gradient_accumulation. Throws Error{config} where their number does not divide a full batch, or is less than
// that of replicas.
LogicalShards shards_of(const TrainOptions& train, const StrategyOptions& strategy, int ranks);

// How a rank's share of a full batch is cut.
BatchCut batch_cut(const BatchSizes& sizes, const MeshRank& rank);

}  // namespace trainctl
