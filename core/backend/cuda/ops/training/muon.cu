// Muon over the flat regions. One launch takes AdamW's steps of all parameters that are not orthogonalized. For each
// matrix, one launch updates the momentum, products of cuBLASLt orthogonalize it, and one launch takes the step.
#include <algorithm>

#include "core/backend/cuda/cublaslt/product.h"
#include "core/backend/cuda/device/own_memory.h"
#include "core/backend/cuda/kernels.h"
#include "core/backend/cuda/ops/training/chunks.h"
#include "core/backend/cuda/ops/training/optimizer_step.h"

namespace trainctl::cuda {
namespace {

struct MuonRegions {
  const float* gradient;
  float *weight, *momentum, *velocity;

  explicit MuonRegions(const Buffers& p)
      : gradient(p.in<float>(0)), weight(p.out<float>(0)), momentum(p.out<float>(1)), velocity(p.out<float>(2)) {}
};

__global__ void take_adam_steps(StepScalars scalars, Muon rule, float clip_norm, const Chunk* chunks,
                                MuonRegions regions) {
  if (!scalars.apply()) return;
  const float* factors = factors_of(rule, scalars);
  const float scale = scalars.scale(clip_norm), rate = *scalars.learning_rate;
  const Chunk chunk = chunks[blockIdx.x];
  __shared__ Tile tile;
  each_vec4(chunk, [&](const Vec4& at) {
    const Pack<float, 4> gradient = at.read(regions.gradient);
    Pack<float, 4> weight = at.read(regions.weight), first = at.read(regions.momentum),
                   second = at.read(regions.velocity);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      float states[] = {first.values[k], second.values[k]};
      rule.adam(factors, rate, chunk.decay, gradient.values[k] * scale, weight.values[k], states);
      first.values[k] = states[0];
      second.values[k] = states[1];
    }
    at.write(first, regions.momentum);
    at.write(second, regions.velocity);
    at.write(weight, regions.weight);
    write_copies(chunk, at, weight, tile);
  });
  write_transposed(chunk, tile);
}

// Updates the momentum of a matrix that begins at `offset`, writes its direction to x [count], and the sum of the
// squares of each block's chunk to `squares`.
__global__ void find_momentum(StepScalars scalars, Muon rule, float clip_norm, const Chunk* chunks, std::int64_t offset,
                              std::int64_t count, MuonRegions regions, float* x, double* squares) {
  if (!scalars.apply()) return;
  const float scale = scalars.scale(clip_norm);
  const Chunk chunk = chunks[blockIdx.x];
  double sum = 0;
  each_vec4(chunk, [&](const Vec4& at) {
    const Pack<float, 4> gradient = at.read(regions.gradient);
    Pack<float, 4> momentum = at.read(regions.momentum);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const std::int64_t element = at.first + k - offset;
      if (k < at.from || k >= at.to || element >= count) continue;
      const float direction = rule.direction(gradient.values[k] * scale, momentum.values + k);
      x[element] = direction;
      sum += static_cast<double>(direction) * direction;
    }
    at.write(momentum, regions.momentum);
  });
  __shared__ double shared[32];
  sum = block_sum(sum, shared);
  if (threadIdx.x == 0) squares[blockIdx.x] = sum;
}

// Divides x by its norm, the root of the sum of `squares` [chunks].
__global__ void normalize_direction(const double* squares, int chunks, std::int64_t count, float* x) {
  __shared__ double shared[32];
  double sum = 0;
  for (int c = static_cast<int>(threadIdx.x); c < chunks; c += static_cast<int>(blockDim.x)) sum += squares[c];
  const float norm = static_cast<float>(sqrt(block_sum(sum, shared))) + Muon::norm_epsilon;
  for (std::int64_t i = first_element(); i < count; i += element_stride()) x[i] /= norm;
}

// y[i] = p * a[i] + q * b[i].
__global__ void combine_two(std::int64_t count, float p, const float* a, float q, const float* b, float* y) {
  for (std::int64_t i = first_element(); i < count; i += element_stride()) y[i] = p * a[i] + q * b[i];
}

// Takes the step of a matrix; `factor` is the factor of the orthogonal matrix x.
__global__ void take_orthogonal_step(StepScalars scalars, Muon rule, const Chunk* chunks, std::int64_t offset,
                                     std::int64_t count, float factor, const float* x, MuonRegions regions) {
  if (!scalars.apply()) return;
  const float rate = *scalars.learning_rate;
  const Chunk chunk = chunks[blockIdx.x];
  __shared__ Tile tile;
  each_vec4(chunk, [&](const Vec4& at) {
    Pack<float, 4> weight = at.read(regions.weight);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const std::int64_t element = at.first + k - offset;
      if (k < at.from || k >= at.to || element >= count) continue;
      weight.values[k] = rule.decayed(rate, chunk.decay, weight.values[k]) - rate * factor * x[element];
    }
    at.write(weight, regions.weight);
    write_copies(chunk, at, weight, tile);
  });
  write_transposed(chunk, tile);
}

// The products of a Newton-Schulz step of matrices X [rows, columns]: A = X X^T, A A, and Y += B X. If there are more
// rows than columns, A = X^T X and Y += X B.
struct MuonProducts {
  std::int64_t rows, columns, small;
  bool wide;
  Product square_of_x, square_of_a, last;

  MuonProducts(const LowerContext& context, const Shape& matrix)
      : rows(matrix[0]),
        columns(matrix[1]),
        small(std::min(rows, columns)),
        wide(rows <= columns),
        square_of_x(context.device, {small, small, std::max(rows, columns), !wide, wide}, context.choices,
                    context.label()),
        square_of_a(context.device, {small, small, small}, context.choices, context.label()),
        last(context.device, {rows, columns, small, false, false, DType::float32, DType::float32, true},
             context.choices, context.label()) {}

  std::int64_t count() const { return rows * columns; }
  std::int64_t workspace_bytes() const {
    return std::max({square_of_x.workspace_bytes(), square_of_a.workspace_bytes(), last.workspace_bytes()});
  }
};

// The matrices of the workspace. X and Y change places in each step.
struct MuonBuffers {
  float *x, *y, *a, *b;
  void* scratch;

  // Orthogonalizes X; the result is then X.
  void orthogonalize(const MuonProducts& products, int steps, cudaStream_t stream) {
    const auto combine = [&](std::int64_t count, float p, const float* left, float q, const float* right, float* to) {
      launch(combine_two, blocks_for(count), block_threads, stream, count, p, left, q, right, to);
    };
    for (int step = 0; step < steps; ++step) {
      products.square_of_x.run(stream, x, x, a, nullptr, scratch);
      products.square_of_a.run(stream, a, a, b, nullptr, scratch);
      combine(products.small * products.small, Muon::coefficients[1], a, Muon::coefficients[2], b, b);
      combine(products.count(), Muon::coefficients[0], x, 0, x, y);
      if (products.wide) {
        products.last.run(stream, b, x, y, nullptr, scratch);
      } else {
        products.last.run(stream, x, b, y, nullptr, scratch);
      }
      std::swap(x, y);
    }
  }
};

// The sizes of the matrices in the workspace: the maximum over all matrices, in bytes.
struct MuonSizes {
  std::int64_t matrix = 0, square = 0, scratch = 0;

  explicit MuonSizes(const std::vector<MuonProducts>& all) {
    for (const MuonProducts& products : all) {
      matrix = std::max(matrix, round_up(products.count() * size_of(DType::float32), 256));
      square = std::max(square, round_up(products.small * products.small * size_of(DType::float32), 256));
      scratch = std::max(scratch, products.workspace_bytes());
    }
  }
  std::int64_t all() const { return 2 * matrix + 2 * square + scratch; }
  MuonBuffers buffers(std::byte* at) const {
    const auto floats = [at](std::int64_t bytes) { return reinterpret_cast<float*>(at + bytes); };
    return {floats(0), floats(matrix), floats(2 * matrix), floats(2 * matrix + square), at + 2 * matrix + 2 * square};
  }
};

// The chunks of one matrix, in a list of all chunks.
struct MuonMatrix {
  Shape shape;
  std::int64_t offset;
  int begin, end;
};

}  // namespace

Lowering lower_orthogonal(const LowerContext& context, const Muon& rule) {
  std::vector<MuonProducts> products;  // of the matrices, in the order of their ranges
  for (const UpdateRange& range : context.op.as<OptimizerUpdate>().ranges) {
    if (range.matrix.rank() == 2) products.emplace_back(context, range.matrix);
  }
  const MuonSizes sizes(products);
  const auto bind = [=, def = context.op.def](const Binding& b) {
    const auto& update = static_cast<const OptimizerUpdate&>(*def);
    std::vector<int> ends;
    const auto all = chunks_of(update, b.outputs, ends);
    std::vector<Chunk> others;  // the chunks of parameters that are not orthogonalized
    std::vector<MuonMatrix> matrices;
    for (std::size_t i = 0; i < ends.size(); ++i) {
      const int begin = i == 0 ? 0 : ends[i - 1];
      const UpdateRange& range = update.ranges[i];
      if (range.matrix.rank() == 2) {
        matrices.push_back({range.matrix, range.offset, begin, ends[i]});
      } else {
        others.insert(others.end(), all.begin() + begin, all.begin() + ends[i]);
      }
    }
    return [=, clip_norm = update.clip_norm, count = static_cast<int>(others.size()), chunks = on_device(all),
            of_others = on_device(others), squares = on_device(std::vector<double>(all.size()))](const Buffers& p) {
      const StepScalars scalars(p);
      const MuonRegions regions(p);
      if (count > 0) {
        launch(take_adam_steps, count, block_threads, p.stream, scalars, rule, clip_norm, of_others.get(), regions);
      }
      for (std::size_t i = 0; i < matrices.size(); ++i) {
        const MuonMatrix& matrix = matrices[i];
        const std::int64_t elements = matrix.shape.count();
        const Chunk* own = chunks.get() + matrix.begin;
        double* own_squares = squares.get() + matrix.begin;
        const int blocks = matrix.end - matrix.begin;
        MuonBuffers buffers = sizes.buffers(p.workspace<std::byte>());
        launch(find_momentum, blocks, block_threads, p.stream, scalars, rule, clip_norm, own, matrix.offset, elements,
               regions, buffers.x, own_squares);
        launch(normalize_direction, blocks_for(elements, 4), block_threads, p.stream, own_squares, blocks, elements,
               buffers.x);
        buffers.orthogonalize(products[i], rule.ns_steps, p.stream);
        launch(take_orthogonal_step, blocks, block_threads, p.stream, scalars, rule, own, matrix.offset, elements,
               rule.scale(matrix.shape[0], matrix.shape[1]), buffers.x, regions);
      }
    };
  };
  Lowering lowering = with_copies(context, bound_kernel(context, bind));
  lowering.workspace_bytes = sizes.all();
  return lowering;
}

}  // namespace trainctl::cuda
