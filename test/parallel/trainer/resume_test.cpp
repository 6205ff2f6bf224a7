// Tests the message of a resumed run whose kernels differ from those of the checkpoint.
#include "parallel/trainer/resume.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/base/log.h"
#include "core/optim/schedule.h"
#include "parallel/trainer/hooks/plateau.h"
#include "parallel/trainer/training_plan.h"
#include "test/catch.h"

namespace trainctl::test::resume_test {
namespace {

// The text that log_resume() logs if the checkpoint has the kernels `before` and the run has the kernels `now`, on the
// same device.
std::string logged(const std::string& before, const std::string& now) {
  const std::string path = std::filesystem::temp_directory_path() / ("resume-" + std::to_string(getpid()));
  std::filesystem::remove(path);
  log::add_file(path, log::Level::info);
  Snapshot snapshot;
  snapshot.metadata = {{"device", "cpu"}, {"data", "d"}, {"kernel_choices", before}};
  TrainingPlan plan;
  plan.loop.steps_per_epoch = 10;
  plan.metadata = {{"device", "cpu"}, {"data", "d"}, {"kernel_choices", now}};
  log_resume(
      plan, [](const ScheduleTime&) { return 0.0; }, snapshot, "checkpoint");
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  std::filesystem::remove(path);
  return text.str();
}

}  // namespace

TEST_CASE("a resumed run logs that its kernels differ from those of the checkpoint") {
  const std::string before = "conv2d 3x3\tjit:avx2\ndense\tplain\n";
  CHECK(logged(before, before).find("kernels") == std::string::npos);
  // An op that only one of them has, for example with another number of ranks, is not reported.
  CHECK(logged(before, before + "dense 8\tpacked\n").find("kernels") == std::string::npos);
  const std::string text = logged(before, "conv2d 3x3\tref:any\ndense\tplain\n");
  CHECK(text.find("1 of the run's kernels differ from those of the checkpoint, such as ref:any instead of jit:avx2 "
                  "for conv2d 3x3") != std::string::npos);
}

TEST_CASE("results of other data are forgotten, and the rate that a plateau has lowered is kept") {
  Snapshot snapshot;
  snapshot.best = BestResult{"val_loss", false, 0.25, 40};
  snapshot.metadata = {{"data", "d"}, {"early_stopping", "1 0.25 3"}, {"reduce_on_plateau", "0.5 2 1 0.25 3"}};
  TrainingPlan plan;
  plan.metadata = {{"data", "d"}};
  const Snapshot same = without_results_of_other_data(snapshot, plan);
  CHECK(same.best->step == 40);
  CHECK(same.metadata == snapshot.metadata);
  plan.metadata["data"] = "e";
  const Snapshot other = without_results_of_other_data(snapshot, plan);
  CHECK_FALSE(other.best);
  CHECK_FALSE(other.metadata.contains("early_stopping"));
  CHECK(other.metadata.at("reduce_on_plateau") == "0.5 2");
  Plateau plateau((PlateauOptions()));
  plateau.restore(other.metadata);
  CHECK(plateau.rate(1) == 0.5);
}

TEST_CASE("a snapshot at the end of an epoch awaits the evaluation that was cut off") {
  Snapshot snapshot;
  snapshot.step = 20;
  CHECK_FALSE(awaits_evaluation(snapshot, 10));
  snapshot.metadata["epoch/count"] = "0";
  CHECK_FALSE(awaits_evaluation(snapshot, 10));
  snapshot.metadata["epoch/count"] = "160";
  CHECK(awaits_evaluation(snapshot, 10));
  CHECK_FALSE(awaits_evaluation(snapshot, 15));
}

}  // namespace trainctl::test::resume_test
