// Computes the gradient of a convolution with respect to its kernel as one product of matrices for each tap.
//
// A tap is a position of the window. Its part of the gradient [C, O] is the product of the rows of x that it reads,
// transposed, and the rows of dy that use them. Positions where the tap lies in the padding are left out. Small images,
// whose rows are few, are fast in this way: for 4x4 images the taps of a 3x3 window read 100 of 144 positions.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/graph/ops/images/window.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"

namespace trainctl::cpu {

class Conv2dWeightsByTaps {
 public:
  // Whether this class computes the gradient for images y [N, H', W', O] and x of this dtype.
  static bool computes(const Shape& y, std::int64_t groups, DType dtype);
  // The name of the implementation.
  static std::string name();

  // The values do not depend on `threads`.
  Conv2dWeightsByTaps(const Window& window, const Shape& x, const Shape& y, int threads);

  std::int64_t workspace_bytes() const;

  // Writes the gradient to dkernel [kh, kw, C, O], or adds it with `accumulate`.
  void run(const float* x, const float* dy, bool accumulate, float* dkernel, float* workspace) const;

 private:
  // Along an axis, the positions of y whose window has the tap inside the image, and the position of x for the first.
  struct Range {
    std::int64_t first, count, in_first;
  };
  struct Tap {
    Range rows, columns;
    std::int64_t positions;  // of all images
  };
  // Rows of x for `count` positions of a tap, from position `first` on.
  struct Block {
    const Tap& tap;
    std::int64_t first, count;
    const float* rows;
    std::int64_t step;
  };

  Range range(const Shape& x, const Shape& y, std::size_t axis, std::int64_t offset) const;
  // Calls visit(i, row of x, row of dy) for `count` positions of a tap, numbered from 0.
  template <class Visit>
  void each_position(const Tap& tap, std::int64_t first, std::int64_t count, const Visit& visit) const;
  void copy_rows(const Tap& tap, std::int64_t first, std::int64_t count, const float* x, float* copied) const;
  void multiply_block(const Block& block, const float* dy, bool add, float* dkernel, float* panels) const;
  // Columns of a panel of dy, from `column` on, and rows [from, to) of a tap's gradient.
  void multiply_panel(const Block& block, std::int64_t column, std::int64_t from, std::int64_t to, const float* dy,
                      bool add, float* dkernel, float* panel) const;

  std::int64_t images_, in_, out_, threads_;
  std::int64_t in_rows_, in_columns_, out_rows_, out_columns_;
  std::array<std::int64_t, 2> strides_;
  bool direct_;  // whether the rows of x are those of dy
  std::vector<Tap> taps_;
};

}  // namespace trainctl::cpu
