// Tests precision, recall and F1 of each class.
#include "core/metrics/class_scores.h"
#include "test/catch.h"

namespace trainctl::class_scores_test {

TEST_CASE("classes are scored by their rows and columns, and a class that never occurs has scores of 0") {
  // Of 8 samples of the first class 5 were found, and no other sample was predicted as that class; the second class was
  // predicted 8 times, 7 times correctly.
  const std::vector<ClassScores> scores = class_scores({{5, 1, 2}, {0, 7, 3}, {0, 0, 0}});
  REQUIRE(scores.size() == 3);
  CHECK(scores[0].precision == 1);
  CHECK(scores[0].recall == 0.625);
  CHECK(scores[0].f1_score == Approx(2 / (1 / 1.0 + 1 / 0.625)));
  CHECK(scores[0].samples == 8);
  CHECK(scores[1].precision == 0.875);
  CHECK(scores[1].recall == 0.7);
  CHECK(scores[1].f1_score == Approx(2 / (1 / 0.875 + 1 / 0.7)));
  CHECK(scores[1].samples == 10);
  for (const double value : {scores[2].precision, scores[2].recall, scores[2].f1_score, scores[2].samples}) {
    CHECK(value == 0);
  }
}

}  // namespace trainctl::class_scores_test
