// Tests when a measurement has been repeated often enough, and which result is kept.
#include "parallel/plan/measured/repeated.h"

#include "test/catch.h"

namespace trainctl::repeated_test {
namespace {

// Adds these times until the result is settled; returns the number of times that were added.
std::size_t repeat(Repeated& repeated, const std::vector<double>& times) {
  std::size_t taken = 0;
  while (!repeated.settled() && taken < times.size()) repeated.add({times[taken++]});
  return taken;
}

}  // namespace

TEST_CASE("two results that agree are enough, and the shorter one is kept") {
  Repeated repeated;
  CHECK(repeat(repeated, {1.02, 1.0, 9, 9, 9}) == 2);
  CHECK(repeated.chosen() == 1);
  CHECK(repeated.spread() == Approx(0.02));
}

TEST_CASE("a result that was measured at a busy moment is not kept") {
  Repeated repeated;
  CHECK(repeat(repeated, {1.7, 1.01, 1.0, 9, 9}) == 3);
  CHECK(repeated.chosen() == 2);
  CHECK(repeated.spread() == Approx(0.01));
}

TEST_CASE("if no two results agree, the spread is wide") {
  Repeated repeated;
  CHECK(repeat(repeated, {1, 2, 4, 8, 9.6}) == 5);
  CHECK(repeated.chosen() == 3);
  CHECK(repeated.spread() == Approx(0.2));
  CHECK(repeated.spread() > wide_spread);
}

TEST_CASE("without time left, two results are enough, and their spread is kept") {
  Repeated repeated;
  repeated.add({1});
  CHECK_FALSE(repeated.settled(true));
  repeated.add({2});
  CHECK_FALSE(repeated.settled());
  CHECK(repeated.settled(true));
  CHECK(repeated.chosen() == 0);
  CHECK(repeated.spread() == Approx(1));
}

TEST_CASE("lists of times agree if half of their times agree") {
  Repeated repeated(3, 0.05);
  repeated.add({1, 10, 100});
  CHECK(!repeated.settled());
  repeated.add({2, 11, 101});
  CHECK(!repeated.settled());
  repeated.add({2.5, 10.3, 101, 1000});  // a list with one more time
  CHECK(repeated.settled());
  CHECK(repeated.chosen() == 0);
  CHECK(repeated.spread() == Approx(0.03));
}

}  // namespace trainctl::repeated_test
