// Computes the CTC loss and its gradient by the forward-backward algorithm, in float64 and in the logarithmic domain.
#include "core/graph/ops/losses/ctc.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/backend/cpu/ops/training/sequences.h"
#include "core/backend/cpu/simd/math.h"
#include "core/backend/cpu/simd/simd.h"

namespace trainctl::cpu {
namespace {

// The memory of a sample: float64 values, then numbers.
struct CtcMemory {
  SequenceSizes sizes;
  bool training;

  std::int64_t states() const { return 2 * sizes.longest + 1; }
  std::int64_t rows() const { return training ? sizes.steps : 2; }  // of the forward probabilities
  std::int64_t reals() const {
    return sizes.steps + sizes.steps * (sizes.longest + 1) + (rows() + 2) * states() + sizes.classes;
  }
  std::int64_t bytes() const {
    const std::int64_t integers = sizes.steps + sizes.longest;
    return (reals() + (integers + 1) / 2) * static_cast<std::int64_t>(sizeof(double));
  }
};

// One sample: its logits, and the probabilities of its paths. All probabilities are logarithms.
template <class T>
class CtcSample {
 public:
  CtcSample(const CtcMemory& layout, const T* x, void* memory)
      : sizes_(layout.sizes), states_(layout.states()), rows_(layout.rows()), x_(x) {
    auto* next = static_cast<double*>(memory);
    const auto take = [&](std::int64_t count) { return std::exchange(next, next + count); };
    norms_ = take(sizes_.steps);
    emissions_ = take(sizes_.steps * (sizes_.longest + 1));
    forward_ = take(rows_ * states_);
    after_ = take(2 * states_);
    occupied_ = take(sizes_.classes);
    steps_ = reinterpret_cast<std::int32_t*>(next);
    target_ = steps_ + sizes_.steps;
  }

  // Reads target and mask, and returns the loss: NaN if a target is not a class, infinity if no path spells it.
  double loss(const Ctc& rule, const std::int32_t* target, const std::uint8_t* mask) {
    paths_ = {target_, target_classes(target, sizes_.longest, rule.mask_index, target_)};
    count_ = existing_steps(mask, sizes_.steps, steps_);
    const auto is_class = [this](std::int32_t k) { return k >= 0 && k < sizes_.classes; };
    if (!is_class(rule.mask_index) || !std::all_of(target_, target_ + paths_.length, is_class)) {
      return std::numeric_limits<double>::quiet_NaN();
    }
    if (count_ == 0) return paths_.length == 0 ? 0 : -CtcStates::impossible();
    for (int i = 0; i < count_; ++i) emit(i, rule.mask_index);
    for (int i = 0; i < count_; ++i) go_forward(i);
    const double* last = forward(count_ - 1);
    const int end = paths_.count();
    probability_ = CtcStates::log_sum(last[end - 1], end > 1 ? last[end - 2] : CtcStates::impossible());
    return -probability_;
  }

  // Writes `weight` times the gradient of a finite loss; after loss(), if all rows of the probabilities are kept.
  void gradient(const Ctc& rule, float weight, T* dx) {
    std::fill_n(occupied_, sizes_.classes, 0.0);
    for (int i = count_ - 1; i >= 0; --i) {
      go_backward(i);
      const double *own = forward(i), *follows = after(i);
      const auto share = [&](int s) { return std::exp(own[s] + follows[s] - probability_); };
      const auto class_of = [&](int s) { return s % 2 == 0 ? rule.mask_index : target_[s / 2]; };
      for (int s = 0; s < paths_.count(); ++s) occupied_[class_of(s)] += share(s);
      write_step(i, weight, dx + steps_[i] * sizes_.classes);
      for (int s = 0; s < paths_.count(); ++s) occupied_[class_of(s)] = 0;
    }
    for (std::int64_t t = 0, i = 0; t < sizes_.steps; ++t) {
      if (i < count_ && steps_[i] == t) {
        ++i;
      } else {
        std::fill_n(dx + t * sizes_.classes, sizes_.classes, T{});
      }
    }
  }

 private:
  double* forward(int i) { return forward_ + i % rows_ * states_; }
  double* after(int i) { return after_ + i % 2 * states_; }
  const double* emission(int i) const { return emissions_ + i * (sizes_.longest + 1); }
  // The states through which paths pass in step i.
  int first_state(int i) const { return std::max(0, paths_.count() - 2 * (count_ - i)); }
  int end_state(int i) const { return std::min(paths_.count(), 2 * i + 2); }

  // Computes the probabilities of the blank and of the target's classes in step i.
  void emit(int i, int blank) {
    const T* row = x_ + steps_[i] * sizes_.classes;
    const std::int64_t n = sizes_.classes;
    double norm = 0;
    simd([=, &norm]() TRAINCTL_INLINE {
      float top = load(row[0]);
#pragma omp simd reduction(max : top)
      for (std::int64_t k = 1; k < n; ++k) top = load(row[k]) > top ? load(row[k]) : top;
      const auto term = [=](std::int64_t k) TRAINCTL_INLINE { return double{exp_approx(load(row[k]) - top)}; };
      norm = double{top} + std::log(lane_sum<double>(n, term));
    });
    norms_[i] = norm;
    double* own = emissions_ + i * (sizes_.longest + 1);
    own[0] = double{load(row[blank])} - norm;
    for (int k = 0; k < paths_.length; ++k) own[k + 1] = double{load(row[target_[k]])} - norm;
  }

  // Computes the probabilities of the beginnings of paths that are in each state in step i.
  void go_forward(int i) {
    double* own = forward(i);
    const double* emitted = emission(i);
    std::fill_n(own, paths_.count(), CtcStates::impossible());
    for (int s = first_state(i); s < end_state(i); ++s) {
      own[s] = (i == 0 ? 0.0 : paths_.forward(forward(i - 1), s)) + emitted[CtcStates::emission(s)];
    }
  }

  // Computes the probabilities of the ends of paths that are in each state in step i.
  void go_backward(int i) {
    double* own = after(i);
    std::fill_n(own, paths_.count(), CtcStates::impossible());
    if (i + 1 < count_) {
      double* next = after(i + 1);
      const double* emitted = emission(i + 1);
      for (int s = 0; s < paths_.count(); ++s) next[s] += emitted[CtcStates::emission(s)];
      for (int s = first_state(i); s < end_state(i); ++s) own[s] = paths_.backward(next, s);
    } else {
      for (int s = std::max(0, paths_.count() - 2); s < paths_.count(); ++s) own[s] = 0;
    }
  }

  void write_step(int i, float weight, T* dx) const {
    const T* row = x_ + steps_[i] * sizes_.classes;
    const double norm = norms_[i];
    const double* occupied = occupied_;
    simd([=, n = sizes_.classes]() TRAINCTL_INLINE {
#pragma omp simd
      for (std::int64_t k = 0; k < n; ++k) {
        const float p = exp_approx(static_cast<float>(double{load(row[k])} - norm));
        dx[k] = store<T>(weight * static_cast<float>(double{p} - occupied[k]));
      }
    });
  }

  const SequenceSizes sizes_;
  const std::int64_t states_, rows_;
  const T* x_;
  double *norms_, *emissions_, *forward_, *after_, *occupied_;
  std::int32_t *steps_, *target_;
  CtcStates paths_ = {};
  int count_ = 0;  // the steps that exist
  double probability_ = 0;
};

}  // namespace

template <class T>
Lowering lower_sequence_loss(const LowerContext& context, const Loss& def, const Ctc& rule) {
  const CtcMemory layout{SequenceSizes(context), def.training};
  const auto run = [=, accumulate = def.accumulate, scale = def.scale, counts = def.counts, masked = def.masked,
                    gradient = static_cast<std::size_t>(def.sums())](const Buffers& buffers) {
    const auto& [samples, steps, classes, longest] = layout.sizes;
    const T* x = buffers.in<T>(0);
    const auto* targets = buffers.in<std::int32_t>(1);
    const float* weights = buffers.in<float>(2);
    const std::uint8_t* mask = masked ? buffers.in<std::uint8_t>(3) : nullptr;
    T* dx = layout.training ? buffers.out<T>(gradient) : nullptr;
    float* losses = buffers.workspace<float>(samples * layout.bytes());
    auto* memory = buffers.workspace<std::byte>();
    const std::int64_t values = steps * classes, longest_target = longest, all_steps = steps;
    parallel_ranges(samples, 1, [=, &layout, &rule](std::int64_t begin, std::int64_t end) {
      for (std::int64_t n = begin; n < end; ++n) {
        T* const own = dx ? dx + n * values : nullptr;
        losses[n] = 0;
        if (weights[n] == 0) {  // such samples may hold any values
          if (own) std::fill_n(own, values, T{});
          continue;
        }
        CtcSample<T> sample(layout, x + n * values, memory + n * layout.bytes());
        const double loss = sample.loss(rule, targets + n * longest_target, mask ? mask + n * all_steps : nullptr);
        const bool leaves_out = rule.zero_infinity && std::isinf(loss);
        if (!leaves_out) losses[n] = weights[n] * static_cast<float>(loss);
        if (!own) continue;
        if (std::isfinite(loss)) {
          sample.gradient(rule, weights[n] * scale, own);
        } else {
          std::fill_n(own, values, store<T>(leaves_out ? 0.0f : std::numeric_limits<float>::quiet_NaN()));
        }
      }
    });
    const auto total = [&](const float* values, std::size_t output) {
      float* sum = buffers.out<float>(output);
      *sum = std::accumulate(values, values + samples, accumulate ? *sum : 0.0f);
    };
    total(losses, 0);
    if (counts) total(weights, 1);
  };
  return own_kernel(context, run, layout.sizes.samples * (layout.bytes() + size_of(DType::float32)));
}

template Lowering lower_sequence_loss<float>(const LowerContext&, const Loss&, const Ctc&);
template Lowering lower_sequence_loss<Bf16>(const LowerContext&, const Loss&, const Ctc&);

}  // namespace trainctl::cpu
