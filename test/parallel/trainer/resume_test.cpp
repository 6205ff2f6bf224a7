// Tests the message of a resumed run whose kernels differ from those of the checkpoint.
#include "parallel/trainer/resume.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/base/log.h"
#include "core/optim/schedule.h"
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

}  // namespace trainctl::test::resume_test
