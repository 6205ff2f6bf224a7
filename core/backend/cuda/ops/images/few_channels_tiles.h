// The tiles of output pixels by which convolutions of few channels are computed, and the part of an image that a tile
// reads.
//
// A convolution is a product of two matrices: [pixels, values of the window] times [values of the window, output
// channels], where the values of the window are its rows, columns and channels. A block of threads holds in shared
// memory the part of an image under a tile's windows, with 4 channels for each pixel. For an output pixel, a step
// multiplies 4 neighbouring columns of the window with 16 neighbouring values in shared memory. If a step has more
// columns than the window, or more channels than the image, it multiplies them by zero.
#pragma once

#include "core/backend/cuda/cudnn/convolution.h"
#include "core/backend/cuda/device/divisor.h"
#include "core/backend/cuda/device/pack.h"

namespace trainctl::cuda {

constexpr int tile_threads = 128, tile_rows = tile_threads / 32;
constexpr int step_columns = 4, step_values = 4 * step_columns;
constexpr int max_window_steps = 14;              // maximum number of steps of a window; a window of 7x7 has 14
constexpr int max_patch_pixels = 1792;            // maximum number of pixels of an image in shared memory
constexpr int channel_tile = 8, pixel_tile = 16;  // output channels and pixels of one product

struct FewChannels {
  int height, width, channels, out_height, out_width, out_channels;
  int kernel_rows, kernel_columns, row_stride, column_stride, top, left;  // top, left: padding
  int row_steps, steps;           // number of steps of a row of the window, and of the whole window
  int columns;                    // columns of the output in a tile
  int patch_rows, patch_columns;  // size of the part of an image under a tile
  std::uint32_t tiles;
  Divisor by_across, by_down, by_patch_columns;

  FewChannels(const ConvolutionShape& s, int tile_columns)
      : height(static_cast<int>(s.x[1])),
        width(static_cast<int>(s.x[2])),
        channels(static_cast<int>(s.x[3])),
        out_height(static_cast<int>(s.y[1])),
        out_width(static_cast<int>(s.y[2])),
        out_channels(static_cast<int>(s.y[3])),
        kernel_rows(static_cast<int>(s.window.size[0])),
        kernel_columns(static_cast<int>(s.window.size[1])),
        row_stride(static_cast<int>(s.window.strides[0])),
        column_stride(static_cast<int>(s.window.strides[1])),
        top(static_cast<int>(s.window.padding_before[0])),
        left(static_cast<int>(s.window.padding_before[1])),
        row_steps((kernel_columns + step_columns - 1) / step_columns),
        steps(kernel_rows * row_steps),
        columns(tile_columns),
        patch_rows((tile_rows - 1) * row_stride + kernel_rows),
        patch_columns((columns - 1) * column_stride + row_steps * step_columns),
        tiles(narrow(s.x[0] * tile_count(out_height, tile_rows) * tile_count(out_width, columns))),
        by_across(tile_count(out_width, columns)),
        by_down(tile_count(out_height, tile_rows)),
        by_patch_columns(patch_columns) {}

  bool fits() const { return steps <= max_window_steps && patch_rows * patch_columns <= max_patch_pixels; }

 private:
  static std::int64_t tile_count(int size, int tile) { return (size + tile - 1) / tile; }
};

// Whether these kernels support the convolution, apart from the size of its window, which fits() checks.
inline bool has_few_channels(const ConvolutionShape& s) {
  const bool half = s.dtype == DType::bfloat16 || s.dtype == DType::float16;
  const bool dense = s.window.dilation == Window{}.dilation && s.groups == 1;
  return half && dense && (s.x[3] == 3 || s.x[3] == 4) && s.y[3] % (2 * channel_tile) == 0;
}

// Calls make(std::integral_constant<int, count>{}) with the number of channel tiles that a block computes.
template <class Make>
auto with_channel_tiles(std::int64_t out_channels, const Make& make) {
  if (out_channels % (8 * channel_tile) == 0) return make(std::integral_constant<int, 8>{});
  if (out_channels % (4 * channel_tile) == 0) return make(std::integral_constant<int, 4>{});
  return make(std::integral_constant<int, 2>{});
}

// Calls make(T{}) with the CUDA type of a half-precision dtype.
template <class Make>
auto with_half_type(DType dtype, const Make& make) {
  return dtype == DType::float16 ? make(__half{}) : make(__nv_bfloat16{});
}

// The first output pixel of a tile.
struct TileOrigin {
  std::int64_t image;
  int row, column;

  __device__ TileOrigin(const FewChannels& s, std::uint32_t tile) {
    const std::uint32_t line = s.by_across.quotient(tile), of = s.by_down.quotient(line);
    column = static_cast<int>(s.by_across.remainder(tile, line)) * s.columns;
    row = static_cast<int>(s.by_down.remainder(line, of)) * tile_rows;
    image = of;
  }
};

// Reads the part of the image under a tile, many pixels in parallel. Channels and pixels that the image does not have
// are zeros.
template <class T>
__device__ void read_patch(const FewChannels& s, const TileOrigin& tile, const T* __restrict__ x, uint2* patch) {
  constexpr int batch = 8;
  const int top = tile.row * s.row_stride - s.top, left = tile.column * s.column_stride - s.left;
  const T* const image = x + tile.image * s.height * s.width * s.channels;
  const int count = s.patch_rows * s.patch_columns;
  for (int first = static_cast<int>(threadIdx.x); first < count; first += batch * tile_threads) {
    Pack<T, 4> pixels[batch];
#pragma unroll
    for (int b = 0; b < batch; ++b) {
      const auto at = static_cast<std::uint32_t>(first + b * tile_threads), line = s.by_patch_columns.quotient(at);
      const int row = top + static_cast<int>(line);
      const int column = left + static_cast<int>(s.by_patch_columns.remainder(at, line));
      const bool inside = row >= 0 && row < s.height && column >= 0 && column < s.width;
      const T* const pixel = image + (inside ? (row * s.width + column) * s.channels : 0);
#pragma unroll
      for (int k = 0; k < 4; ++k) pixels[b].values[k] = inside && k < s.channels ? pixel[k] : store<T>(0);
    }
#pragma unroll
    for (int b = 0; b < batch; ++b) {
      const int at = first + b * tile_threads;
      if (at < count) pack_at<4>(reinterpret_cast<T*>(patch + at)) = pixels[b];
    }
  }
}

}  // namespace trainctl::cuda
