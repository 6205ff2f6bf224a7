// Computes the steps of recurrent layers, forward and backward. Each step runs one matrix product with the recurrent
// kernel, in cuBLASLt, for all samples, and one CUDA kernel for all gates. Products have float32 results.
#include "core/graph/ops/recurrent.h"

#include "core/backend/cuda/cublaslt/product.h"
#include "core/backend/cuda/device/divisor.h"
#include "core/backend/cuda/device/grid.h"
#include "core/backend/cuda/device/pack.h"
#include "core/backend/cuda/device/rule_math.h"
#include "core/backend/cuda/kernels.h"

namespace trainctl::cuda {
namespace {

struct Sizes : RecurrentSizes {
  using RecurrentSizes::RecurrentSizes;

  std::int64_t states() const { return samples * units; }
};

// Allocates the tensors of a workspace: add() returns the offset of a tensor, in bytes.
class WorkspaceLayout {
 public:
  std::int64_t add(std::int64_t values, DType dtype) {
    const std::int64_t offset = bytes_;
    bytes_ += workspace_section(values * size_of(dtype));
    return offset;
  }
  std::int64_t bytes() const { return bytes_; }

 private:
  std::int64_t bytes_ = 0;
};

// The elements [samples, units] of a step, and the distances between consecutive samples, counted in steps.
struct StepGrid {
  std::uint32_t count, units;
  std::int64_t steps;    // number of steps in tensors that hold all steps
  std::int64_t y_steps;  // number of steps in y: 1 if it holds the last step only
  Divisor by_units;

  explicit StepGrid(const Sizes& s)
      : count(narrow(s.states())),
        units(static_cast<std::uint32_t>(s.units)),
        steps(s.steps),
        y_steps(s.a.sequences ? s.steps : 1),
        by_units(s.units) {}
};

// The tensors of a forward step. Each pointer points to this step of the first sample. Some are null: y if the op does
// not output this step, `bias` if there is none, `product` at the first step, and gates, memories and before outside
// training, and `mask` if no step is left out.
template <class T>
struct ForwardStep {
  const T* x;
  const std::uint8_t* mask;
  const float *product, *bias;
  float* carry;  // [samples, units]
  T* h;          // [samples, units]: the input of the next product
  T *y, *gates, *memories, *before;
};

template <class Cell, class T>
__global__ void take_step(StepGrid grid, ForwardStep<T> s) {
  constexpr int gates = Cell::gates;
  for (auto i = static_cast<std::uint32_t>(first_element()); i < grid.count; i += element_stride()) {
    const std::uint32_t sample = grid.by_units.quotient(i), unit = grid.by_units.remainder(i, sample);
    const std::int64_t columns = std::int64_t{gates} * grid.units, row = sample * grid.steps;
    const bool left_out = s.mask != nullptr && s.mask[row] == 0;
    float x[gates], recurrent[gates], gate[gates] = {}, memory = 0;
    for (int g = 0; g < gates; ++g) {
      const std::int64_t column = std::int64_t{g} * grid.units + unit;
      x[g] = load(s.x[row * columns + column]);
      recurrent[g] = s.product != nullptr ? s.product[sample * columns + column] : 0.0f;
      if (s.bias != nullptr) recurrent[g] += s.bias[column];
    }
    const bool first = s.product == nullptr;
    float carry = first ? 0.0f : s.carry[i];
    const T before = first ? store<T>(0.0f) : s.h[i];
    T h = before;
    if (left_out) {
      memory = carry;  // the following step's gradient of an LSTM reads it
    } else {
      h = store<T>(Cell::template step<Math>(x, recurrent, gate, carry, memory));
    }
    s.carry[i] = carry;
    s.h[i] = h;
    if (s.y != nullptr) s.y[sample * grid.y_steps * grid.units + unit] = h;
    if (s.gates == nullptr) continue;
    for (int g = 0; g < gates; ++g) {
      s.gates[row * columns + std::int64_t{g} * grid.units + unit] = store<T>(gate[g]);
    }
    s.memories[row * grid.units + unit] = store<T>(memory);
    s.before[row * grid.units + unit] = before;
  }
}

// The tensors of a backward step. Some are null: dy if the op does not output this step, `memories_before` at the first
// step, `dh` at the last step, `drecurrent` if the cell does not split, and mask and `passed` if no step is left out.
template <class T>
struct GradientStep {
  const T *dy, *gates, *memories, *memories_before, *before;
  const std::uint8_t* mask;
  const float* dh;  // [samples, units]: from the following step
  float* passed;    // [samples, units]: the gradient of h that a step which is left out passes to the step before
  float* dcarry;    // [samples, units]
  T* dproduct;      // [samples, gates * units]: the input of the product
  T *dx, *drecurrent;
};

template <class Cell, class T>
__global__ void take_step_back(StepGrid grid, GradientStep<T> s) {
  constexpr int gates = Cell::gates;
  for (auto i = static_cast<std::uint32_t>(first_element()); i < grid.count; i += element_stride()) {
    const std::uint32_t sample = grid.by_units.quotient(i), unit = grid.by_units.remainder(i, sample);
    const std::int64_t columns = std::int64_t{gates} * grid.units, row = sample * grid.steps,
                       state = row * grid.units + unit;
    float gate[gates], dx[gates], drecurrent[gates];
    for (int g = 0; g < gates; ++g) {
      gate[g] = load(s.gates[row * columns + std::int64_t{g} * grid.units + unit]);
    }
    const float dy = s.dy != nullptr ? load(s.dy[sample * grid.y_steps * grid.units + unit]) : 0.0f;
    const bool last = s.dh == nullptr;
    float dcarry = last ? 0.0f : s.dcarry[i], dh = dy + (last ? 0.0f : s.dh[i]);
    if (s.mask != nullptr && !last) dh += s.passed[i];
    const bool left_out = s.mask != nullptr && s.mask[row] == 0;
    if (s.mask != nullptr) s.passed[i] = left_out ? dh : 0.0f;
    if (left_out) {
      for (int g = 0; g < gates; ++g) dx[g] = drecurrent[g] = 0.0f;
    } else {
      Cell::template gradient<Math>(dh, gate, load(s.memories[state]),
                                    s.memories_before != nullptr ? load(s.memories_before[state]) : 0.0f,
                                    load(s.before[state]), dcarry, dx, drecurrent);
    }
    s.dcarry[i] = dcarry;
    for (int g = 0; g < gates; ++g) {
      const std::int64_t column = std::int64_t{g} * grid.units + unit;
      const T rounded = store<T>(drecurrent[g]);
      s.dx[row * columns + column] = store<T>(dx[g]);
      if (s.drecurrent != nullptr) s.drecurrent[row * columns + column] = rounded;
      s.dproduct[sample * columns + column] = rounded;
    }
  }
}

// The lowering, with the recurrent kernel as a compute copy in the dtype of the products.
template <class Body>
Lowering lower_steps(const LowerContext& context, std::size_t kernel, DType dtype, const Product& product,
                     const WorkspaceLayout& layout, Body body) {
  Lowering lowering = own_kernel(context, std::move(body), layout.bytes());
  lowering.inputs[kernel] = {dtype, "", context.input(kernel).shape.count() * size_of(dtype)};
  lowering.implementation = "own, " + product.implementation();
  return lowering;
}

template <class Cell, class T>
Lowering lower_forward(const LowerContext& context, const Sizes& s) {
  const DType dtype = context.input(0).dtype;
  const Product product(context.device, {s.samples, s.columns, s.units, false, false, dtype, DType::float32},
                        context.choices, context.label());
  WorkspaceLayout layout;
  const std::int64_t scratch = layout.add(product.workspace_bytes(), DType::uint8),
                     products = layout.add(s.samples * s.columns, DType::float32),
                     carry = layout.add(s.states(), DType::float32), h = layout.add(s.states(), dtype);
  const bool bias = context.op.inputs.size() > (s.a.masked ? 3 : 2), training = context.op.as<Recurrent>().training;
  const StepGrid grid(s);
  return lower_steps(context, 1, dtype, product, layout, [=](const Buffers& p) {
    for (std::int64_t step = 0; step < s.steps; ++step) {
      float* const result = p.workspace<float>(products);
      if (step > 0) {
        product.run(p.stream, p.workspace<void>(h), p.in<void>(1), result, nullptr, p.workspace<void>(scratch));
      }
      const std::int64_t position = s.position_in_x(step), y_position = s.position_in_y(step);
      ForwardStep<T> tensors{};
      tensors.x = p.in<T>(0) + position * s.columns;
      if (s.a.masked) tensors.mask = p.in<std::uint8_t>(bias ? 3 : 2) + position;
      tensors.product = step > 0 ? result : nullptr;
      tensors.bias = bias ? p.in<float>(2) : nullptr;
      tensors.carry = p.workspace<float>(carry);
      tensors.h = p.workspace<T>(h);
      if (s.has_y(step)) tensors.y = p.out<T>(0) + y_position * s.units;
      if (training) {
        tensors.gates = p.out<T>(1) + position * s.columns;
        tensors.memories = p.out<T>(2) + position * s.units;
        tensors.before = p.out<T>(3) + position * s.units;
      }
      launch(take_step<Cell, T>, blocks_for(grid.count), block_threads, p.stream, grid, tensors);
    }
  });
}

template <class Cell, class T>
Lowering lower_backward(const LowerContext& context, const Sizes& s) {
  const DType dtype = context.input(1).dtype;
  const Product product(context.device, {s.samples, s.units, s.columns, false, true, dtype, DType::float32},
                        context.choices, context.label());
  WorkspaceLayout layout;
  const std::int64_t scratch = layout.add(product.workspace_bytes(), DType::uint8),
                     dproducts = layout.add(s.samples * s.columns, dtype),
                     dcarry = layout.add(s.states(), DType::float32), dh = layout.add(s.states(), DType::float32),
                     passed = layout.add(s.a.masked ? s.states() : 0, DType::float32);
  const StepGrid grid(s);
  return lower_steps(context, 4, dtype, product, layout, [=](const Buffers& p) {
    for (std::int64_t step = s.steps - 1; step >= 0; --step) {
      const std::int64_t position = s.position_in_x(step), y_position = s.position_in_y(step);
      const bool last = step + 1 == s.steps;
      GradientStep<T> tensors{};
      if (s.has_y(step)) tensors.dy = p.in<T>(0) + y_position * s.units;
      tensors.gates = p.in<T>(1) + position * s.columns;
      tensors.memories = p.in<T>(2) + position * s.units;
      if (step > 0) tensors.memories_before = p.in<T>(2) + s.position_in_x(step - 1) * s.units;
      tensors.before = p.in<T>(3) + position * s.units;
      tensors.dh = last ? nullptr : p.workspace<float>(dh);
      if (s.a.masked) {
        tensors.mask = p.in<std::uint8_t>(5) + position;
        tensors.passed = p.workspace<float>(passed);
      }
      tensors.dcarry = p.workspace<float>(dcarry);
      tensors.dproduct = p.workspace<T>(dproducts);
      tensors.dx = p.out<T>(0) + position * s.columns;
      if (Cell::splits) tensors.drecurrent = p.out<T>(1) + position * s.columns;
      launch(take_step_back<Cell, T>, blocks_for(grid.count), block_threads, p.stream, grid, tensors);
      if (step == 0) continue;
      product.run(p.stream, tensors.dproduct, p.in<void>(4), p.workspace<void>(dh), nullptr,
                  p.workspace<void>(scratch));
    }
  });
}

}  // namespace

Lowering lower_recurrent(const LowerContext& context) {
  const auto& def = context.op.as<Recurrent>();
  const Sizes sizes(context.input(0).shape, context.input(1).shape, def.a);
  return with_type(context.input(0).dtype, [&](auto type) {
    using T = decltype(type);
    return with_cell(def.a.cell, [&](auto cell) { return lower_forward<decltype(cell), T>(context, sizes); });
  });
}

Lowering lower_recurrent_grad(const LowerContext& context) {
  const auto& def = context.op.as<RecurrentGrad>();
  const Sizes sizes(context.input(1).shape, context.input(4).shape, def.a);
  return with_type(context.input(1).dtype, [&](auto type) {
    using T = decltype(type);
    return with_cell(def.a.cell, [&](auto cell) { return lower_backward<decltype(cell), T>(context, sizes); });
  });
}

}  // namespace trainctl::cuda
