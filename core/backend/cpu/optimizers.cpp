// Optimizers over the flat regions: one pass over gradients, parameters and state.
#include <cmath>

#include "core/backend/cpu/kernels.h"
#include "core/graph/ops/update.h"

namespace trainctl::cpu {
namespace {

// The scalars of a step. `apply` is false where nothing may change.
struct Step {
  bool apply = false;
  float learning_rate = 0;
  float scale = 0;  // of the summed gradients: 1 / count, times the clipping
  double number = 0;
};

Step read_step(const Places& places, float clip_norm) {
  const float count = *places.in<float>(3), norm = *places.in<float>(5);
  Step step;
  step.apply = places.in<float>(4)[agree_not_finite] == 0 && std::isfinite(norm) && count > 0;
  step.learning_rate = *places.in<float>(1);
  step.scale = clip_norm > 0 && norm > clip_norm ? clip_norm / norm / count : 1.0f / count;
  step.number = static_cast<double>(*places.in<std::int64_t>(2));
  return step;
}

// Calls update(begin, end, decay) on parts of the ranges.
template <class Update>
void each_range(const std::vector<UpdateRange>& ranges, float weight_decay, const Update& update) {
  for (const UpdateRange& range : ranges) {
    const float decay = range.decay ? weight_decay : 0.0f;
    parallel_ranges(range.count, element_grain, [&](std::int64_t begin, std::int64_t end) {
      update(range.offset + begin, range.offset + end, decay);
    });
  }
}

}  // namespace

Lowering lower_sgd(const LowerContext& context) {
  const SgdUpdate def = context.op.as<SgdUpdate>();
  return own_kernel(context, [def](const Places& places) {
    const Step step = read_step(places, def.clip_norm);
    if (!step.apply) return;
    const float* gradient = places.in<float>(0);
    float* weight = places.out<float>(0);
    float* velocity = def.momentum > 0 ? places.out<float>(1) : nullptr;
    const float rate = step.learning_rate, scale = step.scale, momentum = def.momentum;
    const bool nesterov = def.nesterov;
    each_range(def.ranges, def.weight_decay, [=](std::int64_t begin, std::int64_t end, float decay) {
      simd([=]() TRAINCTL_INLINE {
        if (velocity == nullptr) {
#pragma omp simd
          for (std::int64_t i = begin; i < end; ++i) {
            weight[i] -= rate * (gradient[i] * scale + decay * weight[i]);
          }
          return;
        }
#pragma omp simd
        for (std::int64_t i = begin; i < end; ++i) {
          const float g = gradient[i] * scale + decay * weight[i];
          const float v = momentum * velocity[i] + g;
          velocity[i] = v;
          weight[i] -= rate * (nesterov ? g + momentum * v : v);
        }
      });
    });
  });
}

Lowering lower_adam(const LowerContext& context) {
  const AdamUpdate def = context.op.as<AdamUpdate>();
  return own_kernel(context, [def](const Places& places) {
    const Step step = read_step(places, def.clip_norm);
    if (!step.apply) return;
    const float* gradient = places.in<float>(0);
    float* weight = places.out<float>(0);
    float* first = places.out<float>(1);
    float* second = places.out<float>(2);
    const float rate = step.learning_rate, scale = step.scale, epsilon = def.epsilon;
    const float beta_1 = def.beta_1, beta_2 = def.beta_2;
    const auto correct_1 = static_cast<float>(1 / (1 - std::pow(static_cast<double>(beta_1), step.number + 1)));
    const auto correct_2 = static_cast<float>(1 / (1 - std::pow(static_cast<double>(beta_2), step.number + 1)));
    each_range(def.ranges, def.weight_decay,
               [=, decoupled = def.decoupled](std::int64_t begin, std::int64_t end, float decay) {
                 const float coupled_decay = decoupled ? 0.0f : decay;
                 const float shrink = decoupled ? 1.0f - rate * decay : 1.0f;
                 simd([=]() TRAINCTL_INLINE {
#pragma omp simd
                   for (std::int64_t i = begin; i < end; ++i) {
                     const float g = gradient[i] * scale + coupled_decay * weight[i];
                     const float m = beta_1 * first[i] + (1.0f - beta_1) * g;
                     const float v = beta_2 * second[i] + (1.0f - beta_2) * g * g;
                     first[i] = m;
                     second[i] = v;
                     weight[i] =
                         weight[i] * shrink - rate * (m * correct_1) / (__builtin_sqrtf(v * correct_2) + epsilon);
                   }
                 });
               });
  });
}

}  // namespace trainctl::cpu
