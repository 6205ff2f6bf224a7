// The loader: worker threads fill batches ahead of the one in use. Batches come in order and are the same for any
// number of workers, batches ahead and ranks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "core/exec/interfaces/batch_source.h"
#include "core/spec/values.h"

namespace trainctl {

class DataSplit;

struct LoaderOptions {
  std::int64_t batch_size = 1;  // samples of all ranks
  BatchDivision rank;
  DataPosition start;
  bool training = true;      // with augmentation; otherwise the split is read in its order, again and again
  bool shuffle = true;       // in training only
  int workers = 1;           // threads; 0: one thread that reads a batch when next() asks for it, and none ahead
  bool tuned = false;        // begin with one of the workers, and add others while next() waits for data
  Auto<int> prefetch = {2};  // batches filled ahead
  std::vector<TargetEncoding> targets = {TargetEncoding::class_number};  // by the split's targets
  AllocateBatch allocate = {};                                           // allocates the memory of the inputs
  // Called while next() waits. Where it returns true and the data does not come within a second (a file system hangs),
  // next() returns batches that are not complete. Empty: next() waits without limit.
  std::function<bool()> stop_requested = {};
};

// Makes a loader of a split. Throws Error{data} where the split is empty. Its threads end with the source, after the
// sample that they are reading; after an incomplete batch the source does not wait for them.
std::unique_ptr<BatchSource> make_loader(std::shared_ptr<const DataSplit> split, const LoaderOptions& options);

}  // namespace trainctl
