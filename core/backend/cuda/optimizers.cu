// Optimizers over the flat regions: one launch, one pass over gradients, parameters and state.
#include "core/backend/cuda/kernels.h"
#include "core/backend/cuda/own_memory.h"
#include "core/backend/cuda/pack.h"
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

// What one block updates.
struct Piece {
  std::int64_t begin, end;  // elements of the regions
  float decay;
};
constexpr std::int64_t piece_size = 4096;

std::vector<Piece> pieces_of(const OptimizerUpdate& update) {
  std::vector<Piece> pieces;
  for (const UpdateRange& range : update.ranges) {
    const std::int64_t range_end = range.offset + range.count;
    for (std::int64_t begin = range.offset; begin < range_end;) {
      const std::int64_t end = std::min((begin / piece_size + 1) * piece_size, range_end);
      pieces.push_back({begin, end, range.decay ? update.weight_decay : 0.0f});
      begin = end;
    }
  }
  return pieces;
}

// Four elements of a region, of which those from `from` to `to` belong to the piece. Regions of state need not be
// aligned.
struct Four {
  std::int64_t first;
  int from, to;

  __device__ Four(const Piece& piece, std::int64_t group)
      : first(group * 4),
        from(static_cast<int>(max(piece.begin - first, std::int64_t{0}))),
        to(static_cast<int>(min(piece.end - first, std::int64_t{4}))) {}
  __device__ bool whole(const float* region) const { return from == 0 && to == 4 && is_aligned(region + first); }
  __device__ Pack<float, 4> read(const float* region) const {
    if (whole(region)) return pack_at<4>(region + first);
    Pack<float, 4> pack{};
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      if (k >= from && k < to) pack.values[k] = region[first + k];
    }
    return pack;
  }
  __device__ void write(const Pack<float, 4>& pack, float* region) const {
    if (whole(region)) {
      pack_at<4>(region + first) = pack;
      return;
    }
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      if (k >= from && k < to) region[first + k] = pack.values[k];
    }
  }
};

// Calls update(four) for the block's piece.
template <class Update>
__device__ void each_four(const Piece& piece, const Update& update) {
  for (std::int64_t group = piece.begin / 4 + threadIdx.x; group * 4 < piece.end; group += blockDim.x) {
    update(Four(piece, group));
  }
}

struct Sgd {
  float clip_norm, momentum;
  bool nesterov;
};

// velocity is null without momentum.
__global__ void sgd(StepScalars scalars, Sgd s, const Piece* pieces, const float* gradient, float* weight,
                    float* velocity) {
  if (!scalars.apply()) return;
  const float rate = *scalars.learning_rate, scale = scalars.scale(s.clip_norm);
  const Piece piece = pieces[blockIdx.x];
  each_four(piece, [&](const Four& at) {
    const Pack<float, 4> gradients = at.read(gradient);
    Pack<float, 4> weights = at.read(weight), velocities{};
    if (velocity != nullptr) velocities = at.read(velocity);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      float &w = weights.values[k], &v = velocities.values[k];
      const float g = gradients.values[k] * scale + piece.decay * w;
      v = s.momentum * v + g;  // without momentum: g
      w -= rate * (s.nesterov ? g + s.momentum * v : v);
    }
    at.write(weights, weight);
    if (velocity != nullptr) at.write(velocities, velocity);
  });
}

struct Adam {
  float clip_norm, beta_1, beta_2, epsilon;
  bool decoupled;
};

__global__ void adam(StepScalars scalars, Adam a, const Piece* pieces, const float* gradient, float* weight,
                     float* first, float* second) {
  if (!scalars.apply()) return;
  __shared__ float correct[2];  // the powers are float64, and need be taken once a block only
  if (threadIdx.x < 2) {
    const double beta = threadIdx.x == 0 ? a.beta_1 : a.beta_2;
    correct[threadIdx.x] = static_cast<float>(1 / (1 - pow(beta, static_cast<double>(*scalars.step + 1))));
  }
  __syncthreads();
  const float correct_1 = correct[0], correct_2 = correct[1];
  const float rate = *scalars.learning_rate, scale = scalars.scale(a.clip_norm);
  const Piece piece = pieces[blockIdx.x];
  const float coupled = a.decoupled ? 0.0f : piece.decay, shrink = a.decoupled ? 1.0f - rate * piece.decay : 1.0f;
  each_four(piece, [&](const Four& at) {
    const Pack<float, 4> gradients = at.read(gradient);
    Pack<float, 4> weights = at.read(weight), firsts = at.read(first), seconds = at.read(second);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      float &w = weights.values[k], &m = firsts.values[k], &v = seconds.values[k];
      const float g = gradients.values[k] * scale + coupled * w;
      m = a.beta_1 * m + (1.0f - a.beta_1) * g;
      v = a.beta_2 * v + (1.0f - a.beta_2) * g * g;
      w = w * shrink - rate * (m * correct_1) / (sqrtf(v * correct_2) + a.epsilon);
    }
    at.write(weights, weight);
    at.write(firsts, first);
    at.write(seconds, second);
  });
}

// Pieces on the GPU, and how many there are: a block each.
struct Pieces {
  std::shared_ptr<const Piece> data;
  int count;

  explicit Pieces(const std::vector<Piece>& pieces) : data(on_device(pieces)), count(static_cast<int>(pieces.size())) {}
};

}  // namespace

Lowering lower_sgd(const LowerContext& context) {
  const auto& def = context.op.as<SgdUpdate>();
  const Sgd s{def.clip_norm, def.momentum, def.nesterov};
  return own_kernel(context, [s, pieces = Pieces(pieces_of(def))](const Places& p) {
    if (pieces.count == 0) return;
    launch(sgd, pieces.count, block_threads, p.stream, StepScalars(p), s, pieces.data.get(), p.in<float>(0),
           p.out<float>(0), s.momentum > 0 ? p.out<float>(1) : nullptr);
  });
}

Lowering lower_adam(const LowerContext& context) {
  const auto& def = context.op.as<AdamUpdate>();
  const Adam a{def.clip_norm, def.beta_1, def.beta_2, def.epsilon, def.decoupled};
  return own_kernel(context, [a, pieces = Pieces(pieces_of(def))](const Places& p) {
    if (pieces.count == 0) return;
    launch(adam, pieces.count, block_threads, p.stream, StepScalars(p), a, pieces.data.get(), p.in<float>(0),
           p.out<float>(0), p.out<float>(1), p.out<float>(2));
  });
}

}  // namespace trainctl::cuda
