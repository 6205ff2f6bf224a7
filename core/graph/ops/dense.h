// Dense layers, forward and backward: matrix products over the last dimension. All dimensions before it are rows (N
// below). A kernel [in, out] may have several dimensions for either side, as those of einsum_dense: their products are
// in and out, and a bias may have the dimensions of out. Kernels and biases are float32 parameters; a backend that
// computes in another dtype or layout asks for a compute copy when it lowers the op. x, y, dx, dy share one dtype
// (float32, bfloat16, float16).
#pragma once

#include <optional>
#include <utility>

#include "core/graph/ops/elementwise/activations.h"

namespace trainctl {

// A kernel as a matrix [in, out], given the size of one side.
inline Shape kernel_of_inputs(const Shape& kernel, std::int64_t in) { return {in, kernel.count() / in}; }
inline Shape kernel_of_outputs(const Shape& kernel, std::int64_t out) { return {kernel.count() / out, out}; }

// y = f(x kernel + bias). Inputs: x [N..., in], kernel [in, out], bias [out] (optional). Outputs: y [N..., out].
struct Dense final : OpDef {
  ActivationFunction function;

  explicit Dense(ActivationFunction f = {}) : function(f) {}
  std::string_view kind() const override { return "dense"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  int bias() const override { return 2; }
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
  std::optional<Op> fused_with(const Op& op, const Op& reader, std::size_t operand) const override;
  bool may_hide_nan() const override { return function.kind != ActivationKind::none; }
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

// dx = dy kernel^T, either multiplied by f' of the previous op's activation or added to another gradient of x. Inputs:
// dy [N..., out], kernel [in, out], and a third input like dx: the output y of the previous op's activation if
// `function` is not none, or the other gradient of x if the op accumulates. Outputs: dx [N..., in]. In place on that
// other gradient.
// As a forward op it is the product with a transposed kernel, such as that of a tied embedding, and has gradients.
struct DenseGradInput final : OpDef {
  ActivationFunction function;  // activation of the previous op, if its gradient is fused; set by the fusion pass
  bool accumulate = false;      // set by the fusion pass

  explicit DenseGradInput(ActivationFunction f = {}, bool a = false) : function(f), accumulate(a) {}
  std::string_view kind() const override { return "dense_grad_input"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
  void differentiate(const Op& op, Differentiator& differentiator) const override;
  std::vector<InPlace> in_place() const override;
  std::optional<Op> fused_with(const Op& op, const Op& reader, std::size_t operand) const override;
};

// dkernel (+)= x^T dy, dbias (+)= sum of dy over rows. Inputs: x [N..., in], dy [N..., out]. Outputs: dkernel float32
// [in, out], dbias float32 [out] (if `bias`). They are sums over the rows of the micro-batch.
struct DenseGradWeights final : OpDef {
  bool bias = true;
  bool accumulate = false;  // add to the outputs instead of overwriting them (micro-batches after the first)
  // The shapes of kernel and bias if the kernel has more than two dimensions.
  std::optional<std::pair<Shape, Shape>> shapes;

  DenseGradWeights(bool b, bool a) : bias(b), accumulate(a) {}
  std::string_view kind() const override { return "dense_grad_weights"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
};

}  // namespace trainctl
