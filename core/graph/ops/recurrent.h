// The recurrent computation of LSTM, GRU and simple recurrent layers: the steps of a sequence, one after the other. A
// Dense op before it multiplies the inputs of all steps with the kernel, and a DenseGradWeights op after its gradient
// sums the gradient of the recurrent kernel over all steps. Kernels and biases are float32 parameters; the activations
// share one dtype (float32, bfloat16, float16). The output h that is multiplied with the recurrent kernel is rounded to
// that dtype; other states pass from step to step in float32.
#pragma once

#include "core/graph/op.h"
#include "core/graph/ops/recurrent_cells.h"

namespace trainctl {

enum class RecurrentCell { lstm, gru, simple };

struct RecurrentAttributes {
  RecurrentCell cell = RecurrentCell::lstm;
  bool sequences = true;   // whether y has all steps instead of only the last one
  bool backwards = false;  // whether steps are computed from the last to the first
  bool reversed = false;   // whether y has the steps in reverse order of computation
  bool masked = false;     // whether a mask tells which steps are computed; all states stay the same in the others
};

// The sizes of an op, and the positions in its tensors of the step that is computed as number `step` (from 0).
struct RecurrentSizes {
  std::int64_t samples, steps, units, columns;
  RecurrentAttributes a;

  RecurrentSizes(const Shape& x, const Shape& kernel, const RecurrentAttributes& attributes)
      : samples(x[0]), steps(x[1]), units(kernel[0]), columns(x[2]), a(attributes) {}

  std::int64_t position_in_x(std::int64_t step) const { return a.backwards ? steps - 1 - step : step; }
  bool has_y(std::int64_t step) const { return a.sequences || step + 1 == steps; }
  // Only for a step for which has_y() is true.
  std::int64_t position_in_y(std::int64_t step) const {
    return !a.sequences ? 0 : a.reversed ? steps - 1 - step : step;
  }
};

constexpr std::string_view name_of(RecurrentCell cell) {
  return cell == RecurrentCell::lstm ? "lstm" : cell == RecurrentCell::gru ? "gru" : "simple";
}

// Calls body(Cell{}) with the struct that implements the cell, and returns its result.
template <class Body>
auto with_cell(RecurrentCell cell, const Body& body) {
  if (cell == RecurrentCell::simple) return body(SimpleCell{});
  return cell == RecurrentCell::lstm ? body(LstmCell{}) : body(GruCell{});
}

// Inputs: x [N, T, gates * U], recurrent kernel [U, gates * U], with GRU a recurrent bias [gates * U] (optional), and
// if `masked` a mask uint8 [N, T], which is 0 at the steps of x that are left out: there, y is that of the step before,
// or 0 at first. The columns of the gates are stored one gate after the other. Outputs: y [N, T, U], or [N, U] if not
// `sequences`. In training also the values that the gradient needs, in the order of the steps of x: the gates (like x;
// in place on x), the memories of the cells and the h before each step ([N, T, U]).
struct Recurrent final : OpDef {
  RecurrentAttributes a;
  bool training = false;

  Recurrent(RecurrentAttributes attributes, bool in_training) : a(attributes), training(in_training) {}
  std::string_view kind() const override { return "recurrent"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
  std::vector<InPlace> in_place() const override {
    return training ? std::vector<InPlace>{{0, 1}} : std::vector<InPlace>{};
  }
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

// Inputs: dy (like y), then the gates, the memories and the h before each step from Recurrent, the recurrent kernel,
// and if `masked` the mask. Outputs: dx [N, T, gates * U] (in place on the gates), and for a cell with `splits` the
// gradient with respect to the recurrent product, like dx.
struct RecurrentGrad final : OpDef {
  RecurrentAttributes a;

  explicit RecurrentGrad(RecurrentAttributes attributes) : a(attributes) {}
  std::string_view kind() const override { return "recurrent_grad"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
  std::vector<InPlace> in_place() const override { return {{1, 0}}; }
};

}  // namespace trainctl
