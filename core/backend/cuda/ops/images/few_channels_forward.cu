// The forward pass of convolutions of few channels: a warp computes a row of a tile's output pixels, for up to 64
// output channels. The kernel stays in shared memory while a block goes through its tiles.
#include "core/backend/cuda/device/elementwise.h"
#include "core/backend/cuda/device/mma.h"
#include "core/backend/cuda/ops/images/few_channels.h"
#include "core/backend/cuda/ops/images/few_channels_tiles.h"

namespace trainctl::cuda {
namespace {

// The number of blocks that a multiprocessor can run at the same time, which is limited by their registers.
constexpr int resident_blocks(int pixel_tiles) { return pixel_tiles == 2 ? 4 : 2; }

// The values of the kernel, [out, height, width, in], that an output channel multiplies with values k and k + 1 of a
// step.
template <class T>
__device__ unsigned kernel_pair(const FewChannels& s, const T* kernel, int step, int k, int channel) {
  const int row = step / s.row_steps, column = step % s.row_steps * step_columns + k / 4;
  const T* pixel = kernel + ((channel * s.kernel_rows + row) * s.kernel_columns + column) * s.channels;
  Pack<T, 2> pair;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int from = k % 4 + i;
    pair.values[i] = column < s.kernel_columns && from < s.channels ? pixel[from] : store<T>(0);
  }
  unsigned bits;
  memcpy(&bits, &pair, sizeof bits);
  return bits;
}

// y = conv(x, kernel) [+ bias], then ReLU if `relu`. Column c of product n is the output channel
// c / 2 * 2 channel_tiles + 2 n + c % 2, so that a lane's sums belong to neighbouring channels.
template <class T, int pixel_tiles, int channel_tiles>
__global__ void __launch_bounds__(tile_threads, resident_blocks(pixel_tiles))
    convolve_few_channels(FewChannels s, const T* __restrict__ x, const T* __restrict__ kernel,
                          const float* __restrict__ bias, bool relu, T* __restrict__ y) {
  constexpr int lane_channels = 2 * channel_tiles, pack = lane_channels < 8 ? lane_channels : 8;
  __shared__ uint2 patch[max_patch_pixels];
  __shared__ uint4 kernels[max_window_steps * channel_tiles / 2 * 32];  // order: step, pair of products, lane
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int group = lane / 4, in_group = lane % 4;
  const int first_channel = static_cast<int>(blockIdx.y) * channel_tile * channel_tiles;

  for (int i = static_cast<int>(threadIdx.x); i < s.steps * channel_tiles / 2 * 32; i += tile_threads) {
    const int of_lane = i % 32, product = i / 32 % (channel_tiles / 2) * 2, step = i / 32 / (channel_tiles / 2);
    const int k = of_lane % 4 * 2, column = of_lane / 4;
    const int channel = first_channel + column / 2 * lane_channels + product * 2 + column % 2;
    kernels[i] = {kernel_pair(s, kernel, step, k, channel), kernel_pair(s, kernel, step, k + 8, channel),
                  kernel_pair(s, kernel, step, k, channel + 2), kernel_pair(s, kernel, step, k + 8, channel + 2)};
  }

  for (std::uint32_t tile = blockIdx.x; tile < s.tiles; tile += gridDim.x) {
    const TileOrigin origin(s, tile);
    __syncthreads();  // no thread reads the previous tile any more
    read_patch(s, origin, x, patch);
    __syncthreads();
    float sums[pixel_tiles][channel_tiles][4] = {};
    const uint2* own = patch + warp * s.row_stride * s.patch_columns + group * s.column_stride;
    for (int row = 0, step = 0; row < s.kernel_rows; ++row, own += s.patch_columns) {
      for (int i = 0; i < s.row_steps; ++i, ++step) {
        unsigned b[channel_tiles][2];
#pragma unroll
        for (int n = 0; n < channel_tiles; n += 2) {
          const uint4 pairs = kernels[(step * channel_tiles / 2 + n / 2) * 32 + lane];
          b[n][0] = pairs.x, b[n][1] = pairs.y, b[n + 1][0] = pairs.z, b[n + 1][1] = pairs.w;
        }
        const auto* pairs = reinterpret_cast<const unsigned*>(own + i * step_columns) + in_group;
#pragma unroll
        for (int m = 0; m < pixel_tiles; ++m) {
          const unsigned *upper = pairs + m * pixel_tile * s.column_stride * 2,
                         *lower = upper + 8 * s.column_stride * 2;
          const unsigned a[4] = {upper[0], lower[0], upper[4], lower[4]};
#pragma unroll
          for (int n = 0; n < channel_tiles; ++n) multiply_add<T>(sums[m][n], a, b[n]);
        }
      }
    }

    const int row = origin.row + warp;
    if (row >= s.out_height) continue;
#pragma unroll
    for (int half = 0; half < 2 * pixel_tiles; ++half) {
      const int column = origin.column + half * 8 + group;
      if (column >= s.out_width) continue;
      const int channel = first_channel + in_group * lane_channels;
      const std::int64_t pixel = (origin.image * s.out_height + row) * s.out_width + column;
      T* out = y + pixel * s.out_channels + channel;
#pragma unroll
      for (int k = 0; k < lane_channels; k += pack) {
        Pack<T, pack> values;
#pragma unroll
        for (int j = 0; j < pack; ++j) {
          float value = sums[half / 2][(k + j) / 2][half % 2 * 2 + j % 2];
          if (bias != nullptr) value += bias[channel + k + j];
          values.values[j] = store<T>(relu && value < 0 ? 0.0f : value);
        }
        pack_at<pack>(out + k) = values;
      }
    }
  }
}

// The possible numbers of pixel tiles of a warp. The names of the kernels contain these numbers.
constexpr int all_pixel_tiles[] = {4, 2};
std::string name_of_tiles(int count) { return "own, " + std::to_string(count * pixel_tile) + " columns"; }

template <class T, int pixel_tiles, int channel_tiles>
auto forward_of(const LowerContext& context, const FewChannels& s, DType dtype, std::int64_t pixels, bool bias,
                const ActivationFunction& function) {
  const auto max_tile_blocks = static_cast<std::uint32_t>(context.device.processors() * resident_blocks(pixel_tiles));
  const dim3 blocks(std::min(s.tiles, max_tile_blocks),
                    static_cast<unsigned>(s.out_channels / (channel_tile * channel_tiles)));
  return [=](const Buffers& p) {
    const bool relu = function.kind == ActivationKind::relu;
    launch(convolve_few_channels<T, pixel_tiles, channel_tiles>, blocks, tile_threads, p.stream, s, p.in<T>(0),
           p.in<T>(1), bias ? p.in<float>(2) : nullptr, relu, p.out<T>(0));
    if (!relu && function.kind != ActivationKind::none) {
      activate(function, dtype, p.out<void>(0), pixels * s.out_channels, p.stream);
    }
  };
}

}  // namespace

void add_few_channels_forward(const ConvolutionShape& shape, std::vector<std::string>& names) {
  if (!has_few_channels(shape)) return;
  for (const int tiles : all_pixel_tiles) {
    if (FewChannels(shape, tiles * pixel_tile).fits()) names.push_back(name_of_tiles(tiles));
  }
}

std::optional<Candidate> few_channels_forward(const LowerContext& context, const ConvolutionShape& shape, bool bias,
                                              const ActivationFunction& function, const std::string& name) {
  std::vector<std::string> names;
  add_few_channels_forward(shape, names);
  if (std::find(names.begin(), names.end(), name) == names.end()) return {};
  Candidate candidate;
  candidate.implementation = name;
  candidate.inputs = context.logical().inputs;
  candidate.inputs[1] = {shape.dtype, "ohwi", shape.kernel().count() * size_of(shape.dtype)};
  const std::int64_t pixels = shape.y.count() / shape.y[3];
  with_half_type(shape.dtype, [&](auto type) {
    with_channel_tiles(shape.y[3], [&](auto channel_tiles) {
      using T = decltype(type);
      constexpr int count = decltype(channel_tiles)::value;
      if (name == name_of_tiles(4)) {
        candidate.run =
            forward_of<T, 4, count>(context, FewChannels(shape, 4 * pixel_tile), shape.dtype, pixels, bias, function);
      } else {
        candidate.run =
            forward_of<T, 2, count>(context, FewChannels(shape, 2 * pixel_tile), shape.dtype, pixels, bias, function);
      }
    });
  });
  return candidate;
}

}  // namespace trainctl::cuda
