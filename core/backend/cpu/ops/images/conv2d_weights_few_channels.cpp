// The gradient of a convolution with respect to its kernel from images with few channels, as a product of matrices.
#include "core/backend/cpu/ops/images/conv2d_weights_few_channels.h"

#include <algorithm>

#include "core/backend/cpu/simd/parallel.h"
#include "core/backend/cpu/simd/product.h"
#include "core/backend/cpu/simd/simd.h"

namespace trainctl::cpu {
namespace {

constexpr std::int64_t most_channels = 4;
constexpr std::int64_t columns_multiple = 16;  // a MatrixProduct's columns are a multiple of it
constexpr std::int64_t least_outputs = 32;     // with 16 the tiles of sums have too few vectors to keep a core busy

void add_to(float* sums, const float* values, std::int64_t count) {
  simd([=]() TRAINCTL_INLINE {
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) sums[i] += values[i];
  });
}

}  // namespace

bool Conv2dWeightsFewChannels::computes(const Shape& x, const Shape& y, std::int64_t groups, DType dtype) {
  return dtype == DType::float32 && groups == 1 && x.back() <= most_channels && y.back() % columns_multiple == 0 &&
         y.back() >= least_outputs && instruction_set() != InstructionSet::baseline;
}

Conv2dWeightsFewChannels::Conv2dWeightsFewChannels(const Window& window, const Shape& x, const Shape& y, int threads)
    : window_(window),
      in_rows_(x[1]),
      in_values_(x[2] * x[3]),
      out_rows_(y[1]),
      out_columns_(y[2]),
      out_(y[3]),
      rows_(y[0] * y[1]),
      step_(window.strides[1] * x[3]),
      left_(window.padding_before[1] * x[3]),
      copied_row_(in_values_ + (window.padding_before[1] + window.padding_after[1]) * x[3]) {
  for (std::int64_t kh = 0; kh < window.size[0]; ++kh) {
    for (std::int64_t kw = 0; kw < window.size[1]; ++kw) {
      for (std::int64_t c = 0; c < x[3]; ++c) {
        taps_.push_back(kh * copied_row_ + kw * window.dilation[1] * x[3] + c);
      }
    }
  }
  taps_.push_back(window.size[0] * copied_row_);
  chunks_ = std::clamp<std::int64_t>(y.count() / element_grain, 1, threads);
}

std::int64_t Conv2dWeightsFewChannels::copied_values() const {
  return window_.size[0] * copied_row_ + (out_columns_ - 1) * step_ + 1;
}

void Conv2dWeightsFewChannels::copy_rows(const float* x, std::int64_t row, float* copied) const {
  const std::int64_t image = row / out_rows_, top = row % out_rows_ * window_.strides[0] - window_.padding_before[0];
  for (std::int64_t kh = 0; kh < window_.size[0]; ++kh, copied += copied_row_) {
    const std::int64_t in_row = top + kh * window_.dilation[0];
    float* to = copied + left_;
    if (in_row < 0 || in_row >= in_rows_) {
      std::fill(to, to + in_values_, 0.0f);
    } else {
      std::copy_n(x + (image * in_rows_ + in_row) * in_values_, in_values_, to);
    }
  }
}

// Each image is summed on its own, so that no float32 sum has too many terms.
void Conv2dWeightsFewChannels::sum_rows(const float* x, const float* dy, std::int64_t first, std::int64_t last,
                                        float* work) const {
  std::fill(work, work + taps_.back(), 0.0f);  // the padding
  std::fill(work + taps_.back(), work + copied_values(), 1.0f);
  float* totals = work + copied_values();
  float* sums = totals + sums_values();
  std::fill(totals, sums, 0.0f);
  bool begins = true;
  for (std::int64_t row = first; row < last; ++row) {
    copy_rows(x, row, work);
    multiply({.a = work,
              .a_row = 0,
              .a_step = step_,
              .b = dy + row * out_columns_ * out_,
              .b_step = out_,
              .c = sums,
              .c_row = out_,
              .rows = taps() + 1,
              .columns = out_,
              .depth = out_columns_,
              .add = !begins,
              .a_rows = taps_.data()});
    begins = (row + 1) % out_rows_ == 0;
    if (begins || row + 1 == last) add_to(totals, sums, sums_values());
  }
}

void Conv2dWeightsFewChannels::run(const float* x, const float* dy, bool accumulate, float* dkernel, float* dbias,
                                   float* workspace) const {
  parallel_ranges(chunks_, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t chunk = begin; chunk < end; ++chunk) {
      sum_rows(x, dy, rows_ * chunk / chunks_, rows_ * (chunk + 1) / chunks_, workspace + chunk * chunk_values());
    }
  });
  if (!accumulate) {
    std::fill(dkernel, dkernel + taps() * out_, 0.0f);
    if (dbias != nullptr) std::fill(dbias, dbias + out_, 0.0f);
  }
  for (std::int64_t chunk = 0; chunk < chunks_; ++chunk) {
    const float* totals = workspace + chunk * chunk_values() + copied_values();
    add_to(dkernel, totals, taps() * out_);
    if (dbias != nullptr) add_to(dbias, totals + taps() * out_, out_);
  }
}

}  // namespace trainctl::cpu
