// Computes the batch sizes that occur in a run, and how a batch is divided.
#pragma once

#include "core/exec/interfaces/batch_source.h"

namespace trainctl {

struct BatchCut;
struct BatchSizes;
struct LogicalShards;
struct MeshRank;
struct ModelOptions;
struct StrategyOptions;
struct TrainOptions;

// Returns the batch sizes that occur and the number of micro-batches of a share: train.gradient_accumulation or, in a
// pipeline, strategy.micro_batches. `start`: the position in the data where training begins. Throws Error{config} that
// suggests another number if the number does not divide a replica's share of a full batch.
BatchSizes batch_sizes(const ModelOptions& model, const TrainOptions& train, const StrategyOptions& strategy,
                       const DataInfo& data, int ranks, const DataPosition& start = {});

// Returns the logical shards of reproducible mode, if the strategy enables it: `shards` of a full batch, each divided
// further by train.gradient_accumulation. Throws Error{config} if their number does not divide a full batch, or is less
// than the number of replicas.
LogicalShards shards_of(const TrainOptions& train, const StrategyOptions& strategy, int ranks);

// Returns how a rank's share of a full batch is divided.
BatchCut batch_cut(const BatchSizes& sizes, const MeshRank& rank);

}  // namespace trainctl
