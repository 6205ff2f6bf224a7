// Optimizers over the flat regions. Their rules run in one pass over gradients, parameters and states, or in two passes
// if a rule needs the norms of parameters.
#include "core/graph/ops/optimizers/optimizers.h"

#include <array>

#include "core/backend/cpu/kernels.h"
#include "core/backend/cpu/ops/training/optimizer_step.h"

namespace trainctl::cpu {
namespace {

// The flat regions of gradients, parameters and states. Pointers to states that the rule does not keep are null.
template <class Rule>
struct Regions {
  static constexpr std::size_t states_count = Rule::state_names.size();
  const float* gradient;
  float* weight;
  std::array<float*, states_count> states;

  Regions(const Buffers& buffers, unsigned kept) : gradient(buffers.in<float>(0)), weight(buffers.out<float>(0)) {
    std::size_t output = 1;
    for (std::size_t k = 0; k < states_count; ++k) states[k] = kept >> k & 1u ? buffers.out<float>(output++) : nullptr;
  }

  // Calls visit(i, gradient, weight&, states) for the elements [begin, end), with the states `kept`, and writes the
  // changed weights and states back.
  template <unsigned kept, class Visit>
  TRAINCTL_INLINE void each(std::int64_t begin, std::int64_t end, const Visit& visit) const {
    static_assert(states_count <= 3);
    const float* const gradients = gradient;
    float* const weights = weight;
    // Three variables instead of an array, since compilers do not keep the elements of an array in vector registers.
    float *const first = state(0), *const second = state(1), *const third = state(2);
// This is not `omp simd`, which would turn a local variable into an array of lanes if its address is taken.
#pragma GCC ivdep
    for (std::int64_t i = begin; i < end; ++i) {
      float values[3] = {};
      if constexpr (kept & 0b001) values[0] = first[i];
      if constexpr (kept & 0b010) values[1] = second[i];
      if constexpr (kept & 0b100) values[2] = third[i];
      float w = weights[i];
      visit(i, gradients[i], w, values);
      if constexpr (kept & 0b001) first[i] = values[0];
      if constexpr (kept & 0b010) second[i] = values[1];
      if constexpr (kept & 0b100) third[i] = values[2];
      weights[i] = w;
    }
  }

 private:
  TRAINCTL_INLINE float* state(std::size_t k) const { return k < states_count ? states[k] : nullptr; }
};

// Calls run.operator()<kept>() with the mask of kept states as a compile-time constant, so that loops have no branches
// for the states.
template <class Rule, unsigned candidate = Rule::always_kept, class Run>
void with_kept(unsigned kept, const Run& run) {
  if (kept == candidate) return run.template operator()<candidate>();
  constexpr unsigned next = (candidate + 1) | Rule::always_kept;
  if constexpr (next < 1u << Rule::state_names.size()) with_kept<Rule, next>(kept, run);
}

template <class Rule>
Lowering lower_rule(const LowerContext& context, const OptimizerUpdate& def, const Rule& rule) {
  return own_kernel(context, [rule, ranges = def.ranges, weight_decay = def.weight_decay,
                              clip_norm = def.clip_norm](const Buffers& buffers) {
    const Step<Rule> step(buffers, rule, clip_norm);
    if (!step.apply) return;
    const Regions<Rule> regions(buffers, rule.kept());
    with_kept<Rule>(rule.kept(), [&]<unsigned kept>() {
      for (const UpdateRange& range : ranges) {
        const float decay = range.decay ? weight_decay : 0.0f;
        parallel_ranges(range.count, element_grain, [&](std::int64_t begin, std::int64_t end) {
          const std::int64_t offset = range.offset;
          simd([=]() TRAINCTL_INLINE {
            // Local copies, since values accessed by reference would be read again for every element.
            const Rule own = rule;
            const Step<Rule> now = step;
            const auto update = [=](std::int64_t, float gradient, float& w, float* states) TRAINCTL_INLINE {
              own.step(now.factors, now.learning_rate, decay, gradient * now.scale, w, states);
            };
            Regions<Rule>(regions).template each<kept>(offset + begin, offset + end, update);
          });
        });
      }
    });
  });
}

constexpr std::int64_t direction_chunk = element_grain;  // number of elements in a partial sum of a norm
constexpr std::int64_t direction_block = 512;            // number of elements that have their directions in the cache

// Updates the states of [begin, end) and returns the sums of the squares of weights and of directions.
template <unsigned kept, class Rule>
TRAINCTL_INLINE inline Squares directions(const Rule& rule, const Step<Rule>& step, const Regions<Rule>& regions,
                                          float decay, std::int64_t begin, std::int64_t end) {
  Squares squares;
  for (std::int64_t first = begin; first < end; first += direction_block) {
    const std::int64_t last = std::min(end, first + direction_block);
    float values[direction_block];
    float* const found = values;
    const auto direct = [=, &rule, &step](std::int64_t i, float gradient, float& w, float* states) TRAINCTL_INLINE {
      found[i - first] = rule.direction(step.factors, decay, gradient * step.scale, w, states);
    };
    regions.template each<kept>(first, last, direct);
    const float* const weights = regions.weight + first;
    const auto square = [=](std::int64_t i) TRAINCTL_INLINE { return static_cast<double>(found[i]) * found[i]; };
    const auto weight_square = [=](std::int64_t i)
                                   TRAINCTL_INLINE { return static_cast<double>(weights[i]) * weights[i]; };
    squares.directions += lane_sum<double>(last - first, square);
    squares.weights += lane_sum<double>(last - first, weight_square);
  }
  return squares;
}

// Lowers a rule that needs the norms of each parameter. The partial sums of chunks are added in order, so that norms
// have the same bits for any number of threads.
template <class Rule>
Lowering lower_rule_by_parameter(const LowerContext& context, const OptimizerUpdate& def, const Rule& rule) {
  const auto chunks_of = [](const UpdateRange& range) { return (range.count + direction_chunk - 1) / direction_chunk; };
  std::int64_t max_chunks = 0;
  for (const UpdateRange& range : def.ranges) max_chunks = std::max(max_chunks, chunks_of(range));
  const auto run = [=, ranges = def.ranges, weight_decay = def.weight_decay,
                    clip_norm = def.clip_norm](const Buffers& buffers) {
    const Step<Rule> step(buffers, rule, clip_norm);
    if (!step.apply) return;
    const Regions<Rule> regions(buffers, rule.kept());
    auto* squares = buffers.workspace<Squares>();
    with_kept<Rule>(rule.kept(), [&]<unsigned kept>() {
      for (const UpdateRange& range : ranges) {
        const float decay = range.decay ? weight_decay : 0.0f;
        const std::int64_t chunks = chunks_of(range), offset = range.offset, count = range.count;
        parallel_ranges(chunks, 1, [&](std::int64_t begin, std::int64_t end) {
          simd([=, &step, &rule]() TRAINCTL_INLINE {
            for (std::int64_t c = begin; c < end; ++c) {
              squares[c] = directions<kept>(rule, step, regions, decay, offset + c * direction_chunk,
                                            offset + std::min(count, (c + 1) * direction_chunk));
            }
          });
        });
        Squares sum;
        for (std::int64_t c = 0; c < chunks; ++c) {
          sum.weights += squares[c].weights;
          sum.directions += squares[c].directions;
        }
        const float rate =
            step.learning_rate * rule.ratio(!range.decay, decay, static_cast<float>(std::sqrt(sum.weights)),
                                            static_cast<float>(std::sqrt(sum.directions)));
        parallel_ranges(count, element_grain, [&](std::int64_t begin, std::int64_t end) {
          simd([=, &step, &rule]() TRAINCTL_INLINE {
            const auto apply =
                [=, &step, &rule](std::int64_t, float gradient, float& w, float* states)
                    TRAINCTL_INLINE { rule.apply(step.factors, rate, decay, gradient * step.scale, w, states); };
            regions.template each<kept>(offset + begin, offset + end, apply);
          });
        });
      }
    });
  };
  return own_kernel(context, run, max_chunks * static_cast<std::int64_t>(sizeof(Squares)));
}

}  // namespace

Lowering lower_optimizer(const LowerContext& context) {
  const auto& def = context.op.as<OptimizerUpdate>();
  return std::visit(
      [&]<class Rule>(const Rule& rule) {
        if constexpr (FactoredRule<Rule>) {
          return lower_factored(context, def, rule);
        } else if constexpr (OrthogonalRule<Rule>) {
          return lower_orthogonal(context, def, rule);
        } else if constexpr (Rule::by_parameter) {
          return lower_rule_by_parameter(context, def, rule);
        } else {
          return lower_rule(context, def, rule);
        }
      },
      def.rule);
}

}  // namespace trainctl::cpu
