// The forward pass of recurrent layers.
#include "core/graph/ops/recurrent.h"

#include <algorithm>
#include <type_traits>

#include "core/backend/cpu/ops/recurrent/product.h"
#include "core/backend/cpu/ops/recurrent/rows.h"
#include "core/backend/cpu/simd/math.h"

namespace trainctl::cpu {
namespace {

// The float32 rows that a step of a sample reads and writes. gates may be the same memory as x.
struct StepRows {
  const float *x, *product, *bias;
  float *h, *carry, *gates, *memory;
};

// Computes a step of a sample. h is rounded to T.
template <class Cell, class T>
TRAINCTL_INLINE inline void take_step(const StepRows& s, std::int64_t units) {
  constexpr int gates = Cell::gates;
#pragma omp simd
  for (std::int64_t u = 0; u < units; ++u) {
    float x[gates], recurrent[gates], gate[gates], memory;
    for (int g = 0; g < gates; ++g) {
      x[g] = s.x[g * units + u];
      recurrent[g] = s.product[g * units + u];
      if constexpr (Cell::splits) recurrent[g] += s.bias[g * units + u];
    }
    float carry = s.carry[u];
    s.h[u] = rounded<T>(Cell::template step<Math>(x, recurrent, gate, carry, memory));
    s.carry[u] = carry;
    for (int g = 0; g < gates; ++g) s.gates[g * units + u] = gate[g];
    s.memory[u] = memory;
  }
}

// A step of a sample that is left out: h and the carry stay the same. The following step's gradient of an LSTM reads
// the carry as this step's memory.
TRAINCTL_INLINE inline void leave_out(const StepRows& s, std::int64_t units, std::int64_t columns) {
  std::fill_n(s.gates, columns, 0.0f);
  std::copy_n(s.carry, units, s.memory);
}

// The forward pass: sizes, the offsets of the arrays in its workspace, and the loop over steps.
template <class Cell, class T>
struct RecurrentForward {
  // Whether steps read and write the tensors directly. Otherwise, and outside of training, gates and memories are
  // written to scratch memory.
  static constexpr bool direct = std::is_same_v<T, float>;

  RecurrentRows size;
  RecurrentInputs in;
  bool training;
  PackedProduct product;
  WorkspaceLayout layout;
  std::int64_t packed, products, h, carry, zeros, gates, memory, product_scratch;
  std::int64_t factors, dropped;  // with dropout: the factors of h, and h times these

  RecurrentForward(const LowerContext& context, const RecurrentRows& sizes)
      : size(sizes),
        in(sizes.a, context.op.inputs.size()),
        training(context.op.as<Recurrent>().training),
        product(size.units, size.columns, context.input(0).dtype) {
    packed = layout.add(product.packed_values());
    products = layout.add(size.samples * product.c_stride());
    h = layout.add(size.samples * size.units);
    carry = layout.add(size.samples * size.units);
    zeros = layout.add(size.columns);
    gates = layout.add(direct && training ? 0 : size.samples * size.columns);
    memory = layout.add(direct && training ? 0 : size.samples * size.units);
    product_scratch = layout.add(size.samples * product.scratch_values());
    factors = layout.add(size.a.drops() ? size.samples * size.units : 0);
    dropped = layout.add(size.a.drops() ? size.samples * size.units : 0);
  }

  void operator()(const Buffers& buffers) const {
    float* const work = buffers.workspace<float>();
    product.pack(buffers.in<float>(1), size.columns, 1, work + packed);
    std::fill_n(work + zeros, size.columns, 0.0f);
    const float* bias = in.bias >= 0 ? buffers.in<float>(2) : work + zeros;
    parallel_ranges(size.samples, size.grain(), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t first = begin; first < end; first += recurrent_block) {
        take_samples(buffers, bias, first, std::min(first + recurrent_block, end));
      }
    });
  }

  // Sets the states of samples [first, last) before the first step.
  void begin(const Buffers& buffers, std::int64_t first, std::int64_t last) const {
    float* const work = buffers.workspace<float>();
    std::fill_n(work + products + first * product.c_stride(), (last - first) * product.c_stride(), 0.0f);
    begin_states(input_or_null<T>(buffers, in.h), first, last, size.units, work + h);
    begin_states(input_or_null<T>(buffers, Cell::carries_h ? in.h : in.c), first, last, size.units, work + carry);
    if (!size.a.drops()) return;
    draw_factors(size.a.dropout, input_or_null<std::int64_t>(buffers, in.samples),
                 input_or_null<std::int64_t>(buffers, in.step), first, last, size.units, work + factors);
  }

  // Multiplies the h of samples [first, last) with the recurrent kernel.
  void multiply(float* work, std::int64_t first, std::int64_t last) const {
    const std::int64_t states = first * size.units, count = last - first;
    if (size.a.drops()) {
      multiply_rows<T>(work + h + states, work + factors + states, count * size.units, work + dropped + states);
    }
    product.run(work + (size.a.drops() ? dropped : h) + states, count, work + packed,
                work + product_scratch + first * product.scratch_values(),
                work + products + first * product.c_stride());
  }

  void take_samples(const Buffers& buffers, const float* bias, std::int64_t first, std::int64_t last) const {
    float* const work = buffers.workspace<float>();
    const std::int64_t stride = product.c_stride(), units = size.units;
    const auto* mask = input_or_null<std::uint8_t>(buffers, in.mask);
    begin(buffers, first, last);
    for (std::int64_t step = 0; step < size.steps; ++step) {
      if (step > 0 || size.a.begins) multiply(work, first, last);
      simd([&, this]() TRAINCTL_INLINE {
        // Samples share the scratch memory of the first one.
        float* const scratch = work + gates + first * size.columns;
        for (std::int64_t n = first; n < last; ++n) {
          const std::int64_t row = size.row(n, step), row_of_y = size.row_of_y(n, step);
          StepRows s{.x = widened(buffers.in<T>(0) + row * size.columns, size.columns, scratch),
                     .product = work + products + n * stride,
                     .bias = bias,
                     .h = work + h + n * units,
                     .carry = work + carry + n * units,
                     .gates = scratch,
                     .memory = work + memory + first * units};
          if (training) store_row(s.h, units, buffers.out<T>(3) + row * units);
          if (direct && training) {
            s.gates = buffers.out<float>(1) + row * size.columns;
            s.memory = buffers.out<float>(2) + row * units;
          }
          if (mask != nullptr && mask[row] == 0) {
            leave_out(s, units, size.columns);
          } else {
            take_step<Cell, T>(s, units);
          }
          if (!direct && training) {
            store_row(s.gates, size.columns, buffers.out<T>(1) + row * size.columns);
            store_row(s.memory, units, buffers.out<T>(2) + row * units);
          }
          if (row_of_y >= 0) store_row(s.h, units, buffers.out<T>(0) + row_of_y * units);
        }
      });
    }
    if (!size.a.returns_c) return;
    store_row(work + carry + first * units, (last - first) * units, buffers.out<T>(training ? 4 : 1) + first * units);
  }
};

}  // namespace

Lowering lower_recurrent(const LowerContext& context) {
  const RecurrentAttributes& a = context.op.as<Recurrent>().a;
  const RecurrentRows sizes(context.input(0).shape, context.input(1).shape, a);
  return with_type(context.input(0).dtype, [&](auto type) {
    return with_cell(a.cell, [&](auto cell) {
      return lower_scan<RecurrentForward<decltype(cell), decltype(type)>>(context, sizes);
    });
  });
}

}  // namespace trainctl::cpu
