// Computes digests of tensors, and the vote among candidates.
#include "core/backend/cuda/choice/digest.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "core/backend/cuda/device/grid.h"

namespace trainctl::cuda {
namespace {

constexpr int sums = 5;

// Adds the block's sum of squares and its four signed sums to `totals`.
template <class T>
__global__ void add_digest(const T* __restrict__ values, std::int64_t count, double* totals) {
  double own[sums] = {};
  for (std::int64_t i = first_element(); i < count; i += element_stride()) {
    const double value = load(values[i]);
    const auto signs = static_cast<std::uint32_t>((i + 1) * 0xD1342543DE82EF95ull >> 60);
    own[0] += value * value;
#pragma unroll
    for (int k = 0; k + 1 < sums; ++k) own[k + 1] += (signs >> k & 1u) != 0 ? value : -value;
  }
  __shared__ double shared[32];
  for (int k = 0; k < sums; ++k) {
    const double total = block_sum(own[k], shared);
    if (threadIdx.x == 0) atomicAdd(totals + k, total);
  }
}

bool agree(const Result& one, const Result& other) {
  return one.inputs == other.inputs &&
         std::equal(one.outputs.begin(), one.outputs.end(), other.outputs.begin(), other.outputs.end(),
                    [](const Digest& a, const Digest& b) { return cuda::agree(a, b); });
}

}  // namespace

Digest digest_of(const void* values, std::int64_t count, DType dtype, cudaStream_t stream) {
  void* memory = nullptr;
  check(cudaMalloc(&memory, sums * sizeof(double)), "cudaMalloc");
  const std::unique_ptr<void, Destroy<cudaFree>> totals(memory);
  check(cudaMemsetAsync(memory, 0, sums * sizeof(double), stream), "cudaMemsetAsync");
  with_type(dtype, [&](auto type) {
    using T = decltype(type);
    launch(add_digest<T>, blocks_for(count, 16, 1 << 10), block_threads, stream, static_cast<const T*>(values), count,
           static_cast<double*>(memory));
  });
  double found[sums];
  check(cudaMemcpyAsync(found, memory, sizeof found, cudaMemcpyDeviceToHost, stream), "cudaMemcpyAsync");
  check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  return {found[0], {found[1], found[2], found[3], found[4]}};
}

bool agree(const Digest& one, const Digest& other) {
  const double limit = 0.02 * std::sqrt(std::max(one.squares, other.squares));
  if (!std::isfinite(limit)) return !std::isfinite(one.squares) && !std::isfinite(other.squares);
  for (std::size_t k = 0; k < one.sums.size(); ++k) {
    if (std::abs(one.sums[k] - other.sums[k]) > limit) return false;
  }
  return true;
}

std::vector<int> outvoted(const std::vector<Result>& results) {
  std::vector<std::ptrdiff_t> supporters;  // the number of results that agree with this one, itself included
  for (const Result& one : results) {
    supporters.push_back(std::count_if(results.begin(), results.end(), [&](const Result& r) { return agree(one, r); }));
  }
  std::vector<int> others(results.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i].inputs < 0) continue;
    for (std::size_t j = 0; j < results.size(); ++j) {
      const bool more = supporters[j] > supporters[i] || (supporters[j] == supporters[i] && j < i);
      if (results[j].inputs != results[i].inputs || !more || agree(results[i], results[j])) continue;
      others[i] = std::max(others[i], static_cast<int>(supporters[j]));
    }
  }
  return others;
}

}  // namespace trainctl::cuda
