// Compares products of matrices with sums in float64, also where they may leave out what lies outside a band.
#include "core/backend/cpu/simd/product.h"

#include <vector>

#include "test/catch.h"
#include "test/core/backend/run_op.h"

namespace trainctl::test::product_test {
namespace {

struct Sizes {
  std::int64_t rows, columns, depth;
};

std::vector<float> random_floats(std::int64_t rows, std::int64_t columns, std::uint64_t seed) {
  const Value value = random_value({rows, columns}, DType::float32, seed);
  return {value.values.begin(), value.values.end()};
}

bool covers(const cpu::Band& band, std::int64_t row, std::int64_t column) {
  return column - row >= band.first && column - row <= band.last;
}

// Computes c (+)= a b, where a is 0 outside `of_a`, stored by columns if `transposed`, and compares the elements of c
// in `of_c`.
void check_product(const Sizes& s, const cpu::Band& of_a, const cpu::Band& of_c, bool transposed, bool add) {
  CAPTURE(s.rows, s.columns, s.depth, of_a.first, of_a.last, of_c.first, of_c.last, transposed, add);
  std::vector<float> a = random_floats(s.rows, s.depth, 1), stored(a.size());
  const std::vector<float> b = random_floats(s.depth, s.columns, 2), before = random_floats(s.rows, s.columns, 3);
  const auto at = [](std::int64_t row, std::int64_t columns, std::int64_t column) {
    return static_cast<std::size_t>(row * columns + column);
  };
  for (std::int64_t r = 0; r < s.rows; ++r) {
    for (std::int64_t k = 0; k < s.depth; ++k) {
      float& value = a[at(r, s.depth, k)];
      if (!covers(of_a, r, k)) value = 0;
      stored[transposed ? at(k, s.rows, r) : at(r, s.depth, k)] = value;
    }
  }
  std::vector<float> c = before;
  cpu::multiply({.a = stored.data(),
                 .a_row = transposed ? 1 : s.depth,
                 .a_step = transposed ? s.rows : 1,
                 .b = b.data(),
                 .b_step = s.columns,
                 .c = c.data(),
                 .c_row = s.columns,
                 .rows = s.rows,
                 .columns = s.columns,
                 .depth = s.depth,
                 .add = add,
                 .of_a = of_a,
                 .of_c = of_c});
  double error = 0;
  for (std::int64_t r = 0; r < s.rows; ++r) {
    for (std::int64_t column = 0; column < s.columns; ++column) {
      if (!covers(of_c, r, column)) continue;
      double sum = add ? static_cast<double>(before[at(r, s.columns, column)]) : 0;
      for (std::int64_t k = 0; k < s.depth; ++k) {
        sum += static_cast<double>(a[at(r, s.depth, k)]) * static_cast<double>(b[at(k, s.columns, column)]);
      }
      error = std::max(error, std::abs(static_cast<double>(c[at(r, s.columns, column)]) - sum));
    }
  }
  CHECK(error < 1e-5);
}

}  // namespace

TEST_CASE("products of matrices follow their definition, also with bands") {
  constexpr std::int64_t no_limit = cpu::Band::unlimited;
  const std::vector<cpu::Band> bands{{},          {-no_limit, 0}, {-no_limit, 37}, {-no_limit, -9},
                                     {-5, 20},    {12, no_limit}, {-20, no_limit}, {-3, -1},
                                     {-200, -190}};
  for (const Sizes& sizes : {Sizes{48, 64, 48}, Sizes{1, 16, 5}, Sizes{29, 176, 33}}) {
    for (const cpu::Band& band : bands) {
      for (const bool add : {false, true}) {
        check_product(sizes, band, {}, false, add);
        check_product(sizes, band.transposed(), {}, true, add);
        check_product(sizes, {}, band, false, add);
        check_product(sizes, band, band, false, add);
      }
    }
  }
}

}  // namespace trainctl::test::product_test
