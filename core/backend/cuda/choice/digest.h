// Digests of the candidates' outputs, which show that a candidate computes something different from the others.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/backend/cuda/runtime/handle.h"
#include "core/tensor/dtype.h"

namespace trainctl::cuda {

// The sum of a tensor's squares, and four sums of its values with random signs. The signs are the same in every run.
// The difference between the sums of two tensors is distributed like a normal variable whose standard deviation is the
// norm of the tensors' difference (Alon, Matias and Szegedy, "The space complexity of approximating the frequency
// moments", 1996).
struct Digest {
  double squares = 0;
  std::array<double, 4> sums{};
};

// Computes the digest of `count` values of a floating-point dtype in GPU memory, after the work that is queued on the
// stream, and waits for the result.
Digest digest_of(const void* values, std::int64_t count, DType dtype, cudaStream_t stream);

// Whether the digests may be of the same computation with different orders of summation and different rounding: their
// sums differ by at most 2 % of the norm.
bool agree(const Digest& one, const Digest& other);

// The result of a candidate: the index of its inputs' layouts, since buffers with the same values are different tensors
// in different layouts, or -1 if the candidate did not run; and the digests of its outputs.
struct Result {
  int inputs = -1;
  std::vector<Digest> outputs;
};
// For each result, the number of results that outvote it: results with the same inputs that agree with each other, but
// not with this result. 0 if as many results agree with this one, itself included; of two groups of the same size, the
// one that comes first outvotes the other.
std::vector<int> outvoted(const std::vector<Result>& results);

}  // namespace trainctl::cuda
