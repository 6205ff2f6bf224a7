// Computes 3x3 convolutions of stride 1 with 4 times fewer multiplications in float32, by Winograd's minimal filtering:
// A. Lavin and S. Gray, "Fast Algorithms for Convolutional Neural Networks", 2015.
//
// The output is cut into tiles of 4x4 pixels, each of which depends on 6x6 pixels of the input. At 36 points a tile of
// the output is the product of a tile of the input with the kernel, both transformed (see transforms.h). The sum over
// the input channels makes of each point a product of matrices, [tiles, in] by [in, out]. A block of tiles is
// transformed, multiplied and transformed back at a time, so that the values at the points stay in the caches; only
// the transformed kernel is computed beforehand, once a call.
//
// The transforms add and subtract values of a tile, so that rounding errors are relative to the largest values of the
// tile: values that are much smaller than others of the same tile are less precise than in a direct sum, and an
// infinity or NaN makes all results of its tiles NaN. The results of other tiles and samples do not change.
//
// Images in bfloat16 are widened to float32 when they are transformed, and results are rounded once. Values in between
// are float32: products of pairs of bfloat16 would take half the time, but the transforms would enlarge the errors of
// rounded tiles.
//
// Images are NHWC, so vectors hold channels of a pixel. The gradient of a convolution with respect to its input is a
// convolution of the gradient of the output with the flipped and transposed kernel.
#pragma once

#include <cstdint>
#include <string>

#include "core/backend/cpu/ops/images/winograd/geometry.h"
#include "core/graph/ops/images/window.h"
#include "core/tensor/shape.h"

namespace trainctl::cpu {

// The name of the implementation, such as "own:winograd:avx512".
std::string winograd_name();

// Whether the kernel is chosen without timing, for `in` channels and images [N, H', W', O] of its result: at least 60 %
// of the pixels of the tiles are in the image, and an image has enough tiles for the transforms of the kernel, which
// take the more time the more channels there are. The batch does not matter, so that a sample has the same result in
// any batch.
bool winograd_by_rule(std::int64_t in, const Shape& result);

class WinogradConvolution {
 public:
  // Whether this processor and these shapes are suitable: images [N, H, W, C] and [N, H', W', O], a 3x3 window with
  // strides of 1, and C and O multiples of 16.
  static bool computes(const Window& window, std::int64_t groups, const Shape& x, const Shape& y);

  // The convolution from x to y, or, `backward`, from the gradient of y to that of x.
  WinogradConvolution(const Window& window, const Shape& x, const Shape& y, bool backward, int threads);

  // The workspace holds the transformed kernel and the tiles of each thread. Fewer threads than `threads` compute if
  // there are fewer blocks of tiles, or if the workspace would be larger than most_bytes; with many channels, that of
  // one thread may be larger.
  std::int64_t workspace_bytes() const;
  static constexpr std::int64_t most_bytes = std::int64_t{256} << 20;

  // Writes the convolution of `in` with the kernel [3, 3, C, O] to `out`, plus the bias (unless null); negative values
  // are then multiplied by `negative_slope`. For images in bfloat16 the kernel is rounded to bfloat16, too. The sums of
  // a sample depend on its values and the shapes alone. The workspace must be aligned to 64 bytes.
  template <class T, class Kernel>
  void run(const T* in, const Kernel* kernel, const float* bias, float negative_slope, T* out, float* workspace) const;

 private:
  template <class T>
  struct Task;
  template <int lanes, bool rounded, class Kernel>
  void transform_kernel(const Kernel* kernel, std::int64_t first, std::int64_t last, float* transformed) const;
  template <int lanes, class T>
  void transform_inputs(const Task<T>& task, std::int64_t first, std::int64_t count) const;
  template <int lanes, class T>
  void multiply(const Task<T>& task, std::int64_t first, std::int64_t count) const;
  template <int lanes, bool rounds, bool whole, class T>
  void write_tile(const Task<T>& task, std::int64_t t, const winograd::Tile& tile) const;
  template <int lanes, bool rounds, class T>
  void compute(const Task<T>& task) const;

  // The distance between the values of a block of tiles at a point and those at the next point: with 16 values more,
  // neighbouring points do not compete for the same lines of the first cache.
  std::int64_t point_step(std::int64_t channels) const { return block_tiles_ * channels + winograd::block; }
  std::int64_t kernel_values() const { return winograd::all_points * shape_.in * shape_.out; }
  std::int64_t thread_values() const;
  std::int64_t blocks() const;

  winograd::Geometry shape_;
  bool backward_;
  int threads_;               // that compute
  std::int64_t block_tiles_;  // tiles of a block, a multiple of 16
};

}  // namespace trainctl::cpu
