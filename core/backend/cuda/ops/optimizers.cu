// Optimizers over the flat regions: their rules in one launch, which passes once over gradients, parameters and states
// and also writes the compute copies; in two launches where a rule needs norms over parameters.
#include <map>

#include "core/backend/cuda/device/own_memory.h"
#include "core/backend/cuda/kernels.h"
#include "core/backend/cuda/ops/chunks.h"
#include "core/graph/ops/optimizers.h"
#include "core/graph/ops/update.h"

namespace trainctl::cuda {
namespace {

// The addresses of a step's scalars.
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
  // The factor on the summed gradients: 1 / count, times the clipping.
  __device__ float scale(float clip_norm) const {
    return clip_norm > 0 && *norm > clip_norm ? clip_norm / *norm / *count : 1.0f / *count;
  }
};

// The flat regions. Pointers to states that the rule does not keep are null.
template <class Rule>
struct Regions {
  static constexpr int states_count = static_cast<int>(Rule::state_names.size());
  const float* gradient;
  float* weight;
  float* states[states_count];

  Regions(const Places& p, unsigned kept) : gradient(p.in<float>(0)), weight(p.out<float>(0)) {
    std::size_t output = 1;
    for (int k = 0; k < states_count; ++k) states[k] = kept >> k & 1u ? p.out<float>(output++) : nullptr;
  }

  // Calls visit(gradient, weight&, states) for four neighbouring elements, and writes the changed weights and states
  // back.
  template <class Visit>
  __device__ Pack<float, 4> each(const Vec4& at, const Visit& visit) const {
    const Pack<float, 4> gradients = at.read(gradient);
    Pack<float, 4> weights = at.read(weight), values[states_count] = {};
#pragma unroll
    for (int s = 0; s < states_count; ++s) {
      if (states[s] != nullptr) values[s] = at.read(states[s]);
    }
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      float of_element[states_count];
#pragma unroll
      for (int s = 0; s < states_count; ++s) of_element[s] = values[s].values[k];
      visit(gradients.values[k], weights.values[k], of_element, k);
#pragma unroll
      for (int s = 0; s < states_count; ++s) values[s].values[k] = of_element[s];
    }
#pragma unroll
    for (int s = 0; s < states_count; ++s) {
      if (states[s] != nullptr) at.write(values[s], states[s]);
    }
    return weights;
  }
};

// The rule's factors, which depend on the step alone. Each block computes them once, in float64. All threads call it.
template <class Rule>
__device__ const float* factors_of(const Rule& rule, const StepScalars& scalars) {
  if constexpr (Rule::factors == 0) {
    return nullptr;
  } else {
    __shared__ float factors[Rule::factors];
    const auto i = static_cast<int>(threadIdx.x);
    if (i < Rule::factors) factors[i] = rule.factor(i, *scalars.step);
    __syncthreads();
    return factors;
  }
}

// Each block updates one chunk.
template <class Rule>
__global__ void optimize(StepScalars scalars, Rule rule, float clip_norm, const Chunk* chunks, Regions<Rule> regions) {
  if (!scalars.apply()) return;
  const float* factors = factors_of(rule, scalars);
  const float rate = *scalars.learning_rate, scale = scalars.scale(clip_norm);
  __shared__ Tile tile;
  const Chunk chunk = chunks[blockIdx.x];
  each_vec4(chunk, [&](const Vec4& at) {
    const Pack<float, 4> weights = regions.each(at, [&](float gradient, float& w, float* states, int) {
      rule.step(factors, rate, chunk.decay, gradient * scale, w, states);
    });
    at.write(weights, regions.weight);
    write_copies(chunk, at, weights, tile);
  });
  write_transposed(chunk, tile);
}

// Sums of the squares of weights and of directions.
struct Squares {
  double weights, directions;
};

// The sums over a block's threads. All threads call it.
__device__ inline Squares block_squares(double weights, double directions) {
  __shared__ double of_weights[32], of_directions[32];
  return {block_sum(weights, of_weights), block_sum(directions, of_directions)};
}

// The first pass of a rule by parameter, with a block for each chunk: updates states, and sums squares.
template <class Rule>
__global__ void find_directions(StepScalars scalars, Rule rule, float clip_norm, const Chunk* chunks,
                                Regions<Rule> regions, Squares* of_chunks) {
  if (!scalars.apply()) return;
  const float* factors = factors_of(rule, scalars);
  const float scale = scalars.scale(clip_norm);
  const Chunk chunk = chunks[blockIdx.x];
  double weights = 0, directions = 0;
  each_vec4(chunk, [&](const Vec4& at) {
    regions.each(at, [&](float gradient, float& w, float* states, int k) {
      const double direction = rule.direction(factors, chunk.decay, gradient * scale, w, states);
      if (k < at.from || k >= at.to) return;
      weights += static_cast<double>(w) * w;
      directions += direction * direction;
    });
  });
  const Squares sum = block_squares(weights, directions);
  if (threadIdx.x == 0) of_chunks[blockIdx.x] = sum;
}

// The chunks [begin, end) of a parameter, and whether weight decay spares it.
struct ChunkRange {
  int begin, end;
  bool spared;
};

// The second pass: each block computes the norms of its chunk's parameter from that parameter's chunks, then takes the
// step.
template <class Rule>
__global__ void apply_directions(StepScalars scalars, Rule rule, float clip_norm, const Chunk* chunks,
                                 const ChunkRange* of_parameter, Regions<Rule> regions, const Squares* of_chunks) {
  if (!scalars.apply()) return;
  const float* factors = factors_of(rule, scalars);
  const Chunk chunk = chunks[blockIdx.x];
  const ChunkRange range = of_parameter[blockIdx.x];
  double weights = 0, directions = 0;
  for (int c = range.begin + static_cast<int>(threadIdx.x); c < range.end; c += static_cast<int>(blockDim.x)) {
    weights += of_chunks[c].weights;
    directions += of_chunks[c].directions;
  }
  __shared__ float ratio;
  const Squares sum = block_squares(weights, directions);
  if (threadIdx.x == 0) {
    ratio = rule.ratio(range.spared, chunk.decay, static_cast<float>(sqrt(sum.weights)),
                       static_cast<float>(sqrt(sum.directions)));
  }
  __syncthreads();
  const float rate = *scalars.learning_rate * ratio, scale = scalars.scale(clip_norm);
  __shared__ Tile tile;
  each_vec4(chunk, [&](const Vec4& at) {
    const Pack<float, 4> moved = regions.each(at, [&](float gradient, float& w, float* states, int) {
      rule.apply(factors, rate, chunk.decay, gradient * scale, w, states);
    });
    at.write(moved, regions.weight);
    write_copies(chunk, at, moved, tile);
  });
  write_transposed(chunk, tile);
}

// The addresses of one parameter's copies.
struct CopyPlaces {
  std::int64_t count = 0;  // elements of the parameter
  std::int64_t columns = 0;
  DType dtype = DType::float32;
  std::byte *copy = nullptr, *transposed = nullptr;
};

// The copies of all parameters, by the parameter's offset.
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

// Appends the chunks of [begin, end): a parameter with a copy in the regions' order, or elements without copies.
void cut(std::int64_t begin, std::int64_t end, float decay, const CopyPlaces& copies, std::vector<Chunk>& chunks) {
  for (std::int64_t next = begin; next < end; next += chunk_size) {
    const auto columns = static_cast<int>(std::min<std::int64_t>(chunk_size, end - next));
    std::byte* copy = copies.copy == nullptr ? nullptr : copies.copy + (next - begin) * size_of(copies.dtype);
    chunks.push_back({next, 0, 1, columns, decay, copies.dtype, copy, nullptr, 0});
  }
}

// Appends the tiles of a parameter that begins at `begin` and has a transposed copy.
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

// The chunks of all ranges; those of range i end at ends[i].
std::vector<Chunk> chunks_of(const OptimizerUpdate& update, const std::map<std::int64_t, CopyPlaces>& copies,
                             std::vector<int>& ends) {
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
    ends.push_back(static_cast<int>(chunks.size()));
  }
  return chunks;
}

// For each chunk, the chunks of the update range that it belongs to.
std::vector<ChunkRange> ranges_of_chunks(const OptimizerUpdate& update, const std::vector<int>& ends) {
  std::vector<ChunkRange> ranges;
  int begin = 0;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    const ChunkRange range{begin, ends[i], !update.ranges[i].decay};
    ranges.insert(ranges.end(), static_cast<std::size_t>(range.end - begin), range);
    begin = range.end;
  }
  return ranges;
}

template <class Rule>
Lowering lower_rule(const LowerContext& context, const Rule& rule) {
  const auto bind = [rule, def = context.op.def](const Binding& b) {
    const auto& update = static_cast<const OptimizerUpdate&>(*def);
    std::vector<int> ends;
    const auto states = state_names(update.rule).size();
    const auto list = chunks_of(update, places_of(update.copies, b.outputs.data() + 1 + states), ends);
    const auto count = static_cast<int>(list.size());
    const auto chunks = on_device(list);
    const float clip_norm = update.clip_norm;
    if constexpr (Rule::by_parameter) {
      const auto squares = on_device(std::vector<Squares>(list.size()));
      return [=, ranges = on_device(ranges_of_chunks(update, ends))](const Places& p) {
        if (count == 0) return;
        const Regions<Rule> regions(p, rule.kept());
        launch(find_directions<Rule>, count, block_threads, p.stream, StepScalars(p), rule, clip_norm, chunks.get(),
               regions, squares.get());
        launch(apply_directions<Rule>, count, block_threads, p.stream, StepScalars(p), rule, clip_norm, chunks.get(),
               ranges.get(), regions, squares.get());
      };
    } else {
      return [=](const Places& p) {
        if (count == 0) return;
        launch(optimize<Rule>, count, block_threads, p.stream, StepScalars(p), rule, clip_norm, chunks.get(),
               Regions<Rule>(p, rule.kept()));
      };
    }
  };
  Lowering lowering = bound_kernel(context, bind);
  const auto& def = context.op.as<OptimizerUpdate>();
  const std::size_t first = 1 + state_names(def.rule).size();
  for (std::size_t i = 0; i < def.copies.size(); ++i) lowering.outputs[first + i] = def.copies[i].layout;
  return lowering;
}

}  // namespace

Lowering lower_optimizer(const LowerContext& context) {
  return std::visit([&](const auto& rule) { return lower_rule(context, rule); }, context.op.as<OptimizerUpdate>().rule);
}

}  // namespace trainctl::cuda
