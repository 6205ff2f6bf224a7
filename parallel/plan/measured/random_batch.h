// A batch of random samples for a program whose data is not read.
#pragma once

#include <vector>

#include "core/backend/backend.h"
#include "core/exec/interfaces/batch_source.h"

namespace trainctl {

class RandomBatch {
 public:
  // As many samples as the program takes in a step. Whole numbers stay below the rows of the embeddings and the classes
  // that they are meant for, as far as the program tells, so that losses stay finite.
  RandomBatch(const Program& program, Backend& backend);

  const Batch& batch() const { return batch_; }

 private:
  View add(const Program& program, TensorId tensor, std::int64_t below, Backend& backend);

  std::vector<Memory> memory_;
  Batch batch_;
};

}  // namespace trainctl
