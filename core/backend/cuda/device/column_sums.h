// Computes sums of columns in one launch.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>

#include "core/tensor/dtype.h"

namespace trainctl::cuda {

// Sums of the columns of matrices [rows, columns].
class ColumnSums {
 public:
  ColumnSums(DType dtype, std::int64_t rows, std::int64_t columns);

  std::int64_t workspace_bytes() const { return workspace_bytes_; }

  // Sets sums[c], in float32, to the sum of x[row, c] over all rows, or adds it to sums[c] with `accumulate`. The order
  // of the additions is fixed. Runs of this object and of its copies must not overlap.
  void run(const void* x, bool accumulate, float* sums, void* workspace, cudaStream_t stream) const;

 private:
  DType dtype_;
  std::int64_t rows_, columns_, workspace_bytes_ = 0;
  std::shared_ptr<unsigned> counters_;  // one for each tile of columns
};

}  // namespace trainctl::cuda
