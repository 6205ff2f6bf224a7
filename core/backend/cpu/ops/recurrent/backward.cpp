// The backward pass of recurrent layers.
#include "core/graph/ops/recurrent.h"

#include <algorithm>
#include <type_traits>

#include "core/backend/cpu/ops/recurrent/product.h"
#include "core/backend/cpu/ops/recurrent/rows.h"
#include "core/backend/cpu/simd/math.h"

namespace trainctl::cpu {
namespace {

// The float32 rows that the gradient of a step reads and writes. dh is the gradient that comes from the following step.
// dx may be the same memory as the gates.
struct GradientRows {
  const float *dy, *gates, *memory, *memory_before, *before, *dh;
  float *dcarry, *dproduct, *dx;
};

// Computes the gradient of a step. dproduct, the gradient with respect to the recurrent product, is rounded to T.
template <class Cell, class T>
TRAINCTL_INLINE inline void take_step_back(const GradientRows& s, std::int64_t units) {
  constexpr int gates = Cell::gates;
#pragma omp simd
  for (std::int64_t u = 0; u < units; ++u) {
    float gate[gates], dx[gates], drecurrent[gates];
    for (int g = 0; g < gates; ++g) gate[g] = s.gates[g * units + u];
    float dcarry = s.dcarry[u];
    Cell::template gradient<Math>(s.dy[u] + s.dh[u], gate, s.memory[u], s.memory_before[u], s.before[u], dcarry, dx,
                                  drecurrent);
    s.dcarry[u] = dcarry;
    for (int g = 0; g < gates; ++g) {
      s.dx[g * units + u] = dx[g];
      s.dproduct[g * units + u] = rounded<T>(drecurrent[g]);
    }
  }
}

// The gradient of a step that is left out: all of it goes to the step before.
TRAINCTL_INLINE inline void pass_back(const GradientRows& s, std::int64_t units, std::int64_t columns, float* passed) {
  for (std::int64_t u = 0; u < units; ++u) passed[u] = s.dy[u] + s.dh[u];
  std::fill_n(s.dx, columns, 0.0f);
  std::fill_n(s.dproduct, columns, 0.0f);
}

// The type of the gates that a RecurrentGrad reads.
const TensorType& gates_of(const LowerContext& context) {
  const auto& def = context.op.as<RecurrentGrad>();
  return context.input(static_cast<std::size_t>(RecurrentGradInputs(def.a, def.has_dy).gates));
}

// The backward pass, which computes the steps in reverse order.
template <class Cell, class T>
struct RecurrentBackward {
  static constexpr bool direct = std::is_same_v<T, float>;

  RecurrentRows size;
  RecurrentGradInputs in;
  PackedProduct product;  // multiplies the gradients of a step with the transposed kernel
  WorkspaceLayout layout;
  std::int64_t packed, dproducts, dh, dcarry, zeros, scratch_row, scratch, product_scratch;
  std::int64_t passed;   // the gradient of h that a step which is left out passes to the step before
  std::int64_t factors;  // with dropout: the factors of h in the recurrent product

  RecurrentBackward(const LowerContext& context, const RecurrentRows& sizes)
      : size(sizes),
        in(sizes.a, context.op.as<RecurrentGrad>().has_dy),
        product(size.columns, size.units, gates_of(context).dtype) {
    packed = layout.add(product.packed_values());
    dproducts = layout.add(size.samples * size.columns);
    dh = layout.add(size.samples * product.c_stride());
    dcarry = layout.add(size.samples * size.units);
    zeros = layout.add(size.units);
    scratch_row = direct ? 0 : size.columns + 4 * size.units;
    scratch = layout.add(size.samples * scratch_row);
    product_scratch = layout.add(size.samples * product.scratch_values());
    passed = layout.add(size.a.masked ? size.samples * size.units : 0);
    factors = layout.add(size.a.drops() ? size.samples * size.units : 0);
  }

  void operator()(const Buffers& buffers) const {
    float* const work = buffers.workspace<float>();
    product.pack(input_or_null<float>(buffers, in.kernel), 1, size.columns, work + packed);
    std::fill_n(work + zeros, size.units, 0.0f);
    parallel_ranges(size.samples, size.grain(), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t first = begin; first < end; first += recurrent_block) {
        take_samples(buffers, first, std::min(first + recurrent_block, end));
      }
    });
  }

  // Sets the gradients of the states of samples [first, last) after the last step.
  void begin(const Buffers& buffers, std::int64_t first, std::int64_t last) const {
    float* const work = buffers.workspace<float>();
    std::fill_n(work + dh + first * product.c_stride(), (last - first) * product.c_stride(), 0.0f);
    begin_states(input_or_null<T>(buffers, in.dc), first, last, size.units, work + dcarry);
    if (!size.a.drops()) return;
    draw_factors(size.a.dropout, input_or_null<std::int64_t>(buffers, in.samples),
                 input_or_null<std::int64_t>(buffers, in.step), first, last, size.units, work + factors);
  }

  // Sets dh of samples [first, last) to the gradients with respect to the h before the step.
  void multiply(float* work, const std::uint8_t* mask, std::int64_t step, std::int64_t first, std::int64_t last) const {
    const std::int64_t stride = product.c_stride(), units = size.units;
    product.run(work + dproducts + first * size.columns, last - first, work + packed,
                work + product_scratch + first * product.scratch_values(), work + dh + first * stride);
    for (std::int64_t n = first; n < last; ++n) {
      float* const row = work + dh + n * stride;
      if (mask != nullptr && mask[size.row(n, step)] == 0) {
        std::copy_n(work + passed + n * units, units, row);
      } else if (size.a.drops()) {
        multiply_rows<float>(row, work + factors + n * units, units, row);
      }
    }
  }

  // The rows of a step of a sample. `own`: scratch memory for the gates, then four states.
  TRAINCTL_INLINE GradientRows rows(const Buffers& buffers, std::int64_t n, std::int64_t step, float* own) const {
    float* const work = buffers.workspace<float>();
    const std::int64_t row = size.row(n, step), row_of_y = size.row_of_y(n, step), units = size.units;
    float* const states = own + size.columns;
    const auto widened_row = [&](int input, std::int64_t number, float* scratch_memory) {
      return widened(input_or_null<T>(buffers, input) + number * units, units, scratch_memory);
    };
    const float *dy = work + zeros, *before = work + zeros;
    if (in.dy >= 0 && row_of_y >= 0) dy = widened_row(in.dy, row_of_y, states);
    if (step > 0) before = widened_row(in.memories, size.row(n, step - 1), states + units);
    if (step == 0 && in.c >= 0) before = widened_row(in.c, n, states + units);
    return {.dy = dy,
            .gates = widened(input_or_null<T>(buffers, in.gates) + row * size.columns, size.columns, own),
            .memory = widened_row(in.memories, row, states + 2 * units),
            .memory_before = before,
            .before = widened_row(in.states, row, states + 3 * units),
            .dh = work + dh + n * product.c_stride(),
            .dcarry = work + dcarry + n * units,
            .dproduct = work + dproducts + n * size.columns,
            .dx = own};
  }

  // Writes the gradients with respect to the states of samples [first, last) before the first step.
  void finish(const Buffers& buffers, std::int64_t first, std::int64_t last) const {
    const float* const work = buffers.workspace<float>();
    T* const to_h = buffers.out<T>(Cell::splits ? 2 : 1);
    for (std::int64_t n = first; n < last; ++n) {
      for (std::int64_t u = 0; u < size.units; ++u) {
        const float h = work[dh + n * product.c_stride() + u], c = work[dcarry + n * size.units + u];
        to_h[n * size.units + u] = store<T>(Cell::carries_h ? h + c : h);
      }
    }
    if (in.c < 0) return;
    const std::int64_t states = first * size.units;
    store_row(work + dcarry + states, (last - first) * size.units, buffers.out<T>(Cell::splits ? 3 : 2) + states);
  }

  void take_samples(const Buffers& buffers, std::int64_t first, std::int64_t last) const {
    float* const work = buffers.workspace<float>();
    const std::int64_t columns = size.columns;
    const auto* mask = input_or_null<std::uint8_t>(buffers, in.mask);
    begin(buffers, first, last);
    for (std::int64_t step = size.steps - 1; step >= 0; --step) {
      simd([&, this]() TRAINCTL_INLINE {
        // Samples share the scratch memory of the first one.
        float* const own = work + scratch + first * scratch_row;
        for (std::int64_t n = first; n < last; ++n) {
          const std::int64_t row = size.row(n, step);
          GradientRows s = rows(buffers, n, step, own);
          T* const dx = buffers.out<T>(0) + row * columns;
          if constexpr (direct) s.dx = dx;
          if (mask != nullptr && mask[row] == 0) {
            pass_back(s, size.units, columns, work + passed + n * size.units);
          } else {
            take_step_back<Cell, T>(s, size.units);
          }
          if constexpr (!direct) store_row(s.dx, columns, dx);
          if constexpr (Cell::splits) store_row(s.dproduct, columns, buffers.out<T>(1) + row * columns);
        }
      });
      if (step > 0 || size.a.begins) multiply(work, mask, step, first, last);
    }
    if (size.a.begins) finish(buffers, first, last);
  }
};

}  // namespace

Lowering lower_recurrent_grad(const LowerContext& context) {
  const auto& def = context.op.as<RecurrentGrad>();
  const RecurrentAttributes& a = def.a;
  const RecurrentGradInputs in(a, def.has_dy);
  const RecurrentRows sizes(gates_of(context).shape, context.input(static_cast<std::size_t>(in.kernel)).shape, a);
  return with_type(gates_of(context).dtype, [&](auto type) {
    return with_cell(a.cell, [&](auto cell) {
      return lower_scan<RecurrentBackward<decltype(cell), decltype(type)>>(context, sizes);
    });
  });
}

}  // namespace trainctl::cpu
