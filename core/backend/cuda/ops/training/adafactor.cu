// Runs Adafactor over the flat regions in five launches: the row means and the column means of the squared gradients,
// the mean of the row means, the root mean square of the direction that follows from them, then the step, which also
// writes the compute copies.
#include "core/backend/cuda/device/own_memory.h"
#include "core/backend/cuda/ops/training/optimizer_step.h"

namespace trainctl::cuda {
namespace {

constexpr int warp = 32, warps = block_threads / warp;
constexpr unsigned blocks_of_parameter = 128;

// A parameter in a step. The row means of all parameters are stored one after the other.
struct Parameter {
  std::int64_t offset;  // offset in the flat layout
  Factors factors;
  std::int64_t first_mean;  // index of its first matrix in AdafactorRegions::row_means

  // The number of kept means of a matrix.
  __host__ __device__ std::int64_t of_matrix() const { return (factors.vector ? 0 : factors.rows) + factors.columns; }
  __device__ std::int64_t all_rows() const { return factors.matrices * factors.rows; }
  // The offsets of the kept means in the state's region.
  __device__ std::int64_t row(std::int64_t row) const {
    return factors.offset + row / factors.rows * of_matrix() + row % factors.rows;
  }
  __device__ std::int64_t column(std::int64_t matrix, std::int64_t column) const {
    return factors.offset + matrix * of_matrix() + (factors.vector ? 0 : factors.rows) + column;
  }
};

struct AdafactorRegions {
  const float* gradient;
  float* weight;
  float* kept;
  double* row_means;  // for each matrix, the mean of its row means
};

// Updates the row means of the squared gradients; each warp sums one row at a time. Here and below, blockIdx.y is the
// index of the parameter.
__global__ void average_rows(StepScalars scalars, Adafactor rule, float clip_norm, const Parameter* parameters,
                             AdafactorRegions regions) {
  if (!scalars.apply()) return;
  const float* factors = factors_of(rule, scalars);
  const float scale = scalars.scale(clip_norm);
  const Parameter parameter = parameters[blockIdx.y];
  if (parameter.factors.vector) return;
  const auto lane = static_cast<int>(threadIdx.x) % warp;
  for (std::int64_t row = std::int64_t{blockIdx.x} * warps + threadIdx.x / warp; row < parameter.all_rows();
       row += std::int64_t{gridDim.x} * warps) {
    const float* gradient = regions.gradient + parameter.offset + row * parameter.factors.columns;
    double sum = 0;
    for (std::int64_t c = lane; c < parameter.factors.columns; c += warp) sum += rule.square(gradient[c] * scale);
    for (int distance = warp / 2; distance > 0; distance /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, distance);
    float& kept = regions.kept[parameter.row(row)];
    if (lane == 0)
      kept = rule.average(factors, kept, static_cast<float>(sum / static_cast<double>(parameter.factors.columns)));
  }
}

// Updates the column means of the squared gradients: a block sums as many columns as a warp has threads, and each of
// its warps sums some of the rows.
__global__ void average_columns(StepScalars scalars, Adafactor rule, float clip_norm, const Parameter* parameters,
                                AdafactorRegions regions) {
  if (!scalars.apply()) return;
  const float* factors = factors_of(rule, scalars);
  const float scale = scalars.scale(clip_norm);
  const Parameter parameter = parameters[blockIdx.y];
  const std::int64_t columns = parameter.factors.columns, rows = parameter.factors.rows,
                     tiles = (columns + warp - 1) / warp;
  const auto lane = static_cast<int>(threadIdx.x) % warp, own = static_cast<int>(threadIdx.x) / warp;
  __shared__ double sums[warps][warp];
  for (std::int64_t tile = blockIdx.x; tile < parameter.factors.matrices * tiles; tile += gridDim.x) {
    const std::int64_t matrix = tile / tiles, column = tile % tiles * warp + lane;
    const float* gradient = regions.gradient + parameter.offset + matrix * rows * columns + column;
    double sum = 0;
    for (std::int64_t row = own; column < columns && row < rows; row += warps) {
      sum += rule.square(gradient[row * columns] * scale);
    }
    sums[own][lane] = sum;
    __syncthreads();
    if (own == 0 && column < columns) {
      for (int w = 1; w < warps; ++w) sum += sums[w][lane];
      float& kept = regions.kept[parameter.column(matrix, column)];
      kept = rule.average(factors, kept, static_cast<float>(sum / static_cast<double>(rows)));
    }
    __syncthreads();
  }
}

// Computes the mean of the rows' means of each matrix.
__global__ void average_row_means(StepScalars scalars, const Parameter* parameters, AdafactorRegions regions) {
  if (!scalars.apply()) return;
  const Parameter parameter = parameters[blockIdx.y];
  if (parameter.factors.vector) return;
  __shared__ double shared[warp];
  for (std::int64_t matrix = blockIdx.x; matrix < parameter.factors.matrices; matrix += gridDim.x) {
    double sum = 0;
    for (std::int64_t row = threadIdx.x; row < parameter.factors.rows; row += blockDim.x) {
      sum += regions.kept[parameter.row(matrix * parameter.factors.rows + row)];
    }
    sum = block_sum(sum, shared);
    if (threadIdx.x == 0)
      regions.row_means[parameter.first_mean + matrix] = sum / static_cast<double>(parameter.factors.rows);
  }
}

// The direction of an element of the flat layout.
__device__ inline float direction_at(const Adafactor& rule, const Parameter& parameter, const AdafactorRegions& regions,
                                     float gradient, std::int64_t element) {
  const std::int64_t at = element - parameter.offset, row = at / parameter.factors.columns,
                     matrix = row / parameter.factors.rows;
  const float column = regions.kept[parameter.column(matrix, at % parameter.factors.columns)];
  if (parameter.factors.vector) return rule.direction(gradient, 1.0f, column);
  const double relative = regions.kept[parameter.row(row)] / regions.row_means[parameter.first_mean + matrix];
  return rule.direction(gradient, static_cast<float>(relative), column);
}

// Sums the squares of the decayed weights and of their directions, with a block for each chunk.
__global__ void find_lengths(StepScalars scalars, Adafactor rule, float clip_norm, const Chunk* chunks,
                             const int* parameter_of, const Parameter* parameters, AdafactorRegions regions,
                             Squares* of_chunks) {
  if (!scalars.apply()) return;
  const float scale = scalars.scale(clip_norm), rate = *scalars.learning_rate;
  const Chunk chunk = chunks[blockIdx.x];
  const Parameter parameter = parameters[parameter_of[blockIdx.x]];
  double weights = 0, directions = 0;
  each_vec4(chunk, [&](const Vec4& at) {
    const Pack<float, 4> gradient = at.read(regions.gradient), weight = at.read(regions.weight);
    for (int k = at.from; k < at.to; ++k) {
      const double direction = direction_at(rule, parameter, regions, gradient.values[k] * scale, at.first + k);
      const double decayed = rule.decayed(rate, chunk.decay, weight.values[k]);
      weights += decayed * decayed;
      directions += direction * direction;
    }
  });
  const Squares sum = block_squares(weights, directions);
  if (threadIdx.x == 0) of_chunks[blockIdx.x] = sum;
}

__global__ void move(StepScalars scalars, Adafactor rule, float clip_norm, const Chunk* chunks, const int* parameter_of,
                     const ChunkRange* chunks_of_parameter, const Parameter* parameters, AdafactorRegions regions,
                     const Squares* of_chunks) {
  if (!scalars.apply()) return;
  const float* factors = factors_of(rule, scalars);
  const float scale = scalars.scale(clip_norm), learning_rate = *scalars.learning_rate;
  const Chunk chunk = chunks[blockIdx.x];
  const Parameter parameter = parameters[parameter_of[blockIdx.x]];
  const Squares sum = sum_of(chunks_of_parameter[blockIdx.x], of_chunks);
  const auto count = static_cast<double>(parameter.all_rows() * parameter.factors.columns);
  const float rate = rule.rate(factors, learning_rate, static_cast<float>(sqrt(sum.weights / count)),
                               static_cast<float>(sqrt(sum.directions / count)));
  __shared__ Tile tile;
  each_vec4(chunk, [&](const Vec4& at) {
    const Pack<float, 4> gradient = at.read(regions.gradient);
    Pack<float, 4> weight = at.read(regions.weight);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      if (k < at.from || k >= at.to) continue;
      const float direction = direction_at(rule, parameter, regions, gradient.values[k] * scale, at.first + k);
      weight.values[k] = rule.decayed(learning_rate, chunk.decay, weight.values[k]) - rate * direction;
    }
    at.write(weight, regions.weight);
    write_copies(chunk, at, weight, tile);
  });
  write_transposed(chunk, tile);
}

}  // namespace

Lowering lower_factored(const LowerContext& context, const Adafactor& rule) {
  const auto bind = [rule, def = context.op.def](const Binding& b) {
    const auto& update = static_cast<const OptimizerUpdate&>(*def);
    std::vector<int> ends, parameter_of;
    const auto list = chunks_of(update, b.outputs, ends);
    std::vector<Parameter> of_ranges;
    std::int64_t matrices = 0;
    for (const UpdateRange& range : update.ranges) {
      parameter_of.resize(static_cast<std::size_t>(ends[of_ranges.size()]), static_cast<int>(of_ranges.size()));
      of_ranges.push_back({range.offset, range.factors, matrices});
      matrices += range.factors.matrices;
    }
    const auto count = static_cast<int>(list.size());
    const dim3 grid(blocks_of_parameter, static_cast<unsigned>(of_ranges.size()));
    return [=, clip_norm = update.clip_norm, chunks = on_device(list), parameters = on_device(of_ranges),
            numbers = on_device(parameter_of), ranges = on_device(ranges_of_chunks(update, ends)),
            row_means = on_device(std::vector<double>(static_cast<std::size_t>(matrices))),
            squares = on_device(std::vector<Squares>(list.size()))](const Buffers& p) {
      if (count == 0) return;
      const StepScalars scalars(p);
      const AdafactorRegions regions{p.in<float>(0), p.out<float>(0), p.out<float>(1), row_means.get()};
      launch(average_rows, grid, block_threads, p.stream, scalars, rule, clip_norm, parameters.get(), regions);
      launch(average_columns, grid, block_threads, p.stream, scalars, rule, clip_norm, parameters.get(), regions);
      launch(average_row_means, grid, block_threads, p.stream, scalars, parameters.get(), regions);
      launch(find_lengths, count, block_threads, p.stream, scalars, rule, clip_norm, chunks.get(), numbers.get(),
             parameters.get(), regions, squares.get());
      launch(move, count, block_threads, p.stream, scalars, rule, clip_norm, chunks.get(), numbers.get(), ranges.get(),
             parameters.get(), regions, squares.get());
    };
  };
  return with_copies(context, bound_kernel(context, bind));
}

}  // namespace trainctl::cuda
