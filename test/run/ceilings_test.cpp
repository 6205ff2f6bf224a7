// The ceilings that bench ops measures an op against.
#include "cmd/ceilings.h"

#include "test/catch.h"

using namespace trainctl;

TEST_CASE("products of either half type are measured against half precision's ceiling") {
  const Ceilings ceilings{{100, 1000, 20}, 30};
  CHECK(ceilings.gflops(DType::float32) == 100);
  CHECK(ceilings.gflops(DType::bfloat16) == 1000);
  CHECK(ceilings.gflops(DType::float16) == 1000);
  CHECK(ceilings.gb_per_s() == 30);
  CHECK(Ceilings{{100, 1000, 40}, 30}.gb_per_s() == 40);
}
