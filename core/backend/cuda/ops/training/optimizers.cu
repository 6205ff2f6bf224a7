// Optimizers over the flat regions. A rule runs in one launch, which passes once over gradients, parameters and states
// and also writes the compute copies. A rule that needs the norms of parameters runs in two launches.
#include "core/backend/cuda/device/own_memory.h"
#include "core/backend/cuda/kernels.h"
#include "core/backend/cuda/ops/training/chunks.h"
#include "core/backend/cuda/ops/training/optimizer_step.h"

namespace trainctl::cuda {
namespace {

// The flat regions. Pointers to states that the rule does not keep are null.
template <class Rule>
struct Regions {
  static constexpr int states_count = static_cast<int>(Rule::state_names.size());
  const float* gradient;
  float* weight;
  float* states[states_count];

  Regions(const Buffers& p, unsigned kept) : gradient(p.in<float>(0)), weight(p.out<float>(0)) {
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

// The first pass of a rule that needs the norms of parameters, with a block for each chunk: updates states, and sums
// squares.
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

// The second pass: each block computes the norms of its chunk's parameter from that parameter's chunks, then takes the
// step.
template <class Rule>
__global__ void apply_directions(StepScalars scalars, Rule rule, float clip_norm, const Chunk* chunks,
                                 const ChunkRange* of_parameter, Regions<Rule> regions, const Squares* of_chunks) {
  if (!scalars.apply()) return;
  const float* factors = factors_of(rule, scalars);
  const Chunk chunk = chunks[blockIdx.x];
  const ChunkRange range = of_parameter[blockIdx.x];
  __shared__ float ratio;
  const Squares sum = sum_of(range, of_chunks);
  if (threadIdx.x == 0) {
    ratio = rule.ratio(range.no_decay, chunk.decay, static_cast<float>(sqrt(sum.weights)),
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

template <class Rule>
Lowering lower_rule(const LowerContext& context, const Rule& rule) {
  const auto bind = [rule, def = context.op.def](const Binding& b) {
    const auto& update = static_cast<const OptimizerUpdate&>(*def);
    std::vector<int> ends;
    const auto list = chunks_of(update, b.outputs, ends);
    const auto count = static_cast<int>(list.size());
    const auto chunks = on_device(list);
    const float clip_norm = update.clip_norm;
    if constexpr (Rule::by_parameter) {
      const auto squares = on_device(std::vector<Squares>(list.size()));
      return [=, ranges = on_device(ranges_of_chunks(update, ends))](const Buffers& p) {
        if (count == 0) return;
        const Regions<Rule> regions(p, rule.kept());
        launch(find_directions<Rule>, count, block_threads, p.stream, StepScalars(p), rule, clip_norm, chunks.get(),
               regions, squares.get());
        launch(apply_directions<Rule>, count, block_threads, p.stream, StepScalars(p), rule, clip_norm, chunks.get(),
               ranges.get(), regions, squares.get());
      };
    } else {
      return [=](const Buffers& p) {
        if (count == 0) return;
        launch(optimize<Rule>, count, block_threads, p.stream, StepScalars(p), rule, clip_norm, chunks.get(),
               Regions<Rule>(p, rule.kept()));
      };
    }
  };
  return with_copies(context, bound_kernel(context, bind));
}

}  // namespace

Lowering lower_optimizer(const LowerContext& context) {
  return std::visit(
      [&]<class Rule>(const Rule& rule) {
        if constexpr (FactoredRule<Rule>) {
          return lower_factored(context, rule);
        } else if constexpr (OrthogonalRule<Rule>) {
          return lower_orthogonal(context, rule);
        } else {
          return lower_rule(context, rule);
        }
      },
      context.op.as<OptimizerUpdate>().rule);
}

}  // namespace trainctl::cuda
