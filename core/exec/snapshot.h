// What a checkpoint stores and restores: named tensors and the position of the run. Stored by io/checkpoint.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/exec/batch_source.h"
#include "core/tensor/shape.h"
#include "core/tensor/view.h"

namespace trainctl {

// A tensor in logical layout, in host memory that somebody else owns.
struct NamedTensor {
  std::string name;
  Shape shape;
  View view;  // float32
};

// Everything a run needs to go on, independent of the number of ranks.
struct Snapshot {
  std::int64_t step = 0;             // steps done
  DataPosition position;             // of the next sample
  std::vector<NamedTensor> weights;  // parameters and running statistics, bytewise by name
  std::vector<NamedTensor> state;    // optimizer state: "momentum/conv1/kernel", bytewise by name
  std::map<std::string, std::string>
      facts;  // small texts kept with it: kernel choices, data fingerprint, ranks, best metric
  std::map<std::string, double> metrics;  // of the last evaluation: what `best` compares
};

// Where snapshots go. Implemented by io/checkpoint; called on rank 0 only.
class SnapshotStore {
 public:
  virtual ~SnapshotStore() = default;

  // Writes it whole or not at all. Returns the checkpoint's path. Throws Error{resource} (disk full, not writable).
  virtual std::string save(const Snapshot& snapshot, bool is_best) = 0;
};

}  // namespace trainctl
