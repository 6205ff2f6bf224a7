// Digests of the candidates' outputs, which show that a candidate computes something different from the others.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/backend/cuda/runtime/handle.h"
#include "core/tensor/dtype.h"

namespace trainctl::cuda {

// The sum of a tensor's squares, and four sums of its values with random signs. The signs are the same in every run.
// The difference between the sums of two tensors is distributed like a normal variable with the norm of the tensors'
// difference as its standard deviation (Alon, Matias and Szegedy, "The space complexity of approximating the frequency
// moments", 1996).
struct Digest {
  double squares = 0;
  std::array<double, 4> sums{};
};

// Computes the digest of `count` values of a floating-point dtype in GPU memory, after the work that is queued on the
// stream, and waits for the result.
Digest digest_of(const void* values, std::int64_t count, DType dtype, cudaStream_t stream);

// Whether the digests may belong to the same computation with different orders of summation and different rounding:
// their sums differ by at most 2 % of the norm.
bool agree(const Digest& one, const Digest& other);

// The result of a candidate: the index of its inputs' layouts, or -1 if the candidate did not run; and the digests of
// its outputs. The index is needed because buffers with the same values are different tensors in different layouts.
struct Result {
  int inputs = -1;
  std::vector<Digest> outputs;
};
// For each result, the number of results that outvote it: results with the same inputs that agree with each other, but
// not with this result. 0 if at least the same number of results agree with this result, itself included. Of two groups
// of the same size, the group that comes first outvotes the other group.
std::vector<int> outvoted(const std::vector<Result>& results);

}  // namespace trainctl::cuda
