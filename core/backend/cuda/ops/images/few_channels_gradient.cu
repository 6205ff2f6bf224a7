// The gradient by the kernel of convolutions of few channels: values of the window by output channels, summed over
// pixels. Blocks sum over their tiles in registers, and a second kernel adds up the blocks in their order.
#include "core/backend/cuda/device/mma.h"
#include "core/backend/cuda/kernels.h"
#include "core/backend/cuda/ops/images/few_channels.h"
#include "core/backend/cuda/ops/images/few_channels_tiles.h"

namespace trainctl::cuda {
namespace {

constexpr const char* gradient_name = "own";
constexpr int gradient_columns = 32;  // columns of a tile
constexpr int warp_steps = 4;         // largest number of steps of a warp; more would not fit into its registers
constexpr int gradient_blocks = 2;    // number of blocks that run on a multiprocessor at the same time

// How the warps of a block share steps and rows: warps of one group have the same steps and different rows.
struct WarpGroups {
  int groups, rows;  // number of groups, and of warps in a group

  explicit WarpGroups(int steps) : groups(1) {
    while (groups * warp_steps < steps) groups *= 2;
    rows = tile_rows / groups;
  }
};

// Reads dy of a tile into `gradients`, where pixels of `channels` values begin every `pitch` values. Pixels outside of
// dy are zeros.
template <class T, int channels, int pitch>
__device__ void read_gradients(const FewChannels& s, const TileOrigin& tile, const T* __restrict__ dy, T* gradients) {
  constexpr int packs = channels / 8, count = tile_rows * gradient_columns * packs / tile_threads;
  Pack<T, 8> values[count];
#pragma unroll
  for (int i = 0; i < count; ++i) {
    const int at = static_cast<int>(threadIdx.x) + i * tile_threads, pixel = at / packs;
    const int row = tile.row + pixel / gradient_columns, column = tile.column + pixel % gradient_columns;
    if (row < s.out_height && column < s.out_width) {
      const std::int64_t from = (tile.image * s.out_height + row) * s.out_width + column;
      values[i] = pack_at<8>(dy + from * s.out_channels + at % packs * 8);
    } else {
#pragma unroll
      for (int k = 0; k < 8; ++k) values[i].values[k] = store<T>(0);
    }
  }
#pragma unroll
  for (int i = 0; i < count; ++i) {
    const int at = static_cast<int>(threadIdx.x) + i * tile_threads;
    pack_at<8>(gradients + at / packs * pitch + at % packs * 8) = values[i];
  }
}

// Writes sums over parts of the pixels: [block of channels][part][step values][channels of the block].
template <class T, int channel_tiles>
__global__ void __launch_bounds__(tile_threads, gradient_blocks)
    sum_few_channels(FewChannels s, WarpGroups warps, const T* __restrict__ x, const T* __restrict__ dy,
                     float* __restrict__ partials) {
  constexpr int channels = channel_tile * channel_tiles, pitch = channels + 8;  // rows in different banks
  __shared__ uint2 patch[max_patch_pixels];
  __shared__ uint4 gradient_packs[tile_rows * gradient_columns * pitch / 8];
  T* const gradients = reinterpret_cast<T*>(gradient_packs);
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int group = lane / 4, in_group = lane % 4;
  const int first_step = warp % warps.groups, first_row = warp / warps.groups;
  // The start of the lane's row in four 8x8 matrices: two matrices of 8 pixels for each of two products.
  const T* const matrices = gradients + (lane / 8 % 2 * 8 + lane % 8) * pitch + lane / 16 * channel_tile;
  const auto* const values = reinterpret_cast<const std::uint16_t*>(patch);
  const int next = s.column_stride * 4, far = 8 * next;  // values to the window of the next pixel, and of the eighth
  int offsets[warp_steps];  // offsets of the lane's values by step; missing steps are computed and dropped
#pragma unroll
  for (int m = 0; m < warp_steps; ++m) {
    const int step = min(first_step + m * warps.groups, s.steps - 1);
    const int pixel = step / s.row_steps * s.patch_columns + step % s.row_steps * step_columns;
    offsets[m] = (pixel + 2 * in_group * s.column_stride) * 4 + group;
  }

  float sums[warp_steps][channel_tiles][4] = {};
  for (std::uint32_t tile = blockIdx.x; tile < s.tiles; tile += gridDim.x) {
    const TileOrigin origin(s, tile);
    __syncthreads();  // no thread reads the previous tile any more
    read_patch(s, origin, x, patch);
    read_gradients<T, channels, pitch>(s, origin, dy + blockIdx.y * channels, gradients);
    __syncthreads();
    for (int row = first_row; row < tile_rows; row += warps.rows) {
      for (int column = 0; column < gradient_columns; column += pixel_tile) {
        const int here = (row * s.row_stride * s.patch_columns + column * s.column_stride) * 4;
        unsigned b[channel_tiles][2];
#pragma unroll
        for (int n = 0; n < channel_tiles; n += 2) {
          unsigned pairs[4];
          read_transposed(matrices + (row * gradient_columns + column) * pitch + n * channel_tile, pairs);
          b[n][0] = pairs[0], b[n][1] = pairs[1], b[n + 1][0] = pairs[2], b[n + 1][1] = pairs[3];
        }
#pragma unroll
        for (int m = 0; m < warp_steps; ++m) {
          const std::uint16_t* at = values + here + offsets[m];
          const auto pair = [&](int from) { return at[from] | static_cast<unsigned>(at[from + next]) << 16; };
          const unsigned a[4] = {pair(0), pair(8), pair(far), pair(far + 8)};
#pragma unroll
          for (int n = 0; n < channel_tiles; ++n) multiply_add<T>(sums[m][n], a, b[n]);
        }
      }
    }
  }

  const std::int64_t part = (static_cast<std::int64_t>(blockIdx.y) * gridDim.x + blockIdx.x) * warps.rows + first_row;
#pragma unroll
  for (int m = 0; m < warp_steps; ++m) {
    const int step = first_step + m * warps.groups;
    if (step >= s.steps) break;
    float* const of_step = partials + (part * s.steps + step) * step_values * channels + 2 * in_group;
#pragma unroll
    for (int n = 0; n < channel_tiles; ++n) {
      pack_at<2>(of_step + group * channels + n * channel_tile) = Pack<float, 2>{{sums[m][n][0], sums[m][n][1]}};
      pack_at<2>(of_step + (group + 8) * channels + n * channel_tile) = Pack<float, 2>{{sums[m][n][2], sums[m][n][3]}};
    }
  }
}

// Sums all parts into dkernel [height, width, in, out]; adds the sums to it with `accumulate`.
__global__ void add_parts(FewChannels s, int parts, int channels, const float* __restrict__ partials, bool accumulate,
                          float* dkernel) {
  const int count = s.kernel_rows * s.kernel_columns * s.channels * s.out_channels;
  const std::int64_t size = static_cast<std::int64_t>(s.steps) * step_values * channels;  // values of a part
  for (auto i = static_cast<int>(first_element()); i < count; i += static_cast<int>(element_stride())) {
    const int out = i % s.out_channels, value = i / s.out_channels;
    const int channel = value % s.channels, pixel = value / s.channels;
    const int row = pixel / s.kernel_columns, column = pixel % s.kernel_columns;
    const int step = row * s.row_steps + column / step_columns;
    const int within = column % step_columns * 4 + channel;
    const float* part =
        partials + out / channels * parts * size + (step * step_values + within) * channels + out % channels;
    float sum = 0;
#pragma unroll 8
    for (int k = 0; k < parts; ++k) sum += part[k * size];
    dkernel[i] = accumulate ? dkernel[i] + sum : sum;
  }
}

template <class T, int channel_tiles>
Candidate gradient_of(const LowerContext& context, const FewChannels& s, bool accumulate) {
  constexpr int channels = channel_tile * channel_tiles;
  const WarpGroups warps(s.steps);
  const auto max_tile_blocks = static_cast<std::uint32_t>(context.device.processors() * gradient_blocks);
  const dim3 blocks(std::min(s.tiles, max_tile_blocks), static_cast<unsigned>(s.out_channels / channels));
  const int parts = static_cast<int>(blocks.x) * warps.rows;
  const int count = s.kernel_rows * s.kernel_columns * s.channels * s.out_channels;
  Candidate candidate;
  candidate.workspace_bytes = size_of(DType::float32) * parts * s.steps * step_values * s.out_channels;
  candidate.run = [=](const Buffers& p) {
    launch(sum_few_channels<T, channel_tiles>, blocks, tile_threads, p.stream, s, warps, p.in<T>(0), p.in<T>(1),
           p.workspace<float>());
    launch(add_parts, blocks_for(count), block_threads, p.stream, s, parts, channels, p.workspace<float>(), accumulate,
           p.out<float>(0));
  };
  return candidate;
}

}  // namespace

void add_few_channels_gradient(const ConvolutionShape& shape, std::vector<std::string>& names) {
  if (has_few_channels(shape) && FewChannels(shape, gradient_columns).fits()) names.emplace_back(gradient_name);
}

std::optional<Candidate> few_channels_gradient(const LowerContext& context, const ConvolutionShape& shape,
                                               bool accumulate, const std::string& name) {
  std::vector<std::string> names;
  add_few_channels_gradient(shape, names);
  if (names.empty() || name != gradient_name) return {};
  Candidate candidate = with_half_type(shape.dtype, [&](auto type) {
    return with_channel_tiles(shape.y[3], [&](auto channel_tiles) {
      constexpr int count = decltype(channel_tiles)::value;
      return gradient_of<decltype(type), count>(context, FewChannels(shape, gradient_columns), accumulate);
    });
  });
  candidate.implementation = gradient_name;
  candidate.inputs = context.logical().inputs;
  return candidate;
}

}  // namespace trainctl::cuda
