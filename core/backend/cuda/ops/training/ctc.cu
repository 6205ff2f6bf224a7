// Computes the CTC loss and its gradient by the forward-backward algorithm, in float64 and in the logarithmic domain. A
// block processes a sample.
#include "core/graph/ops/losses/ctc.h"

#include "core/backend/cuda/device/last_block.h"
#include "core/backend/cuda/device/own_memory.h"
#include "core/backend/cuda/ops/training/sequences.h"

namespace trainctl::cuda {
namespace {

// The memory of a sample: float64 values, then numbers.
struct CtcMemory {
  SequenceSizes sizes;
  bool training;

  __host__ __device__ int states() const { return 2 * sizes.longest + 1; }
  __host__ __device__ int rows() const { return training ? sizes.steps : 2; }  // of the forward probabilities
  __host__ __device__ std::int64_t reals() const {
    return sizes.steps + std::int64_t{sizes.steps} * (sizes.longest + 1) + std::int64_t{rows() + 2} * states();
  }
  __host__ __device__ std::int64_t bytes() const {  // a multiple of 8
    const std::int64_t integers = sizes.steps + 2 * sizes.longest;
    return (reals() + (integers + 1) / 2) * static_cast<std::int64_t>(sizeof(double));
  }
};

// One sample: its logits, and the probabilities of its paths. All probabilities are logarithms. All threads of the
// block make the same calls.
template <class T>
class CtcSample {
 public:
  __device__ CtcSample(const CtcMemory& layout, const T* x, char* memory)
      : sizes_(layout.sizes), states_(layout.states()), rows_(layout.rows()), x_(x) {
    norms_ = reinterpret_cast<double*>(memory);
    emissions_ = norms_ + sizes_.steps;
    forward_ = emissions_ + std::int64_t{sizes_.steps} * (sizes_.longest + 1);
    after_ = forward_ + std::int64_t{rows_} * states_;
    steps_ = reinterpret_cast<std::int32_t*>(after_ + 2 * states_);
    target_ = steps_ + sizes_.steps;
    next_ = target_ + sizes_.longest;
  }

  // Reads target and mask, and returns the loss: NaN if a target is not a class, infinity if no path spells it.
  __device__ double loss(const Ctc& rule, const std::int32_t* target, const std::uint8_t* mask) {
    __shared__ int count, length, valid;
    __syncthreads();  // an earlier sample's values may still be read
    if (threadIdx.x == 0) {
      count = existing_steps(mask, sizes_.steps, steps_);
      length = target_classes(target, sizes_.longest, rule.mask_index, target_);
      valid = rule.mask_index < sizes_.classes;
    }
    __syncthreads();
    count_ = count;
    paths_ = {target_, length};
    for (int i = thread(); i < length; i += threads()) {
      if (target_[i] < 0 || target_[i] >= sizes_.classes) valid = 0;
    }
    __syncthreads();
    if (valid == 0) return NAN;
    if (count_ == 0) return length == 0 ? 0.0 : -CtcStates::impossible();
    for (int i = warp(); i < count_; i += warps()) emit(i, rule.mask_index);
    __syncthreads();
    for (int i = 0; i < count_; ++i) go_forward(i);
    const double* last = forward(count_ - 1);
    const int end = paths_.count();
    probability_ = CtcStates::log_sum(last[end - 1], end > 1 ? last[end - 2] : CtcStates::impossible());
    return -probability_;
  }

  // Writes `weight` times the gradient of a finite loss; after loss(), if all rows of the probabilities are kept.
  __device__ void gradient(const Ctc& rule, float weight, T* dx) {
    link_equal_classes();
    for (int i = count_ - 1; i >= 0; --i) {
      go_backward(i);
      double* own = forward(i);
      const double* follows = after(i);
      for (int s = thread(); s < paths_.count(); s += threads()) own[s] = exp(own[s] + follows[s] - probability_);
    }
    for (int t = thread(); t < sizes_.steps; t += threads()) {
      if (!exists(t)) {
        for (int k = 0; k < sizes_.classes; ++k) dx[std::int64_t{t} * sizes_.classes + k] = store<T>(0.0f);
      }
    }
    __syncthreads();
    for (int i = warp(); i < count_; i += warps()) {
      write_step(i, rule.mask_index, weight, dx + std::int64_t{steps_[i]} * sizes_.classes);
    }
  }

 private:
  __device__ static int thread() { return static_cast<int>(threadIdx.x); }
  __device__ static int threads() { return static_cast<int>(blockDim.x); }
  __device__ static int lane() { return thread() % 32; }
  __device__ static int warp() { return thread() / 32; }
  __device__ static int warps() { return threads() / 32; }
  __device__ double* forward(int i) const { return forward_ + std::int64_t{i % rows_} * states_; }
  __device__ double* after(int i) const { return after_ + i % 2 * states_; }
  __device__ double* emission(int i) const { return emissions_ + std::int64_t{i} * (sizes_.longest + 1); }
  // Whether paths pass through a state in step i.
  __device__ bool passes(int i, int state) const {
    return state >= paths_.count() - 2 * (count_ - i) && state < 2 * i + 2;
  }
  // Whether step t is among the steps that exist, which are in order.
  __device__ bool exists(int t) const {
    int low = 0, high = count_;
    while (low < high) {
      const int middle = (low + high) / 2;
      if (steps_[middle] < t)
        low = middle + 1;
      else
        high = middle;
    }
    return low < count_ && steps_[low] == t;
  }

  // Computes the probabilities of the blank and of the target's classes in step i; a warp calls this function.
  __device__ void emit(int i, int blank) {
    const T* row = x_ + std::int64_t{steps_[i]} * sizes_.classes;
    float top = -INFINITY;
    for (int k = lane(); k < sizes_.classes; k += 32) top = fmaxf(top, load(row[k]));
    top = join_warp(top, [](float a, float b) { return fmaxf(a, b); });
    double sum = 0;
    for (int k = lane(); k < sizes_.classes; k += 32) sum += expf(load(row[k]) - top);
    const double norm = top + log(join_warp(sum, [](double a, double b) { return a + b; }));
    if (lane() == 0) norms_[i] = norm;
    double* own = emission(i);
    for (int k = lane(); k <= paths_.length; k += 32) own[k] = load(row[k == 0 ? blank : target_[k - 1]]) - norm;
  }

  // Computes the probabilities of the beginnings of paths that are in each state in step i.
  __device__ void go_forward(int i) {
    double* own = forward(i);
    const double *before = i > 0 ? forward(i - 1) : nullptr, *emitted = emission(i);
    for (int s = thread(); s < paths_.count(); s += threads()) {
      const double reached = i == 0 ? 0.0 : paths_.forward(before, s);
      own[s] = passes(i, s) ? reached + emitted[CtcStates::emission(s)] : CtcStates::impossible();
    }
    __syncthreads();
  }

  // Computes the probabilities of the ends of paths that are in each state in step i.
  __device__ void go_backward(int i) {
    double *own = after(i), *next = after(i + 1);
    const bool ends = i + 1 == count_;
    for (int s = thread(); s < paths_.count() && !ends; s += threads()) {
      next[s] += emission(i + 1)[CtcStates::emission(s)];
    }
    __syncthreads();
    for (int s = thread(); s < paths_.count(); s += threads()) {
      const double of_last = s + 2 >= paths_.count() ? 0.0 : CtcStates::impossible();
      own[s] = ends ? of_last : passes(i, s) ? paths_.backward(next, s) : CtcStates::impossible();
    }
    __syncthreads();
  }

  // Writes, for each class of the target, the number of the next one that is equal: 0 if there is none. The number of a
  // class that is not the first one of its kind is negated, minus 1.
  __device__ void link_equal_classes() {
    for (int i = thread(); i < paths_.length; i += threads()) {
      int next = i + 1, before = i - 1;
      while (next < paths_.length && target_[next] != target_[i]) ++next;
      while (before >= 0 && target_[before] != target_[i]) --before;
      if (next == paths_.length) next = 0;
      next_[i] = before < 0 ? next : -1 - next;
    }
    __syncthreads();
  }

  // Writes the gradient of step i, whose forward probabilities have become the probabilities of the states, no
  // logarithms. A warp calls this function.
  __device__ void write_step(int i, int blank, float weight, T* dx) const {
    const T* row = x_ + std::int64_t{steps_[i]} * sizes_.classes;
    const double norm = norms_[i], *shares = forward(i);
    double of_blank = 0;
    for (int s = 2 * lane(); s < paths_.count(); s += 64) of_blank += shares[s];
    of_blank = join_warp(of_blank, [](double a, double b) { return a + b; });
    for (int k = lane(); k < sizes_.classes; k += 32) {
      const float p = expf(static_cast<float>(load(row[k]) - norm));
      dx[k] = store<T>(weight * static_cast<float>(k == blank ? p - of_blank : p));
    }
    __syncwarp();
    for (int first = lane(); first < paths_.length; first += 32) {
      if (next_[first] < 0) continue;
      double share = shares[2 * first + 1];
      for (int j = next_[first]; j != 0; j = -1 - next_[j]) share += shares[2 * j + 1];
      dx[target_[first]] = store<T>(weight * static_cast<float>(exp(emission(i)[first + 1]) - share));
    }
  }

  const SequenceSizes sizes_;
  const int states_, rows_;
  const T* x_;
  double *norms_, *emissions_, *forward_, *after_;
  std::int32_t *steps_, *target_, *next_;
  CtcStates paths_ = {};
  int count_ = 0;  // the steps that exist
  double probability_ = 0;
};

// dx is null in evaluation, and `count` is null if another loss counts the samples. A sample of weight 0 may hold any
// values.
template <class T>
__global__ void ctc_losses(CtcMemory layout, Ctc rule, bool accumulate, float scale, const T* x,
                           const std::int32_t* targets, const float* weights, const std::uint8_t* mask, char* memory,
                           T* dx, float* of_samples, unsigned* counter, float* sum, float* count) {
  const SequenceSizes& sizes = layout.sizes;
  for (int n = static_cast<int>(blockIdx.x); n < sizes.samples; n += static_cast<int>(gridDim.x)) {
    T* const own = dx != nullptr ? dx + n * sizes.values() : nullptr;
    const auto fill = [&](float value) {
      for (std::int64_t i = threadIdx.x; own != nullptr && i < sizes.values(); i += blockDim.x)
        own[i] = store<T>(value);
    };
    double loss = 0;
    if (weights[n] == 0) {
      fill(0);
    } else {
      CtcSample<T> sample(layout, x + n * sizes.values(), memory + n * layout.bytes());
      loss = sample.loss(rule, targets + std::int64_t{n} * sizes.longest,
                         mask != nullptr ? mask + std::int64_t{n} * sizes.steps : nullptr);
      if (isfinite(loss)) {
        if (own != nullptr) sample.gradient(rule, weights[n] * scale, own);
      } else {
        if (rule.zero_infinity && isinf(loss)) loss = 0;
        __syncthreads();  // `own` may be x, which other threads may still read
        fill(loss == 0 ? 0.0f : NAN);
      }
    }
    if (threadIdx.x == 0) of_samples[n] = weights[n] == 0 ? 0.0f : weights[n] * static_cast<float>(loss);
  }
  if (!last_block(counter, gridDim.x)) return;
  sum_in_block(of_samples, sizes.samples, accumulate, sum);
  if (count != nullptr) sum_in_block(weights, sizes.samples, accumulate, count);
}

}  // namespace

template <class T>
Lowering lower_sequence_loss(const LowerContext& context, const Loss& def, const Ctc& rule) {
  const CtcMemory layout{SequenceSizes(context), def.training};
  const std::int64_t bytes = layout.sizes.samples * layout.bytes();
  const int blocks = blocks_for(std::int64_t{layout.sizes.samples} * block_threads);
  const auto run = [=, accumulate = def.accumulate, scale = def.scale, counts = def.counts, masked = def.masked,
                    gradient = static_cast<std::size_t>(def.sums()), counter = make_counters(1)](const Buffers& p) {
    launch(ctc_losses<T>, blocks, block_threads, p.stream, layout, rule, accumulate, scale, p.in<T>(0),
           p.in<std::int32_t>(1), p.in<float>(2), masked ? p.in<std::uint8_t>(3) : nullptr, p.workspace<char>(),
           layout.training ? p.out<T>(gradient) : nullptr, p.workspace<float>(bytes), counter.get(), p.out<float>(0),
           counts ? p.out<float>(1) : nullptr);
  };
  return own_kernel(context, run, bytes + layout.sizes.samples * size_of(DType::float32));
}

template Lowering lower_sequence_loss<float>(const LowerContext&, const Loss&, const Ctc&);
template Lowering lower_sequence_loss<__nv_bfloat16>(const LowerContext&, const Loss&, const Ctc&);
template Lowering lower_sequence_loss<__half>(const LowerContext&, const Loss&, const Ctc&);

}  // namespace trainctl::cuda
