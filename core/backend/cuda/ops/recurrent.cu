// Computes the steps of recurrent layers, forward and backward. Each step runs one matrix product with the recurrent
// kernel, in cuBLASLt, for all samples, and one CUDA kernel for all gates. Products have float32 results.
#include "core/graph/ops/recurrent.h"

#include "core/backend/cuda/cublaslt/product.h"
#include "core/backend/cuda/device/divisor.h"
#include "core/backend/cuda/device/grid.h"
#include "core/backend/cuda/device/pack.h"
#include "core/backend/cuda/device/rule_math.h"
#include "core/backend/cuda/kernels.h"
#include "core/base/random.h"

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

// The input with this number; null if the number is negative.
template <class T>
const T* input_or_null(const Buffers& p, int number) {
  return number < 0 ? nullptr : p.in<T>(static_cast<std::size_t>(number));
}

// The factors of h in the recurrent product [samples, units]: 0 or 1 / (1 - rate).
__global__ void draw_factors(StepGrid grid, RecurrentDropout dropout, const std::int64_t* numbers,
                             const std::int64_t* step, float* factors) {
  const RandomKey key{dropout.seed, Purpose::dropout, static_cast<std::uint32_t>(*step), dropout.layer};
  for (auto i = static_cast<std::uint32_t>(first_element()); i < grid.count; i += element_stride()) {
    const std::uint32_t sample = grid.by_units.quotient(i), unit = grid.by_units.remainder(i, sample);
    const PhiloxBlock drawn = key.block(static_cast<std::uint64_t>(numbers[sample]), unit / philox_words);
    const bool keeps = uniform01(drawn[unit % philox_words]) >= dropout.rate;
    factors[i] = keeps ? 1.0f / (1.0f - dropout.rate) : 0.0f;
  }
}

// The states [samples, units] before the first step: h, the carry from `carry_from` (0 if it is null), and h times the
// factors, which may be null.
template <class T>
__global__ void begin_states(std::uint32_t count, const T* from, const T* carry_from, const float* factors, T* h,
                             float* carry, T* dropped) {
  for (auto i = static_cast<std::uint32_t>(first_element()); i < count; i += element_stride()) {
    h[i] = from[i];
    carry[i] = carry_from != nullptr ? load(carry_from[i]) : 0.0f;
    if (factors != nullptr) dropped[i] = store<T>(load(from[i]) * factors[i]);
  }
}

// The tensors of a forward step. Each pointer points to this step of the first sample. Some are null: y if the op does
// not output this step, `bias` if there is none, `product` at a first step with states 0, and gates, memories and
// before outside training, `mask` if no step is left out, the factors and `dropped` without dropout, and `last_carry`
// except at a last step whose carry is an output.
template <class T>
struct ForwardStep {
  const T* x;
  const std::uint8_t* mask;
  const float *product, *bias;
  float* carry;          // [samples, units]
  T* h;                  // [samples, units]: the input of the next product, except with dropout
  const float* factors;  // [samples, units]
  T* dropped;            // [samples, units]: with dropout, h times the factors, the input of the next product
  T *y, *gates, *memories, *before;
  T* last_carry;  // [samples, units]
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
    if (s.factors != nullptr) s.dropped[i] = store<T>(load(h) * s.factors[i]);
    if (s.last_carry != nullptr) s.last_carry[i] = store<T>(carry);
    if (s.y != nullptr) s.y[sample * grid.y_steps * grid.units + unit] = h;
    if (s.gates == nullptr) continue;
    for (int g = 0; g < gates; ++g) {
      s.gates[row * columns + std::int64_t{g} * grid.units + unit] = store<T>(gate[g]);
    }
    s.memories[row * grid.units + unit] = store<T>(memory);
    s.before[row * grid.units + unit] = before;
  }
}

// The tensors of a backward step. Some are null: dy if the loss does not depend on the output of this step,
// `memories_before` at the first step, `begin` unless this is a first step with a carry, `dlast` if the loss does not
// depend on the last carry, `dh` at the last step, `drecurrent` if the cell does not split, mask and `passed` if no
// step is left out, and the factors without dropout.
template <class T>
struct GradientStep {
  const T *dy, *gates, *memories, *memories_before, *before;
  const T *begin, *dlast;  // [samples, units]: the carry before the first step, the gradient of the last carry
  const float* factors;    // [samples, units]
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
    float dcarry = last ? 0.0f : s.dcarry[i], dh = dy;
    if (last && s.dlast != nullptr) dcarry = load(s.dlast[i]);
    if (!last) dh += s.factors != nullptr ? s.dh[i] * s.factors[i] : s.dh[i];
    if (s.mask != nullptr && !last) dh += s.passed[i];
    float memory_before = s.memories_before != nullptr ? load(s.memories_before[state]) : 0.0f;
    if (s.begin != nullptr) memory_before = load(s.begin[i]);
    const bool left_out = s.mask != nullptr && s.mask[row] == 0;
    if (s.mask != nullptr) s.passed[i] = left_out ? dh : 0.0f;
    if (left_out) {
      for (int g = 0; g < gates; ++g) dx[g] = drecurrent[g] = 0.0f;
    } else {
      Cell::template gradient<Math>(dh, gate, load(s.memories[state]), memory_before, load(s.before[state]), dcarry, dx,
                                    drecurrent);
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

// The gradients of the states before the first step. Some pointers are null: the factors, `passed`, and `to_c` if the
// cell state is no input.
template <class Cell, class T>
__global__ void finish_states(std::uint32_t count, const float* dh, const float* factors, const float* passed,
                              const float* dcarry, T* to_h, T* to_c) {
  for (auto i = static_cast<std::uint32_t>(first_element()); i < count; i += element_stride()) {
    float gradient = factors != nullptr ? dh[i] * factors[i] : dh[i];
    if (passed != nullptr) gradient += passed[i];
    to_h[i] = store<T>(Cell::carries_h ? gradient + dcarry[i] : gradient);
    if (to_c != nullptr) to_c[i] = store<T>(dcarry[i]);
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
                     carry = layout.add(s.states(), DType::float32), h = layout.add(s.states(), dtype),
                     factors = layout.add(s.a.drops() ? s.states() : 0, DType::float32),
                     dropped = layout.add(s.a.drops() ? s.states() : 0, dtype);
  const RecurrentInputs in(s.a, context.op.inputs.size());
  const bool training = context.op.as<Recurrent>().training;
  const StepGrid grid(s);
  return lower_steps(context, 1, dtype, product, layout, [=](const Buffers& p) {
    ForwardStep<T> tensors{};
    tensors.bias = input_or_null<float>(p, in.bias);
    tensors.carry = p.workspace<float>(carry);
    tensors.h = p.workspace<T>(h);
    if (s.a.drops()) {
      tensors.factors = p.workspace<float>(factors);
      tensors.dropped = p.workspace<T>(dropped);
      launch(draw_factors, blocks_for(grid.count), block_threads, p.stream, grid, s.a.dropout,
             input_or_null<std::int64_t>(p, in.samples), input_or_null<std::int64_t>(p, in.step),
             p.workspace<float>(factors));
    }
    if (s.a.begins) {
      launch(begin_states<T>, blocks_for(grid.count), block_threads, p.stream, grid.count, input_or_null<T>(p, in.h),
             input_or_null<T>(p, Cell::carries_h ? in.h : in.c), tensors.factors, tensors.h, tensors.carry,
             tensors.dropped);
    }
    for (std::int64_t step = 0; step < s.steps; ++step) {
      const bool multiplies = step > 0 || s.a.begins;
      float* const result = p.workspace<float>(products);
      if (multiplies) {
        product.run(p.stream, s.a.drops() ? tensors.dropped : tensors.h, p.in<void>(1), result, nullptr,
                    p.workspace<void>(scratch));
      }
      const std::int64_t position = s.position_in_x(step), y_position = s.position_in_y(step);
      tensors.x = p.in<T>(0) + position * s.columns;
      if (s.a.masked) tensors.mask = input_or_null<std::uint8_t>(p, in.mask) + position;
      tensors.product = multiplies ? result : nullptr;
      if (s.has_y(step)) tensors.y = p.out<T>(0) + y_position * s.units;
      if (training) {
        tensors.gates = p.out<T>(1) + position * s.columns;
        tensors.memories = p.out<T>(2) + position * s.units;
        tensors.before = p.out<T>(3) + position * s.units;
      }
      if (s.a.returns_c && step + 1 == s.steps) tensors.last_carry = p.out<T>(training ? 4 : 1);
      launch(take_step<Cell, T>, blocks_for(grid.count), block_threads, p.stream, grid, tensors);
    }
  });
}

// The parts of a workspace of the backward pass.
struct BackwardWorkspace {
  WorkspaceLayout layout;
  std::int64_t scratch, dproducts, dcarry, dh, passed, factors;

  BackwardWorkspace(const Sizes& s, const Product& product, DType dtype)
      : scratch(layout.add(product.workspace_bytes(), DType::uint8)),
        dproducts(layout.add(s.samples * s.columns, dtype)),
        dcarry(layout.add(s.states(), DType::float32)),
        dh(layout.add(s.states(), DType::float32)),
        passed(layout.add(s.a.masked ? s.states() : 0, DType::float32)),
        factors(layout.add(s.a.drops() ? s.states() : 0, DType::float32)) {}
};

// The tensors of the backward step `step`; `all` has those that are the same in all steps.
template <class Cell, class T>
GradientStep<T> tensors_of(const GradientStep<T>& all, const Buffers& p, const Sizes& s, const RecurrentGradInputs& in,
                           std::int64_t step) {
  const std::int64_t position = s.position_in_x(step);
  const auto* const memories = input_or_null<T>(p, in.memories);
  GradientStep<T> tensors = all;
  if (in.dy >= 0 && s.has_y(step)) tensors.dy = input_or_null<T>(p, in.dy) + s.position_in_y(step) * s.units;
  tensors.gates = input_or_null<T>(p, in.gates) + position * s.columns;
  tensors.memories = memories + position * s.units;
  if (step > 0) tensors.memories_before = memories + s.position_in_x(step - 1) * s.units;
  if (step == 0) tensors.begin = input_or_null<T>(p, in.c);
  tensors.before = input_or_null<T>(p, in.states) + position * s.units;
  if (step + 1 == s.steps) tensors.dh = nullptr;
  if (s.a.masked) tensors.mask = input_or_null<std::uint8_t>(p, in.mask) + position;
  tensors.dx = p.out<T>(0) + position * s.columns;
  if (Cell::splits) tensors.drecurrent = p.out<T>(1) + position * s.columns;
  return tensors;
}

template <class Cell, class T>
Lowering lower_backward(const LowerContext& context, const Sizes& s, const RecurrentGradInputs& in) {
  const DType dtype = context.input(static_cast<std::size_t>(in.gates)).dtype;
  const Product product(context.device, {s.samples, s.units, s.columns, false, true, dtype, DType::float32},
                        context.choices, context.label());
  const BackwardWorkspace parts(s, product, dtype);
  const StepGrid grid(s);
  return lower_steps(context, static_cast<std::size_t>(in.kernel), dtype, product, parts.layout, [=](const Buffers& p) {
    GradientStep<T> all{};
    all.dlast = input_or_null<T>(p, in.dc);
    all.dh = p.workspace<float>(parts.dh);
    all.dcarry = p.workspace<float>(parts.dcarry);
    all.dproduct = p.workspace<T>(parts.dproducts);
    if (s.a.masked) all.passed = p.workspace<float>(parts.passed);
    if (s.a.drops()) {
      all.factors = p.workspace<float>(parts.factors);
      launch(draw_factors, blocks_for(grid.count), block_threads, p.stream, grid, s.a.dropout,
             input_or_null<std::int64_t>(p, in.samples), input_or_null<std::int64_t>(p, in.step),
             p.workspace<float>(parts.factors));
    }
    for (std::int64_t step = s.steps - 1; step >= 0; --step) {
      launch(take_step_back<Cell, T>, blocks_for(grid.count), block_threads, p.stream, grid,
             tensors_of<Cell>(all, p, s, in, step));
      if (step == 0 && !s.a.begins) continue;
      product.run(p.stream, all.dproduct, input_or_null<void>(p, in.kernel), p.workspace<void>(parts.dh), nullptr,
                  p.workspace<void>(parts.scratch));
    }
    if (!s.a.begins) return;
    constexpr std::size_t first = Cell::splits ? 2 : 1;
    launch(finish_states<Cell, T>, blocks_for(grid.count), block_threads, p.stream, grid.count, all.dh, all.factors,
           static_cast<const float*>(all.passed), static_cast<const float*>(all.dcarry), p.out<T>(first),
           in.c >= 0 ? p.out<T>(first + 1) : nullptr);
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
  const RecurrentGradInputs in(def.a, def.has_dy);
  const TensorType& gates = context.input(static_cast<std::size_t>(in.gates));
  const Sizes sizes(gates.shape, context.input(static_cast<std::size_t>(in.kernel)).shape, def.a);
  return with_type(gates.dtype, [&](auto type) {
    using T = decltype(type);
    return with_cell(def.a.cell, [&](auto cell) { return lower_backward<decltype(cell), T>(context, sizes, in); });
  });
}

}  // namespace trainctl::cuda
