// Tests what the training loop does after a step that is not finite: it ends, skips the step or goes back.
#include <algorithm>

#include "test/parallel/trainer/loop_rig.h"

namespace trainctl::test::loop_test {

TEST_CASE("a loss that is not finite ends the run, and the error names step, tensor and last checkpoint") {
  on_one_rank([](Communicator& world) {
    Rig rig(world, 2);
    rig.engine.nan_step = 6;
    try {
      rig.run();
      FAIL("the run did not end");
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::diverged);
      CHECK(std::string(error.what()).find("at step 7 (epoch 1.20): the first tensor that is not finite is relu") !=
            std::string::npos);
      CHECK(std::string(error.what()).find("the last checkpoint is of step 4") != std::string::npos);
    }
    CHECK(rig.log.back() == "search 1 back");
  });
}

TEST_CASE("a step that is not finite is skipped: it counts, but not for the means, and too many in a row end the run") {
  on_one_rank([](Communicator& world) {
    for (const int at_once : {1, 2}) {
      Rig rig(world, at_once);
      rig.finite = FiniteCheck(false, {OnNotFinite::skip, 1});
      rig.engine.nan_step = 6;
      const EndEvent end = rig.run();
      CHECK(end.status == "completed");
      CHECK(end.step == 12);
      CHECK(rig.store.last.position == DataPosition{1, 2, 8});
      CHECK(std::count(rig.log.begin(), rig.log.end(), "skip of step 7, 1") == 1);
      CHECK(std::count(rig.log.begin(), rig.log.end(), "step 7") == 0);
      CHECK(std::count(rig.log.begin(), rig.log.end(), "step 8") == 1);
      CHECK(rig.finite.skipped().in_a_row() == 0);
    }
    Rig rig(world);
    rig.finite = FiniteCheck(false, {OnNotFinite::skip, 1});
    rig.finite.skipped().count_left_out();  // as after a resume
    rig.engine.nan_step = 0;
    CHECK_THROWS_WITH(rig.run(), Catch::Contains("the updates of 1 step before it"));
  });
}

TEST_CASE("a run goes back to a checkpoint and then passes the batch without computing it, also if steps overlap") {
  on_one_rank([](Communicator& world) {
    for (const int at_once : {1, 2}) {
      Rig first(world, at_once), second(world, at_once);
      for (Rig* rig : {&first, &second}) rig->finite = FiniteCheck(false, {OnNotFinite::rollback, 10});
      first.engine.nan_step = 6;
      first.run();
      REQUIRE(first.rollback);
      CHECK(first.log.front() == "save 0");
      CHECK(first.rollback->step == 6);
      CHECK(first.rollback->skipped == 6);
      CHECK(first.store.last.step == 4);
      Snapshot resumed = first.store.last;
      first.rollback->batches.save(resumed.metadata);
      CHECK(resumed.metadata.at("skipped_batches") == "6");
      for (int i = 0; i < 4; ++i) second.batches.next();
      const EndEvent end = second.run(&resumed);
      CHECK_FALSE(second.rollback);
      CHECK(end.step == 12);
      CHECK(second.log.front() == "save 4");  // with the batch that is skipped
      CHECK(std::count(second.log.begin(), second.log.end(), "start 6") == 0);
      CHECK(std::count(second.log.begin(), second.log.end(), "start 7") == 1);
      CHECK(second.store.last.position == DataPosition{1, 2, 8});
      CHECK(second.store.last.metadata.at("skipped_batches") == "6");
    }
  });
}

TEST_CASE("a batch is skipped only as often as the limit allows, and the batch before if the parameters are bad") {
  SkippedBatches skipped;
  for (const std::int64_t step : {3, 8, 9}) skipped.add(step);
  CHECK(skipped.contains(8));
  CHECK_FALSE(skipped.contains(7));
  CHECK(skipped.count_from(4) == 2);
  CHECK(skipped.last_computed_before(10) == 7);
  CHECK(skipped.last_computed_before(7) == 6);
  CHECK(skipped.last_computed_before(0) == -1);
  skipped.count_left_out();
  SnapshotMetadata metadata;
  skipped.save(metadata);
  SkippedBatches restored;
  restored.add(1);
  restored.restore(metadata);
  CHECK(restored.count_from(0) == 3);
  CHECK(restored.in_a_row() == 1);
}

}  // namespace trainctl::test::loop_test
