// The loader: worker threads fill batches ahead of the one that is used; batches come in order and are the same
// whatever the number of workers, batches ahead and ranks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "core/exec/interfaces/batch_source.h"
#include "io/loader/part.h"

namespace trainctl {

struct LoaderOptions {
  std::int64_t batch_size = 1;  // global
  MeshRank rank;
  DataPosition start;
  bool training = true;  // augmentation; evaluation runs through the part in its order, again and again
  bool shuffle = true;   // in training
  int workers = 1;       // threads; 0: one, which reads a batch when next() asks for it, and nothing ahead
  int prefetch = 2;      // batches ahead
  std::vector<TargetForm> targets = {TargetForm::class_number};  // by the part's targets
  AllocateBatch allocate = {};                                   // of the inputs' memory
  // Asked while next() waits: where a stop is requested and the data does not come for a second (a file
  // system hangs), next() returns batches that are not complete. Empty: it waits.
  std::function<bool()> stop_requested = {};
};

// Throws Error{data} where the part is empty. Threads end with the source, at the latest after the sample that they
// read; after an incomplete batch they are left to themselves.
std::unique_ptr<BatchSource> make_loader(std::shared_ptr<const DataPart> part, const LoaderOptions& options);

}  // namespace trainctl
