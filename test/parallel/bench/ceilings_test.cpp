// Tests the ceilings with which `bench ops` compares an op.
#include "parallel/bench/ceilings.h"

#include "test/catch.h"

namespace trainctl::ceilings_test {

TEST_CASE("products of either half type are measured against half precision's ceiling") {
  const Ceilings ceilings{{.float32_gflops = 100, .bfloat16_gflops = 1000}, 30, {}};
  CHECK(ceilings.gflops(DType::float32) == 100);
  CHECK(ceilings.gflops(DType::bfloat16) == 1000);
  CHECK(ceilings.gflops(DType::float16) == 1000);
}

TEST_CASE("an op that fits in cache has the ceiling of copies of its size") {
  const Ceilings ceilings{{.triad_gb_per_s = 20}, 30, {{1000, 200}, {4000, 250}, {16000, 100}, {64000, 25}}};
  CHECK(ceilings.gb_per_s(100) == 250);  // smaller than all sizes: the fastest rate
  CHECK(ceilings.gb_per_s(5000) == 250);
  CHECK(ceilings.gb_per_s(20000) == 100);
  CHECK(ceilings.gb_per_s(1'000'000) == 30);  // in memory: the large copy or the triad
  CHECK(Ceilings{{.triad_gb_per_s = 40}, 30, {}}.gb_per_s(10) == 40);
  CHECK(ceilings.cached_gb_per_s() == 250);
}

}  // namespace trainctl::ceilings_test
