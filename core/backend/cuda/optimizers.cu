// Optimizers over the flat regions: one pass over gradients, parameters and state for each run of parameters.
#include "core/backend/cuda/grid.h"
#include "core/backend/cuda/kernels.h"
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

struct Sgd {
  float clip_norm, momentum, decay;
  bool nesterov;
};

__global__ void sgd(StepScalars scalars, Sgd s, const float* gradient, float* weight, float* velocity,
                    std::int64_t count) {
  if (!scalars.apply()) return;
  const float rate = *scalars.learning_rate, scale = scalars.scale(s.clip_norm);
  for (std::int64_t i = first_element(); i < count; i += element_stride()) {
    const float g = gradient[i] * scale + s.decay * weight[i];
    if (velocity == nullptr) {
      weight[i] -= rate * g;
      continue;
    }
    const float v = s.momentum * velocity[i] + g;
    velocity[i] = v;
    weight[i] -= rate * (s.nesterov ? g + s.momentum * v : v);
  }
}

struct Adam {
  float clip_norm, beta_1, beta_2, epsilon, decay;
  bool decoupled;
};

__global__ void adam(StepScalars scalars, Adam a, const float* gradient, float* weight, float* first, float* second,
                     std::int64_t count) {
  if (!scalars.apply()) return;
  __shared__ float correct[2];  // the powers are float64, and need be taken once a block only
  if (threadIdx.x < 2) {
    const double beta = threadIdx.x == 0 ? a.beta_1 : a.beta_2;
    correct[threadIdx.x] = static_cast<float>(1 / (1 - pow(beta, static_cast<double>(*scalars.step + 1))));
  }
  __syncthreads();
  const float rate = *scalars.learning_rate, scale = scalars.scale(a.clip_norm);
  const float coupled = a.decoupled ? 0.0f : a.decay, shrink = a.decoupled ? 1.0f - rate * a.decay : 1.0f;
  for (std::int64_t i = first_element(); i < count; i += element_stride()) {
    const float g = gradient[i] * scale + coupled * weight[i];
    const float m = a.beta_1 * first[i] + (1.0f - a.beta_1) * g;
    const float v = a.beta_2 * second[i] + (1.0f - a.beta_2) * g * g;
    first[i] = m;
    second[i] = v;
    weight[i] = weight[i] * shrink - rate * (m * correct[0]) / (sqrtf(v * correct[1]) + a.epsilon);
  }
}

}  // namespace

Lowering lower_sgd(const LowerContext& context) {
  const SgdUpdate def = context.op.as<SgdUpdate>();
  return own_kernel(context, [def](const Places& p) {
    float* velocity = def.momentum > 0 ? p.out<float>(1) : nullptr;
    for (const UpdateRange& r : def.ranges) {
      const Sgd s{def.clip_norm, def.momentum, r.decay ? def.weight_decay : 0.0f, def.nesterov};
      launch(sgd, blocks_for(r.count, 4), block_threads, p.stream, StepScalars(p), s, p.in<float>(0) + r.offset,
             p.out<float>(0) + r.offset, velocity == nullptr ? nullptr : velocity + r.offset, r.count);
    }
  });
}

Lowering lower_adam(const LowerContext& context) {
  const AdamUpdate def = context.op.as<AdamUpdate>();
  return own_kernel(context, [def](const Places& p) {
    for (const UpdateRange& r : def.ranges) {
      const Adam a{def.clip_norm, def.beta_1, def.beta_2, def.epsilon, r.decay ? def.weight_decay : 0.0f,
                   def.decoupled};
      launch(adam, blocks_for(r.count, 4), block_threads, p.stream, StepScalars(p), a, p.in<float>(0) + r.offset,
             p.out<float>(0) + r.offset, p.out<float>(1) + r.offset, p.out<float>(2) + r.offset, r.count);
    }
  });
}

}  // namespace trainctl::cuda
