// Computes the gradient of a 3x3 convolution of stride 1 with respect to its kernel in float32 with 4 times fewer
// multiplications, by Winograd's minimal filtering (see convolution.h).
//
// For each tile of 4x4 pixels of the gradient of the output, the gradient of the kernel at a point is the product of
// the tile and of the 6x6 pixels of the input below it, both transformed. The sum over all tiles makes of each point a
// product of matrices, [in, tiles] by [tiles, out]. A block of tiles is transformed and multiplied at a time; the sums
// at the points are transformed to the gradient of the kernel at the end.
#pragma once

#include <cstdint>

#include "core/backend/cpu/ops/images/winograd/geometry.h"
#include "core/graph/ops/images/window.h"
#include "core/tensor/shape.h"

namespace trainctl::cpu {

class WinogradWeightGradient {
 public:
  // Images x [N, H, W, C] and y [N, H', W', O] for which WinogradConvolution::computes(). Each thread sums its own part
  // of the tiles, so that the order of the sums depends on the shapes and `threads`. Fewer threads sum if there are
  // fewer blocks of tiles, or if the workspace would be larger than most_bytes; with many channels, that of one thread
  // may be larger.
  WinogradWeightGradient(const Window& window, const Shape& x, const Shape& y, int threads);

  // The number of threads that sum.
  int threads() const { return threads_; }
  std::int64_t workspace_bytes() const;
  static constexpr std::int64_t most_bytes = std::int64_t{64} << 20;

  // Writes the gradient to dkernel [3, 3, C, O], or adds it to dkernel with `accumulate`. The workspace must be aligned
  // to 64 bytes.
  template <class T>
  void run(const T* x, const T* dy, bool accumulate, float* dkernel, float* workspace) const;

 private:
  template <class T>
  struct Task;
  // The distance between the values of a block of tiles at a point and those at the next point (see convolution.h).
  std::int64_t point_step(std::int64_t channels) const { return block_tiles_ * channels + winograd::block; }
  // The number of sums of a thread.
  std::int64_t sums() const { return winograd::all_points * shape_.in * shape_.out; }
  // The number of a thread's values: its sums, the values at all points of a block of tiles, and the pixels of a
  // square.
  std::int64_t thread_values() const;
  std::int64_t blocks() const;
  template <int lanes, class T>
  void sum(const Task<T>& task) const;
  template <int lanes>
  void transform_sums(const float* sums, std::int64_t first, std::int64_t last, bool accumulate, float* dkernel) const;

  winograd::Geometry shape_;
  int threads_;
  std::int64_t block_tiles_;  // tiles of a block, a multiple of 16
};

}  // namespace trainctl::cpu
