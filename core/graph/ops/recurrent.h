// The recurrent computation of LSTM, GRU and simple recurrent layers: the steps of a sequence, one after the other. A
// Dense op before it multiplies the inputs of all steps with the kernel, and a DenseGradWeights op after its gradient
// sums the gradient of the recurrent kernel over all steps. Kernels and biases are float32 parameters; the activations
// share one dtype (float32, bfloat16, float16). The output h that is multiplied with the recurrent kernel is rounded to
// that dtype; other states pass from step to step in float32.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/graph/op.h"
#include "core/graph/ops/recurrent_cells.h"

namespace trainctl {

enum class RecurrentCell { lstm, gru, simple };

// Dropout of h where it is multiplied with the recurrent kernel (Gal and Ghahramani, 2016): the mask has one value for
// each sample and unit, which is the same in all steps and is that of Dropout with DropoutUnit::channel.
struct RecurrentDropout {
  float rate = 0;  // 0: none
  std::uint64_t seed = 0;
  std::uint32_t layer = 0;  // name_hash of the layer's path
};

struct RecurrentAttributes {
  RecurrentCell cell = RecurrentCell::lstm;
  bool sequences = true;   // whether y has all steps instead of only the last one
  bool backwards = false;  // whether steps are computed from the last to the first
  bool reversed = false;   // whether y has the steps in reverse order of computation
  bool masked = false;     // whether a mask tells which steps are computed; all states stay the same in the others
  bool begins = false;     // whether the states before the first step are inputs instead of 0
  bool returns_c = false;  // whether the last cell state of an LSTM is an output
  RecurrentDropout dropout = {};

  bool drops() const { return dropout.rate != 0; }
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

// The numbers of the inputs of Recurrent; -1: the input is absent.
struct RecurrentInputs {
  int x = 0, kernel = 1, bias = -1;
  int h = -1, c = -1;  // the states before the first step
  int samples = -1, step = -1;
  int mask = -1;

  RecurrentInputs(const RecurrentAttributes& a, std::size_t count);
};

// Inputs: x [N, T, gates * U], recurrent kernel [U, gates * U], with GRU a recurrent bias [gates * U] (optional); if
// the op `begins`, the states h and, with LSTM, c before the first step [N, U]; with dropout the sample numbers int64
// [N] and the step, an int64 scalar; and if `masked` a mask uint8 [N, T], which is 0 at the steps of x that are left
// out: there, y is that of the step before, or h at first. The columns of the gates are stored one gate after the
// other. Outputs: y [N, T, U], or [N, U] if not `sequences`; in training also the values that the gradient needs, in
// the order of the steps of x: the gates (like x; in place on x), the memories of the cells and the h before each step
// ([N, T, U]); at the end, if the op `returns_c`, the cell state c after the last step [N, U].
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

// The numbers of the inputs of RecurrentGrad; -1: the input is absent.
struct RecurrentGradInputs {
  int dy = 0, gates = 1, memories = 2, states = 3, kernel = 4;
  int c = -1;   // the cell state before the first step
  int dc = -1;  // the gradient with respect to the cell state after the last step
  int samples = -1, step = -1;
  int mask = -1;

  RecurrentGradInputs(const RecurrentAttributes& a, bool has_dy);
};

// Inputs: dy (like y; only if `has_dy`), then the gates, the memories and the h before each step from Recurrent, the
// recurrent kernel, an LSTM's c before the first step if the forward op `begins`, the gradient dc with respect to the
// last cell state if it `returns_c`, the sample numbers and the step with dropout, and if `masked` the mask. Outputs:
// dx [N, T, gates * U] (in place on the gates); for a cell with `splits` the gradient with respect to the recurrent
// product, like dx; and if the forward op `begins`, the gradients with respect to the states before the first step.
struct RecurrentGrad final : OpDef {
  RecurrentAttributes a;
  bool has_dy = true;  // whether the loss depends on y, and not only on the last cell state

  explicit RecurrentGrad(RecurrentAttributes attributes, bool with_dy = true) : a(attributes), has_dy(with_dy) {}
  std::string_view kind() const override { return "recurrent_grad"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
  std::vector<InPlace> in_place() const override { return {{RecurrentGradInputs(a, has_dy).gates, 0}}; }
};

}  // namespace trainctl
