// Ops of the reduction and the update: collectives, agreement, gradient norm, optimizers, running statistics.
//
// They work on flat regions: one tensor of role parameter, gradient (its tail: role reduced) or state covers a whole
// region, and the tensors of single parameters are views of it. Counts and offsets are elements.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "core/graph/op.h"
#include "core/tensor/layout.h"

namespace trainctl {

// Sum over the ranks of the data axis, in place, of [offset, offset + count) of the gradient region.
// Inputs and outputs: the gradient region. Runs on the communication stream after everything queued before it.
struct AllReduce final : OpDef {
  int bucket = 0;
  std::int64_t offset = 0;
  std::int64_t count = 0;

  AllReduce(int b, std::int64_t o, std::int64_t c) : bucket(b), offset(o), count(c) {}
  std::string_view kind() const override { return "all_reduce"; }
  OpTrait trait() const override { return OpTrait::collective; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  double flops(std::span<const TensorType>, std::span<const TensorType>) const override { return 0; }
};

// The compute stream goes on when the bucket is reduced. Inputs and outputs: the gradient region.
struct WaitBucket final : OpDef {
  int bucket = 0;

  explicit WaitBucket(int b) : bucket(b) {}
  std::string_view kind() const override { return "wait"; }
  OpTrait trait() const override { return OpTrait::collective; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  double flops(std::span<const TensorType>, std::span<const TensorType>) const override { return 0; }
};

// Zeroes gradients and sums of a rank that has no samples in this step. Outputs: the gradient region.
struct ZeroGradients final : OpDef {
  std::int64_t count = 0;

  explicit ZeroGradients(std::int64_t c) : count(c) {}
  std::string_view kind() const override { return "zero_gradients"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  double flops(std::span<const TensorType>, std::span<const TensorType>) const override { return 0; }
};

// What the ranks tell each other in every step; a sum over ranks, so that > 0 means "at least one".
enum AgreeFlag : int { agree_not_finite = 0, agree_stop = 1, agree_flags = 2 };

// Inputs: the loss sum, the host's stop request (float32 scalar). Outputs: the flags [agree_flags] (role reduced).
struct Agree final : OpDef {
  std::string_view kind() const override { return "agree"; }
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  double flops(std::span<const TensorType>, std::span<const TensorType>) const override { return 0; }
};

// y = factor * x: what scales a loss gradient that float16 would not hold, and the count that undoes it. Inputs: x, the
// factor (float32 scalar). Outputs: y, of x's type.
struct Scale final : OpDef {
  std::string_view kind() const override { return "scale"; }
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override { return {inputs[0]}; }
};

// The L2 norm of gradient / count over [0, elements) of the gradient region, count being the reduced sum of weights (a
// sum in fixed order, float64 inside). Inputs: the gradient region, count. Outputs: float32 scalar.
struct GradientNorm final : OpDef {
  std::int64_t elements = 0;

  explicit GradientNorm(std::int64_t e) : elements(e) {}
  std::string_view kind() const override { return "gradient_norm"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
};

// A run of the flat layout whose parameters are updated alike.
struct UpdateRange {
  std::int64_t offset = 0;
  std::int64_t count = 0;
  bool decay = true;  // whether weight decay applies
};

// A compute copy that an optimizer writes as it changes the parameter.
struct UpdateCopy {
  std::int64_t offset = 0;  // of the parameter
  Shape shape;
  Layout layout;
};

// Common to the optimizers; outputs() states the part of each region that the ranges reach. Inputs: the gradient
// region, learning rate (float32 scalar), step (int64 scalar, from 0), count (reduced sum of weights, float32), agree
// flags, gradient norm. Outputs: the parameter region, the state regions, and the copies. g = gradient / count, scaled
// by min(1, clip_norm / norm) where clip_norm > 0. Nothing changes when the flag agree_not_finite is set, the gradient
// norm is not finite, or count is 0.
struct OptimizerUpdate : OpDef {
  std::vector<UpdateRange> ranges;
  float clip_norm = 0;     // 0: none
  float weight_decay = 0;  // SGD and Adam: L2, added to g; AdamW: decoupled
  // Whole parameters that train; by lowering, for backends that write them (Backend::updates_copies).
  std::vector<UpdateCopy> copies;

  virtual std::shared_ptr<OptimizerUpdate> clone() const = 0;
};

// PyTorch's and Keras' SGD: v = momentum * v + g; w -= lr * (nesterov ? g + momentum * v : v). State: v, where momentum
// > 0.
struct SgdUpdate final : OptimizerUpdate {
  float momentum = 0;
  bool nesterov = false;

  std::string_view kind() const override { return "sgd"; }
  std::shared_ptr<OptimizerUpdate> clone() const override { return std::make_shared<SgdUpdate>(*this); }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
};

// Adam (Kingma and Ba, 2015) with bias correction; AdamW (Loshchilov and Hutter, 2019) where decoupled. State: m, v.
// w -= lr * mhat / (sqrt(vhat) + epsilon).
struct AdamUpdate final : OptimizerUpdate {
  float beta_1 = 0.9f;
  float beta_2 = 0.999f;
  float epsilon = 1e-7f;
  bool decoupled = false;

  std::string_view kind() const override { return "adam"; }
  std::shared_ptr<OptimizerUpdate> clone() const override { return std::make_shared<AdamUpdate>(*this); }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
};

// moving = momentum * moving + (1 - momentum) * sum / count, for each of a number of statistics. Inputs: the reduced
// sums [C], then count and agree flags. Outputs: the moving statistics [C], in the order of their sums. Gated like the
// optimizers by agree_not_finite.
struct UpdateStatistics final : OpDef {
  std::vector<float> momenta;  // of each statistic

  explicit UpdateStatistics(std::vector<float> of_each) : momenta(std::move(of_each)) {}
  std::string_view kind() const override { return "update_statistics"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
};

}  // namespace trainctl
