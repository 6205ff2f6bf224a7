// The steps of recurrent layers, forward and backward. A thread computes all steps of a few samples, without waiting
// for other threads. Steps are computed in float32 for any dtype of the tensors.
#include "core/graph/ops/recurrent.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "core/backend/cpu/kernels.h"
#include "core/backend/cpu/ops/recurrent_product.h"
#include "core/backend/cpu/simd/float_rows.h"
#include "core/backend/cpu/simd/math.h"

namespace trainctl::cpu {
namespace {

// The number of samples for which a thread computes the steps together, so that the samples share the cached values of
// the recurrent kernel.
constexpr std::int64_t block = 48;

struct Sizes : RecurrentSizes {
  using RecurrentSizes::RecurrentSizes;

  // The row of x, as [N * T, columns], that holds a step of a sample.
  std::int64_t row(std::int64_t sample, std::int64_t step) const { return sample * steps + position_in_x(step); }
  // The row of y or dy that holds a step of a sample; -1 if y does not hold the step.
  std::int64_t row_of_y(std::int64_t sample, std::int64_t step) const {
    return has_y(step) ? sample * (a.sequences ? steps : 1) + position_in_y(step) : -1;
  }
  // The smallest number of samples that is worth a thread.
  std::int64_t grain() const { return std::max<std::int64_t>(1, 16 * element_grain / (steps * units * columns)); }
};

// The layout of a workspace of arrays of float32 values, which begin at whole vectors.
class WorkspaceLayout {
 public:
  // Adds an array and returns its offset in values.
  std::int64_t add(std::int64_t values) { return std::exchange(end_, end_ + (values + 15) / 16 * 16); }
  std::int64_t bytes() const { return end_ * size_of(DType::float32); }

 private:
  std::int64_t end_ = 0;
};

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

// The mask [N, T] of the steps, which is the last input; null if there is none.
const std::uint8_t* mask_of(const Sizes& size, const Buffers& buffers) {
  return size.a.masked ? buffers.in<std::uint8_t>(buffers.binding.inputs.size() - 1) : nullptr;
}

// The forward pass: sizes, the offsets of the arrays in its workspace, and the loop over steps.
template <class Cell, class T>
struct Forward {
  // Whether steps read and write the tensors directly. Otherwise, and outside of training, gates and memories are
  // written to scratch memory.
  static constexpr bool direct = std::is_same_v<T, float>;

  Sizes size;
  bool training;
  PackedProduct product;
  WorkspaceLayout layout;
  std::int64_t packed, products, h, carry, zeros, gates, memory, product_scratch;

  Forward(const LowerContext& context, const Sizes& sizes)
      : size(sizes),
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
  }

  void operator()(const Buffers& buffers) const {
    float* const work = buffers.workspace<float>();
    product.pack(buffers.in<float>(1), size.columns, 1, work + packed);
    std::fill_n(work + zeros, size.columns, 0.0f);
    const bool biased = buffers.binding.inputs.size() > (size.a.masked ? 3 : 2);
    const float* bias = biased ? buffers.in<float>(2) : work + zeros;
    parallel_ranges(size.samples, size.grain(), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t first = begin; first < end; first += block) {
        take_samples(buffers, bias, first, std::min(first + block, end));
      }
    });
  }

  void take_samples(const Buffers& buffers, const float* bias, std::int64_t first, std::int64_t last) const {
    float* const work = buffers.workspace<float>();
    const std::int64_t stride = product.c_stride(), units = size.units, count = last - first;
    const std::uint8_t* mask = mask_of(size, buffers);
    std::fill_n(work + products + first * stride, count * stride, 0.0f);
    std::fill_n(work + h + first * units, count * units, 0.0f);
    std::fill_n(work + carry + first * units, count * units, 0.0f);
    for (std::int64_t step = 0; step < size.steps; ++step) {
      if (step > 0) {
        product.run(work + h + first * units, count, work + packed,
                    work + product_scratch + first * product.scratch_values(), work + products + first * stride);
      }
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
  }
};

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

// The backward pass, which computes the steps in reverse order.
template <class Cell, class T>
struct Backward {
  static constexpr bool direct = std::is_same_v<T, float>;

  Sizes size;
  PackedProduct product;  // multiplies the gradients of a step with the transposed kernel
  WorkspaceLayout layout;
  std::int64_t packed, dproducts, dh, dcarry, zeros, scratch_row, scratch, product_scratch;
  std::int64_t passed;  // the gradient of h that a step which is left out passes to the step before

  Backward(const LowerContext& context, const Sizes& sizes)
      : size(sizes), product(size.columns, size.units, context.input(1).dtype) {
    packed = layout.add(product.packed_values());
    dproducts = layout.add(size.samples * size.columns);
    dh = layout.add(size.samples * product.c_stride());
    dcarry = layout.add(size.samples * size.units);
    zeros = layout.add(size.units);
    scratch_row = direct ? 0 : size.columns + 4 * size.units;
    scratch = layout.add(size.samples * scratch_row);
    product_scratch = layout.add(size.samples * product.scratch_values());
    passed = layout.add(size.a.masked ? size.samples * size.units : 0);
  }

  void operator()(const Buffers& buffers) const {
    float* const work = buffers.workspace<float>();
    product.pack(buffers.in<float>(4), 1, size.columns, work + packed);
    std::fill_n(work + zeros, size.units, 0.0f);
    parallel_ranges(size.samples, size.grain(), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t first = begin; first < end; first += block) {
        take_samples(buffers, first, std::min(first + block, end));
      }
    });
  }

  void take_samples(const Buffers& buffers, std::int64_t first, std::int64_t last) const {
    float* const work = buffers.workspace<float>();
    const std::int64_t stride = product.c_stride(), units = size.units, columns = size.columns, count = last - first;
    const std::uint8_t* mask = mask_of(size, buffers);
    std::fill_n(work + dh + first * stride, count * stride, 0.0f);
    std::fill_n(work + dcarry + first * units, count * units, 0.0f);
    for (std::int64_t step = size.steps - 1; step >= 0; --step) {
      simd([&, this]() TRAINCTL_INLINE {
        // Samples share the scratch memory of the first one, which holds the gates, then four states.
        float* const own = work + scratch + first * scratch_row;
        float* const states = own + columns;
        for (std::int64_t n = first; n < last; ++n) {
          const std::int64_t row = size.row(n, step), row_of_y = size.row_of_y(n, step);
          const float *dy = work + zeros, *before = work + zeros;
          if (row_of_y >= 0) dy = widened(buffers.in<T>(0) + row_of_y * units, units, states);
          if (step > 0) before = widened(buffers.in<T>(2) + size.row(n, step - 1) * units, units, states + units);
          GradientRows s{.dy = dy,
                         .gates = widened(buffers.in<T>(1) + row * columns, columns, own),
                         .memory = widened(buffers.in<T>(2) + row * units, units, states + 2 * units),
                         .memory_before = before,
                         .before = widened(buffers.in<T>(3) + row * units, units, states + 3 * units),
                         .dh = work + dh + n * stride,
                         .dcarry = work + dcarry + n * units,
                         .dproduct = work + dproducts + n * columns,
                         .dx = own};
          T* const dx = buffers.out<T>(0) + row * columns;
          if constexpr (direct) s.dx = dx;
          if (mask != nullptr && mask[row] == 0) {
            pass_back(s, units, columns, work + passed + n * units);
          } else {
            take_step_back<Cell, T>(s, units);
          }
          if constexpr (!direct) store_row(s.dx, columns, dx);
          if constexpr (Cell::splits) store_row(s.dproduct, columns, buffers.out<T>(1) + row * columns);
        }
      });
      if (step == 0) continue;
      product.run(work + dproducts + first * columns, count, work + packed,
                  work + product_scratch + first * product.scratch_values(), work + dh + first * stride);
      for (std::int64_t n = first; mask != nullptr && n < last; ++n) {
        if (mask[size.row(n, step)] == 0) std::copy_n(work + passed + n * units, units, work + dh + n * stride);
      }
    }
  }
};

template <class Scan>
Lowering lower_scan(const LowerContext& context, const Sizes& sizes) {
  const Scan scan(context, sizes);
  return own_kernel(context, scan, scan.layout.bytes());
}

}  // namespace

Lowering lower_recurrent(const LowerContext& context) {
  const RecurrentAttributes& a = context.op.as<Recurrent>().a;
  const Sizes sizes(context.input(0).shape, context.input(1).shape, a);
  return with_type(context.input(0).dtype, [&](auto type) {
    return with_cell(a.cell,
                     [&](auto cell) { return lower_scan<Forward<decltype(cell), decltype(type)>>(context, sizes); });
  });
}

Lowering lower_recurrent_grad(const LowerContext& context) {
  const RecurrentAttributes& a = context.op.as<RecurrentGrad>().a;
  const Sizes sizes(context.input(1).shape, context.input(4).shape, a);
  return with_type(context.input(1).dtype, [&](auto type) {
    return with_cell(a.cell,
                     [&](auto cell) { return lower_scan<Backward<decltype(cell), decltype(type)>>(context, sizes); });
  });
}

}  // namespace trainctl::cpu
