// Packs the matrix and multiplies panel by panel.
#include "core/backend/cpu/ops/recurrent/product.h"

#include <algorithm>

#include "core/backend/cpu/simd/pairs.h"
#include "core/backend/cpu/simd/parallel.h"
#include "core/backend/cpu/simd/product.h"

namespace trainctl::cpu {
namespace {

constexpr int max_vectors = 4;  // vectors of a panel

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace

PackedProduct::PackedProduct(std::int64_t inner, std::int64_t columns, DType dtype)
    : inner_(inner),
      columns_(columns),
      in_pairs_(dtype == DType::bfloat16 && multiplies_pairs()),
      depth_(in_pairs_ ? divide_up(inner, 2) : inner),
      vectors_(divide_up(columns, vector)),
      panels_(divide_up(vectors_, max_vectors)) {}

void PackedProduct::pack(const float* b, std::int64_t inner_step, std::int64_t column_step, float* packed) const {
  const auto value = [=, this](std::int64_t k, std::int64_t column) {
    return k < inner_ && column < columns_ ? b[k * inner_step + column * column_step] : 0.0f;
  };
  parallel_ranges(panels_, std::max<std::int64_t>(1, element_grain / (inner_ * vector * max_vectors)),
                  [=, this](std::int64_t begin, std::int64_t end) {
                    for (std::int64_t panel = begin; panel < end; ++panel) {
                      const std::int64_t first = vectors_ * panel / panels_ * vector,
                                         last = vectors_ * (panel + 1) / panels_ * vector;
                      float* to = packed + first * depth_;
                      for (std::int64_t k = 0; k < depth_; ++k) {
                        for (std::int64_t column = first; column < last; ++column) {
                          *to++ =
                              in_pairs_ ? pair_of(value(2 * k, column), value(2 * k + 1, column)) : value(k, column);
                        }
                      }
                    }
                  });
}

void PackedProduct::run(const float* a, std::int64_t rows, const float* packed, float* scratch, float* c) const {
  if (in_pairs_) {
    for (std::int64_t row = 0; row < rows; ++row) {
      const float* from = a + row * inner_;
      float* to = scratch + row * depth_;
      for (std::int64_t k = 0; k < inner_ / 2; ++k) to[k] = pair_of(from[2 * k], from[2 * k + 1]);
      if (inner_ % 2 != 0) to[depth_ - 1] = pair_of(from[inner_ - 1], 0.0f);
    }
    a = scratch;
  }
  for (std::int64_t panel = 0; panel < panels_; ++panel) {
    const std::int64_t first = vectors_ * panel / panels_ * vector, last = vectors_ * (panel + 1) / panels_ * vector;
    const MatrixProduct product{.a = a,
                                .a_row = depth_,
                                .a_step = 1,
                                .b = packed + first * depth_,
                                .b_step = last - first,
                                .c = c + first,
                                .c_row = c_stride(),
                                .rows = rows,
                                .columns = last - first,
                                .depth = depth_};
    in_pairs_ ? multiply_pairs(product) : multiply(product);
  }
}

}  // namespace trainctl::cpu
