// Sorts tokens stably: positions with equal tokens stay in their order.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>

namespace trainctl::cuda {

// The result of a sort, in the workspace: tokens[i] is the i-th smallest token, relative to the first row, and
// positions[i] is its index in the input. Tokens outside [first_row, first_row + rows) come last, as the token `rows`.
struct SortedTokens {
  const std::int32_t *tokens, *positions;
};

// A radix sort (least significant digit first) of `count` tokens of a table with `rows` rows from `first_row` on, in
// two launches for each digit of 8 bits. The order of the result does not depend on the order in which blocks run.
class TokenSort {
 public:
  TokenSort(std::int64_t count, std::int64_t rows, std::int64_t first_row = 0);

  std::int64_t workspace_bytes() const;
  // Runs of this object and of its copies must not overlap.
  SortedTokens run(const std::int32_t* tokens, void* workspace, cudaStream_t stream) const;

 private:
  std::int32_t count_, rows_, first_row_, blocks_;
  std::shared_ptr<unsigned> counter_;
};

}  // namespace trainctl::cuda
