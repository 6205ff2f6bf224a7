// Optimizers over the flat regions: one launch, one pass over gradients, parameters and state, which also writes the
// compute copies.
#include <map>

#include "core/backend/cuda/chunks.h"
#include "core/backend/cuda/kernels.h"
#include "core/backend/cuda/own_memory.h"
#include "core/graph/ops/update.h"

namespace trainctl::cuda {
namespace {

// Where the scalars of a step lie.
struct StepScalars {
  const float* learning_rate;
  const std::int64_t* step;
  const float* count;
  const float* flags;
  const float* norm;

  explicit StepScalars(const Places& p)
      : learning_rate(p.in<float>(1)),
        step(p.in<std::int64_t>(2)),
        count(p.in<float>(3)),
        flags(p.in<float>(4)),
        norm(p.in<float>(5)) {}
  __device__ bool apply() const { return flags[agree_not_finite] == 0 && isfinite(*norm) && *count > 0; }
  // Of the summed gradients: 1 / count, times the clipping.
  __device__ float scale(float clip_norm) const {
    return clip_norm > 0 && *norm > clip_norm ? clip_norm / *norm / *count : 1.0f / *count;
  }
};

// The regions: those of the states may be null.
struct Regions {
  const float* gradient;
  float* weight;
  float* states[2];

  Regions(const Places& p, int kinds)
      : gradient(p.in<float>(0)),
        weight(p.out<float>(0)),
        states{kinds > 0 ? p.out<float>(1) : nullptr, kinds > 1 ? p.out<float>(2) : nullptr} {}
};

struct Sgd {
  float clip_norm, momentum;
  bool nesterov;

  struct Factors {};
  __device__ Factors begin(const StepScalars&) const { return {}; }
  __device__ void step(const Factors&, float rate, float decay, float gradient, float& w, float& v, float&) const {
    const float g = gradient + decay * w;
    v = momentum * v + g;  // without momentum: g
    w -= rate * (nesterov ? g + momentum * v : v);
  }
};

struct Adam {
  float clip_norm, beta_1, beta_2, epsilon;
  bool decoupled;

  struct Factors {
    float correct_1, correct_2;
  };
  // The powers are float64, and need be taken once a block only. All threads call it.
  __device__ Factors begin(const StepScalars& scalars) const {
    __shared__ float correct[2];
    if (threadIdx.x < 2) {
      const double beta = threadIdx.x == 0 ? beta_1 : beta_2;
      correct[threadIdx.x] = static_cast<float>(1 / (1 - pow(beta, static_cast<double>(*scalars.step + 1))));
    }
    __syncthreads();
    return {correct[0], correct[1]};
  }
  __device__ void step(const Factors& f, float rate, float decay, float gradient, float& w, float& m, float& v) const {
    const float g = gradient + (decoupled ? 0.0f : decay) * w;
    m = beta_1 * m + (1.0f - beta_1) * g;
    v = beta_2 * v + (1.0f - beta_2) * g * g;
    w = w * (decoupled ? 1.0f - rate * decay : 1.0f) - rate * (m * f.correct_1) / (sqrtf(v * f.correct_2) + epsilon);
  }
};

// A block for each chunk.
template <class Rule>
__global__ void optimize(StepScalars scalars, Rule rule, const Chunk* chunks, Regions regions) {
  if (!scalars.apply()) return;
  const auto factors = rule.begin(scalars);
  const float rate = *scalars.learning_rate, scale = scalars.scale(rule.clip_norm);
  __shared__ Tile tile;
  const Chunk chunk = chunks[blockIdx.x];
  each_vec4(chunk, [&](const Vec4& at) {
    const Pack<float, 4> gradients = at.read(regions.gradient);
    Pack<float, 4> weights = at.read(regions.weight), states[2] = {};
#pragma unroll
    for (int s = 0; s < 2; ++s) {
      if (regions.states[s] != nullptr) states[s] = at.read(regions.states[s]);
    }
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      rule.step(factors, rate, chunk.decay, gradients.values[k] * scale, weights.values[k], states[0].values[k],
                states[1].values[k]);
    }
    at.write(weights, regions.weight);
#pragma unroll
    for (int s = 0; s < 2; ++s) {
      if (regions.states[s] != nullptr) at.write(states[s], regions.states[s]);
    }
    write_copies(chunk, at, weights, tile);
  });
  write_transposed(chunk, tile);
}

// The copies of one parameter.
struct CopyPlaces {
  std::int64_t count = 0;  // elements of the parameter
  std::int64_t columns = 0;
  DType dtype = DType::float32;
  std::byte *copy = nullptr, *transposed = nullptr;
};

// By the parameter's offset.
std::map<std::int64_t, CopyPlaces> places_of(const std::vector<UpdateCopy>& copies, const Address* addresses) {
  std::map<std::int64_t, CopyPlaces> places;
  for (std::size_t i = 0; i < copies.size(); ++i) {
    const UpdateCopy& copy = copies[i];
    require(addresses[i].fixed != nullptr, "compute copies have a region of their own");
    const bool known = places.contains(copy.offset);
    CopyPlaces& at = places[copy.offset];
    std::byte*& place = copy.layout.format.empty() ? at.copy : at.transposed;
    require(place == nullptr && (!known || at.dtype == copy.layout.dtype),
            "a parameter has one copy of each format, in one dtype");
    place = addresses[i].fixed + addresses[i].offset;
    at.count = copy.shape.count();
    at.columns = copy.shape.rank() == 0 ? 1 : copy.shape.back();
    at.dtype = copy.layout.dtype;
  }
  return places;
}

// Pieces of [begin, end), which have a copy there or none.
void cut(std::int64_t begin, std::int64_t end, float decay, const CopyPlaces& copies, std::vector<Chunk>& chunks) {
  for (std::int64_t next = begin; next < end; next += chunk_size) {
    const auto columns = static_cast<int>(std::min<std::int64_t>(chunk_size, end - next));
    std::byte* copy = copies.copy == nullptr ? nullptr : copies.copy + (next - begin) * size_of(copies.dtype);
    chunks.push_back({next, 0, 1, columns, decay, copies.dtype, copy, nullptr, 0});
  }
}

// Tiles of a parameter that begins there and has a transposed copy.
void cut_tiles(std::int64_t begin, float decay, const CopyPlaces& copies, std::vector<Chunk>& chunks) {
  const std::int64_t rows = copies.count / copies.columns, size = size_of(copies.dtype);
  for (std::int64_t row = 0; row < rows; row += tile_side) {
    for (std::int64_t column = 0; column < copies.columns; column += tile_side) {
      const std::int64_t first = row * copies.columns + column;
      chunks.push_back({begin + first, copies.columns, static_cast<int>(std::min<std::int64_t>(tile_side, rows - row)),
                        static_cast<int>(std::min<std::int64_t>(tile_side, copies.columns - column)), decay,
                        copies.dtype, copies.copy == nullptr ? nullptr : copies.copy + first * size,
                        copies.transposed + (column * rows + row) * size, rows});
    }
  }
}

std::vector<Chunk> chunks_of(const OptimizerUpdate& update, const std::map<std::int64_t, CopyPlaces>& copies) {
  std::vector<Chunk> chunks;
  for (const UpdateRange& range : update.ranges) {
    const std::int64_t end = range.offset + range.count;
    const float decay = range.decay ? update.weight_decay : 0.0f;
    std::int64_t next = range.offset;
    for (auto at = copies.lower_bound(next); at != copies.end() && at->first < end; ++at) {
      cut(next, at->first, decay, {}, chunks);
      next = at->first + at->second.count;
      if (at->second.transposed != nullptr) {
        cut_tiles(at->first, decay, at->second, chunks);
      } else {
        cut(at->first, next, decay, at->second, chunks);
      }
    }
    cut(next, end, decay, {}, chunks);
  }
  return chunks;
}

template <class Rule>
Lowering lower_optimizer(const LowerContext& context, const Rule& rule, int states) {
  Lowering lowering = bound_kernel(context, [rule, states, def = context.op.def](const Binding& b) {
    const auto& update = static_cast<const OptimizerUpdate&>(*def);
    const auto chunks = chunks_of(update, places_of(update.copies, b.outputs.data() + 1 + states));
    return [rule, states, count = static_cast<int>(chunks.size()), chunks = on_device(chunks)](const Places& p) {
      if (count == 0) return;
      launch(optimize<Rule>, count, block_threads, p.stream, StepScalars(p), rule, chunks.get(), Regions(p, states));
    };
  });
  const auto& def = context.op.as<OptimizerUpdate>();
  for (std::size_t i = 0; i < def.copies.size(); ++i) {
    lowering.outputs[static_cast<std::size_t>(1 + states) + i] = def.copies[i].layout;
  }
  return lowering;
}

}  // namespace

Lowering lower_sgd(const LowerContext& context) {
  const auto& def = context.op.as<SgdUpdate>();
  return lower_optimizer(context, Sgd{def.clip_norm, def.momentum, def.nesterov}, def.momentum > 0 ? 1 : 0);
}

Lowering lower_adam(const LowerContext& context) {
  const auto& def = context.op.as<AdamUpdate>();
  return lower_optimizer(context, Adam{def.clip_norm, def.beta_1, def.beta_2, def.epsilon, def.decoupled}, 2);
}

}  // namespace trainctl::cuda
