// Computes the gradient of a convolution with respect to its kernel and bias from images with 1 to 4 channels, such as
// those of a network's first layer.
//
// oneDNN's implementations sum over blocks of input channels, which so few channels leave mostly empty. Here each tap,
// a position of the window with an input channel, is a row of a matrix that has a column for each position of a row of
// dy. This matrix times the row of dy is the row's part of the gradient. Its values are read directly from the rows of
// x below the window, which are copied with their padding. The gradient of the bias is that of one more tap, whose
// value is 1 everywhere.
#pragma once

#include <cstdint>
#include <vector>

#include "core/graph/ops/images/window.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"

namespace trainctl::cpu {

class Conv2dWeightsFewChannels {
 public:
  // Whether this class computes the gradient for images x [N, H, W, C] and y [N, H', W', O] of this dtype.
  static bool computes(const Shape& x, const Shape& y, std::int64_t groups, DType dtype);

  // The order of the sums depends on the shapes and `threads`.
  Conv2dWeightsFewChannels(const Window& window, const Shape& x, const Shape& y, int threads);

  std::int64_t workspace_bytes() const { return chunks_ * chunk_values() * 4; }

  // Writes the gradients to dkernel [kh, kw, C, O] and dbias [O], or adds them with `accumulate`. dbias may be null.
  void run(const float* x, const float* dy, bool accumulate, float* dkernel, float* dbias, float* workspace) const;

 private:
  std::int64_t taps() const { return static_cast<std::int64_t>(taps_.size()) - 1; }
  // The number of values of the copied rows and of the ones after them, and the number of values of the gradients of
  // all taps.
  std::int64_t copied_values() const;
  std::int64_t sums_values() const { return (taps() + 1) * out_; }
  // The workspace of a chunk of rows: copied rows, sums over the images of the chunk, sums over an image.
  std::int64_t chunk_values() const { return copied_values() + 2 * sums_values(); }
  // Copies the rows of x that a row of dy belongs to.
  void copy_rows(const float* x, std::int64_t row, float* copied) const;
  void sum_rows(const float* x, const float* dy, std::int64_t first, std::int64_t last, float* work) const;

  Window window_;
  std::int64_t in_rows_, in_values_;  // of an image of x; values of a row
  std::int64_t out_rows_, out_columns_, out_;
  std::int64_t rows_;               // rows of dy of all images
  std::int64_t step_;               // distance of the values that neighbouring positions of dy have for a tap
  std::int64_t left_, copied_row_;  // values of the padding on the left of a row, and of a copied row
  std::vector<std::int64_t> taps_;  // the offset of each tap in the copied rows, and at the end that of the ones
  std::int64_t chunks_;
};

}  // namespace trainctl::cpu
