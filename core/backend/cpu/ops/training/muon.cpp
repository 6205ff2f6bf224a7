// Runs Muon over the flat regions: for each matrix it updates the momentum, orthogonalizes it by products of oneDNN,
// and takes the step; other parameters take AdamW's step.
#include <algorithm>
#include <memory>

#include "core/backend/cpu/onednn/dnnl_kernel.h"
#include "core/backend/cpu/ops/training/optimizer_step.h"
#include "core/backend/cpu/simd/parallel.h"
#include "core/backend/cpu/simd/simd.h"

namespace trainctl::cpu {
namespace {

using onednn::memory;
using MuonStep = Step<Muon>;

// The flat regions at the offset of one parameter.
struct MuonParameter {
  const float* gradient;
  float *weight, *momentum, *velocity;
  float decay;

  MuonParameter(const Buffers& buffers, const UpdateRange& range, float weight_decay)
      : gradient(buffers.in<float>(0) + range.offset),
        weight(buffers.out<float>(0) + range.offset),
        momentum(buffers.out<float>(1) + range.offset),
        velocity(buffers.out<float>(2) + range.offset),
        decay(range.decay ? weight_decay : 0.0f) {}
};

void take_adam_step(const Muon& rule, const MuonStep& step, const MuonParameter& parameter, std::int64_t count) {
  parallel_ranges(count, element_grain, [&](std::int64_t begin, std::int64_t end) {
    simd([=, &rule, &step, &parameter]() TRAINCTL_INLINE {
      const Muon own = rule;
      const MuonStep now = step;
      const MuonParameter at = parameter;
#pragma GCC ivdep
      for (std::int64_t i = begin; i < end; ++i) {
        float states[] = {at.momentum[i], at.velocity[i]}, weight = at.weight[i];
        own.adam(now.factors, now.learning_rate, at.decay, at.gradient[i] * now.scale, weight, states);
        at.momentum[i] = states[0];
        at.velocity[i] = states[1];
        at.weight[i] = weight;
      }
    });
  });
}

constexpr std::int64_t norm_grain = element_grain;  // number of elements in a partial sum of a norm

// Updates the momentum, and writes the matrix that is orthogonalized to `x`, divided by its norm. `squares` has a place
// for each norm_grain elements.
void find_direction(const Muon& rule, const MuonStep& step, const MuonParameter& parameter, std::int64_t count,
                    float* x, double* squares) {
  parallel_ranges(count, norm_grain, [&](std::int64_t begin, std::int64_t end) {
    simd([=, &rule, &step, &parameter]() TRAINCTL_INLINE {
      const Muon own = rule;
      const float scale = step.scale;
      const MuonParameter at = parameter;
      for (std::int64_t first = begin; first < end; first += norm_grain) {
        const std::int64_t last = std::min(end, first + norm_grain);
#pragma GCC ivdep
        for (std::int64_t i = first; i < last; ++i) {
          float momentum = at.momentum[i];
          x[i] = own.direction(at.gradient[i] * scale, &momentum);
          at.momentum[i] = momentum;
        }
        const auto square = [=](std::int64_t i)
                                TRAINCTL_INLINE { return static_cast<double>(x[first + i]) * x[first + i]; };
        squares[first / norm_grain] = lane_sum<double>(last - first, square);
      }
    });
  });
  double sum = 0;
  for (std::int64_t i = 0; i < divide_up(count, norm_grain); ++i) sum += squares[i];
  const float norm = static_cast<float>(std::sqrt(sum)) + Muon::norm_epsilon;
  parallel_ranges(count, element_grain, [=](std::int64_t begin, std::int64_t end) {
    simd([=]() TRAINCTL_INLINE {
#pragma omp simd
      for (std::int64_t i = begin; i < end; ++i) x[i] /= norm;
    });
  });
}

// y[i] = p * a[i] + q * b[i].
void add_multiples(std::int64_t count, float p, const float* a, float q, const float* b, float* y) {
  parallel_ranges(count, element_grain, [=](std::int64_t begin, std::int64_t end) {
    simd([=]() TRAINCTL_INLINE {
#pragma omp simd
      for (std::int64_t i = begin; i < end; ++i) y[i] = p * a[i] + q * b[i];
    });
  });
}

// The products of a Newton-Schulz step of matrices X [rows, columns]: A = X X^T, A A, and Y += B X. If there are more
// rows than columns, A = X^T X and Y += X B.
class MuonProducts {
 public:
  MuonProducts(const OneDnn& dnnl, const Shape& matrix) : dnnl_(dnnl), rows_(matrix[0]), columns_(matrix[1]) {
    const std::int64_t small = std::min(rows_, columns_), large = std::max(rows_, columns_);
    const bool wide = rows_ <= columns_;
    const auto plain = [](std::int64_t r, std::int64_t c) { return row_major({r, c}, DType::float32); };
    const memory::desc x = plain(rows_, columns_), a = plain(small, small);
    const memory::desc transposed({columns_, rows_}, dnnl_type(DType::float32), onednn::Dims{1, columns_});
    const auto product = [&](const memory::desc& left, const memory::desc& right, const memory::desc& result,
                             bool sum) {
      return onednn::matmul(dnnl.engine(), left, right, {}, result, attributes(sum));
    };
    square_of_x_ = wide ? product(x, transposed, a, false) : product(transposed, x, a, false);
    square_of_a_ = product(a, a, a, false);
    last_ = wide ? product(a, x, x, true) : product(x, a, x, true);
    for (const auto* desc : {&square_of_x_, &square_of_a_, &last_}) {
      scratch_bytes_ = std::max(scratch_bytes_, static_cast<std::int64_t>(desc->scratchpad_desc().get_size()));
    }
    small_count_ = small * small;
    count_ = small * large;
  }

  std::int64_t scratch_bytes() const { return scratch_bytes_; }
  std::int64_t small_count() const { return small_count_; }
  std::int64_t count() const { return count_; }

  // The calls for matrices at these addresses: A of X, A A of A, and Y of B and X.
  PrimitiveCall square_of_x(Address x, Address a, Address scratch) const {
    return call(square_of_x_, x, x, a, scratch);
  }
  PrimitiveCall square_of_a(Address a, Address b, Address scratch) const {
    return call(square_of_a_, a, a, b, scratch);
  }
  PrimitiveCall last(Address b, Address x, Address y, Address scratch) const {
    return rows_ <= columns_ ? call(last_, b, x, y, scratch) : call(last_, x, b, y, scratch);
  }

 private:
  PrimitiveCall call(const dnnl::matmul::primitive_desc& desc, Address left, Address right, Address result,
                     Address scratch) const {
    std::vector<Operand> operands{{DNNL_ARG_SRC, desc.src_desc(), left},
                                  {DNNL_ARG_WEIGHTS, desc.weights_desc(), right},
                                  {DNNL_ARG_DST, desc.dst_desc(), result}};
    append_scratch(desc, scratch, operands);
    return {dnnl_, dnnl::matmul(desc), operands};
  }

  const OneDnn& dnnl_;
  std::int64_t rows_, columns_, scratch_bytes_ = 0, small_count_ = 0, count_ = 0;
  dnnl::matmul::primitive_desc square_of_x_, square_of_a_, last_;
};

// The workspace, in bytes from its beginning: the matrices X, Y, A and B of one parameter, partial sums, scratch
// memory.
struct MuonPlaces {
  std::int64_t x = 0, y = 0, a = 0, b = 0, squares = 0, scratch = 0, end = 0;

  explicit MuonPlaces(const std::vector<MuonProducts>& all) {
    std::int64_t count = 0, small = 0, bytes = 0;  // the maximum over all matrices
    for (const MuonProducts& products : all) {
      count = std::max(count, products.count());
      small = std::max(small, products.small_count());
      bytes = std::max(bytes, products.scratch_bytes());
    }
    const auto place = [this](std::int64_t size) {
      const std::int64_t begin = end;
      end = round_up(end + size, 64);
      return begin;
    };
    constexpr auto float_size = static_cast<std::int64_t>(sizeof(float));
    x = place(count * float_size);
    y = place(count * float_size);
    a = place(small * float_size);
    b = place(small * float_size);
    squares = place(divide_up(count, norm_grain) * static_cast<std::int64_t>(sizeof(double)));
    scratch = place(bytes);
  }
};

// Orthogonalizes the matrix at `x`; X and Y change places in each step.
class NewtonSchulz {
 public:
  NewtonSchulz(const MuonProducts& products, const MuonPlaces& places, Address workspace)
      : x_(workspace + places.x),
        y_(workspace + places.y),
        a_(workspace + places.a),
        b_(workspace + places.b),
        count_(products.count()),
        small_count_(products.small_count()) {
    const Address scratch = workspace + places.scratch;
    for (const auto& [from, to] : {std::pair{x_, y_}, {y_, x_}}) {
      calls_.push_back(products.square_of_x(from, a_, scratch));
      calls_.push_back(products.square_of_a(a_, b_, scratch));
      calls_.push_back(products.last(b_, from, to, scratch));
    }
  }

  // Returns the result, which is at X or Y.
  const float* run(const Slot& slot, int steps) {
    const auto& [a, b, c] = Muon::coefficients;
    float *from = x_.as<float>(slot), *to = y_.as<float>(slot);
    float *const squares = a_.as<float>(slot), *const sums = b_.as<float>(slot);
    for (int step = 0; step < steps; ++step) {
      PrimitiveCall* const calls = calls_.data() + step % 2 * 3;
      calls[0].run(slot);
      calls[1].run(slot);
      add_multiples(small_count_, b, squares, c, sums, sums);
      add_multiples(count_, a, from, 0, from, to);
      calls[2].run(slot);
      std::swap(from, to);
    }
    return from;
  }

 private:
  Address x_, y_, a_, b_;
  std::int64_t count_, small_count_;
  std::vector<PrimitiveCall> calls_;
};

}  // namespace

Lowering lower_orthogonal(const LowerContext& context, const OptimizerUpdate& def, const Muon& rule) {
  std::vector<MuonProducts> products;  // of the matrices, in the order of their ranges
  for (const UpdateRange& range : def.ranges) {
    if (range.matrix.rank() == 2) products.emplace_back(context.dnnl, range.matrix);
  }
  const MuonPlaces places(products);
  Lowering lowering = context.logical();
  lowering.workspace_bytes = places.end;
  lowering.implementation = "own:" + std::string(name_of(instruction_set()));
  lowering.bind = [=, ranges = def.ranges, weight_decay = def.weight_decay,
                   clip_norm = def.clip_norm](const Binding& binding) -> std::unique_ptr<Kernel> {
    std::vector<NewtonSchulz> iterations;
    for (const MuonProducts& of_matrix : products) iterations.emplace_back(of_matrix, places, binding.workspace);
    auto run = [=, iterations = std::move(iterations)](const Buffers& buffers) mutable {
      const MuonStep step(buffers, rule, clip_norm);
      if (!step.apply) return;
      auto* const memory = buffers.workspace<std::byte>();
      auto next = iterations.begin();
      for (const UpdateRange& range : ranges) {
        const MuonParameter parameter(buffers, range, weight_decay);
        if (range.matrix.rank() != 2) {
          take_adam_step(rule, step, parameter, range.count);
          continue;
        }
        const std::int64_t count = range.matrix.count();
        find_direction(rule, step, parameter, count, reinterpret_cast<float*>(memory + places.x),
                       reinterpret_cast<double*>(memory + places.squares));
        const float* const orthogonal = (next++)->run(buffers.slot, rule.ns_steps);
        const float rate = step.learning_rate * rule.scale(range.matrix[0], range.matrix[1]);
        add_multiples(count, 1 - step.learning_rate * parameter.decay, parameter.weight, -rate, orthogonal,
                      parameter.weight);
      }
    };
    return std::make_unique<FunctionKernel<decltype(run)>>(binding, std::move(run));
  };
  return lowering;
}

}  // namespace trainctl::cpu
