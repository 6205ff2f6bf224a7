// The batch sizes that occur in a run, and how a batch is cut.
#pragma once

#include "core/compile/memory_fit.h"
#include "core/exec/interfaces/batch_source.h"
#include "parallel/strategies/options.h"
#include "parallel/trainer/options.h"
#include "parallel/trainer/programs.h"

namespace trainctl {

// The batch sizes that occur; `start` is where training begins in the data. Throws Error{config} where
// gradient_accumulation does not divide a replica's share of a full batch.
BatchSizes batch_sizes(const TrainOptions& train, const StrategyOptions& strategy, const DataInfo& data, int ranks,
                       const DataPosition& start = {});

// How a rank's share of a full batch is cut.
BatchCut batch_cut(const BatchSizes& sizes, const MeshRank& rank);

}  // namespace trainctl
