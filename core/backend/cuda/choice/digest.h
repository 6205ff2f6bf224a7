// Digests of what candidates compute, by which one that computes something else than the others is found.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/backend/cuda/runtime/handle.h"
#include "core/tensor/dtype.h"

namespace trainctl::cuda {

// The sum of a tensor's squares, and four sums of its values with random signs, which are the same in every run. The
// sums of two tensors are as far apart as a normal variable that has the norm of the tensors' difference as standard
// deviation (Alon, Matias and Szegedy, "The space complexity of approximating the frequency moments", 1996).
struct Digest {
  double squares = 0;
  std::array<double, 4> sums{};
};

// The digest of `count` values of a floating-point dtype in GPU memory, after what was queued on the stream. Waits.
Digest digest_of(const void* values, std::int64_t count, DType dtype, cudaStream_t stream);

// Whether these may be digests of one computation in different orders and roundings: sums are at most 2 % of the norm
// apart.
bool agree(const Digest& one, const Digest& other);

// What several candidates gave, in their order: `inputs` numbers the layouts of inputs, since random values in one
// layout are other values than in another one, and -1 is a candidate that did not run; then digests of the outputs.
struct Result {
  int inputs = -1;
  std::vector<Digest> outputs;
};
// By result, the number of others with the same inputs that agree with each other and not with it; 0 where it agrees
// with as many, or, where as many agree with each, comes first.
std::vector<int> outvoted(const std::vector<Result>& results);

}  // namespace trainctl::cuda
