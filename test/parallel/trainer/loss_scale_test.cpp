// Tests the loss scale of float16: an overflow halves it and is counted, and the scale is restored from a checkpoint.
#include "parallel/trainer/loop/finite_check.h"

#include "test/catch.h"

namespace trainctl::loss_scale_test {

TEST_CASE("an overflow halves the scale and skips the step, and later steps with the old scale are skipped too") {
  LossScale scale;
  CHECK(scale.value() == 1024);
  CHECK_FALSE(scale.is_proven());
  CHECK(scale.learn(1024, false));
  CHECK(scale.learn(1024, false));  // this step had started with the old scale
  CHECK(scale.value() == 512);
  CHECK(scale.left_out() == 2);
  CHECK(scale.learn(512, true));
  CHECK(scale.is_proven());
  CHECK(scale.left_out() == 2);
  LossScale resumed(scale.text());
  CHECK(resumed.text() == scale.text());
  CHECK(resumed.value() == 512);
  CHECK(resumed.left_out() == 2);
  CHECK(resumed.is_proven());
  resumed.begin_state();
  CHECK(resumed.left_out() == 0);
  CHECK(resumed.value() == 512);
}

TEST_CASE("2,000 steps without an overflow double the scale, and a scale that can fall no further ends the run") {
  LossScale scale("64 1999");  // format of older checkpoints, without the number of skipped steps
  CHECK(scale.left_out() == 0);
  CHECK(scale.learn(64, true));
  CHECK(scale.value() == 128);
  CHECK_FALSE(scale.is_proven());
  CHECK_FALSE(scale.learn(1.0 / 65536, false));
}

}  // namespace trainctl::loss_scale_test
