// The loader: worker threads prepare batches ahead of the current one. Batches are in order and are the same for any
// number of workers, prefetched batches and ranks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "core/exec/interfaces/batch_source.h"
#include "core/spec/values.h"

namespace trainctl {

class DataSplit;
class FlightRecord;

struct LoaderOptions {
  std::int64_t batch_size = 1;  // number of samples of a batch on all ranks
  BatchDivision rank;
  DataPosition start;
  bool training = true;      // with augmentation; false: the split is read in its order, repeatedly
  bool shuffle = true;       // shuffle samples, in training only
  int workers = 1;           // number of threads; 0: one thread that reads a batch when next() requests it
  bool tuned = false;        // begin with one worker, and add others while next() waits for data
  Auto<int> prefetch = {2};  // number of batches that are prepared ahead
  std::vector<TargetEncoding> targets = {TargetEncoding::class_number};  // encoding of each target
  AllocateBatch allocate = {};                                           // allocates the memory of the inputs
  // Called while next() waits. If it returns true and the data does not arrive within a second (a file system hangs),
  // next() returns incomplete batches. Empty: next() waits without limit.
  std::function<bool()> stop_requested = {};
  // Returns the rank's flight record, or null. While next() waits for long, it enters there which sample is being read.
  std::function<FlightRecord*()> flight = {};
};

// Makes a loader of a split. Throws Error{data} if the split is empty. The destructor of the source waits until its
// threads have read their current samples; after an incomplete batch it does not wait.
std::unique_ptr<BatchSource> make_loader(std::shared_ptr<const DataSplit> split, const LoaderOptions& options);

}  // namespace trainctl
