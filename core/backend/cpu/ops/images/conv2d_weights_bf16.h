// Computes the gradient of a convolution with respect to its kernel from bfloat16 images, with AVX-512's dot products
// of bfloat16 pairs.
//
// The sum runs over positions, so two neighbouring positions of a row form a pair. A few rows at a time are packed into
// pairs, which stay in the caches. x is packed once for each residue of its columns modulo the stride. dy, with zeros
// around it, is packed in pairs that begin at even positions and, if needed, once more in pairs that begin at odd
// positions. So all columns of the kernel read the same x and a shifted dy. Tiles of 8 input channels by 3 vectors of
// 16 output channels then sum over the packed rows in registers.
#pragma once

#include <cstdint>
#include <vector>

#include "core/graph/ops/images/window.h"
#include "core/tensor/shape.h"

namespace trainctl::cpu {

struct Bf16;  // core/backend/cpu/simd/simd.h

class Conv2dWeightsBf16 {
 public:
  // Whether this processor has AVX-512's instructions for bfloat16.
  static bool available();

  // Images x [N, H, W, C] and y [N, H', W', O], no groups. The order of the sums depends on the shapes and `threads`.
  Conv2dWeightsBf16(const Window& window, const Shape& x, const Shape& y, int threads);

  std::int64_t workspace_bytes() const;

  // Writes the gradient to dkernel [kh, kw, C, O], or adds it to dkernel with `accumulate`. The workspace must be
  // aligned to 64 bytes.
  void run(const Bf16* x, const Bf16* dy, bool accumulate, float* dkernel, void* workspace) const;

 private:
  // A column of the kernel: dw(kw) = sum over t of x[stride * t + residue] dy[t - shift].
  struct Column {
    std::int64_t kw, shift;
  };
  struct Residue {
    std::int64_t first;  // the column of x at t = 0
    std::vector<Column> columns;
  };
  struct Task;

  // Returns the row of x that the kernel's first row reads for a row of dy, as an index into the padded rows of all
  // images.
  std::int64_t slot(std::int64_t row) const {
    return row / out_rows_ * image_slots_ + row % out_rows_ * window_.strides[0];
  }
  std::int64_t kernel_reach() const { return (window_.size[0] - 1) * window_.dilation[0]; }
  // The number of values of a packed row of x with 16 channels.
  std::int64_t row_values() const;
  std::int64_t packed_x_bytes() const;
  std::int64_t packed_dy_bytes() const;
  void pack(const Task& task) const;
  // Sets the memory that sum() prefetches: the rows up to `end` that the task packs next.
  void fetch_next(Task& task, std::int64_t end) const;
  void sum(Task& task, std::int64_t kernel_row) const;

  Window window_;
  std::int64_t in_rows_, in_columns_, in_, out_rows_, out_columns_, out_;
  std::int64_t rows_;  // number of rows of dy of all images
  std::vector<Residue> residues_;
  std::int64_t pairs_;                     // number of pairs in a packed row of x
  std::int64_t first_dy_pair_, dy_pairs_;  // first pair, and number of pairs, of a packed row of dy
  std::int64_t pairings_ = 1;              // 1: dy is packed from even positions only; 2: from odd positions, too
  std::int64_t image_slots_;   // number of padded rows of an image of x, each with memory for its packed row
  std::vector<bool> is_read_;  // for each of these rows, whether the kernel reads it and it is not padding
  std::int64_t in_blocks_, out_blocks_, row_ranges_, chunk_rows_, chunk_slots_;
  int threads_;
};

}  // namespace trainctl::cpu
