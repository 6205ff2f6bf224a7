// Tests arithmetic that reports an overflow as an error.
#include "core/base/checked.h"

#include "core/tensor/shape.h"
#include "test/catch.h"

namespace trainctl::checked_test {
namespace {

constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();

TEST_CASE("sums, products and shapes beyond 64 bits are config errors") {
  CHECK(checked_add(largest - 1, 1) == largest);
  CHECK_THROWS_AS(checked_add(largest, 1), OverflowError);
  CHECK(checked_multiply(3037000499, 3037000499) == 9223372030926249001);
  CHECK_THROWS_AS(checked_multiply(3037000500, 3037000500), OverflowError);
  CHECK(saturated_multiply(3037000500, 3037000500) == largest);
  CHECK(saturated_multiply(6, 7) == 42);
  CHECK(divide_up(largest, 2) == largest / 2 + 1);
  CHECK(divide_up(64, 8) == 8);
  CHECK(round_up(65, 64) == 128);
  CHECK_THROWS_AS(round_up(largest, 64), OverflowError);
  CHECK(Shape{1 << 20, 1 << 20, 1 << 20}.count() == std::int64_t{1} << 60);
  CHECK_THROWS_AS((Shape{1 << 21, 1 << 21, 1 << 21}.count()), OverflowError);
  try {
    throw_overflow();
  } catch (const Error& error) {
    CHECK(exit_code(error.kind()) == 2);
  }
}

}  // namespace
}  // namespace trainctl::checked_test
