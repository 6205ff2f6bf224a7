// Tests runs in which one system call fails or kills the run: the checkpoints are whole afterwards, and the next run
// has the results of an undisturbed one. scripts/bench/faults tries every call.
#include <cerrno>
#include <cstdio>

#include "test/catch.h"
#include "test/faults/campaign.h"

namespace trainctl::test::faults_test {
namespace {

void report(const char* what, std::size_t tried, std::size_t of, std::size_t wrong) {
  std::printf("%s: %zu of %zu tried, %zu wrong\n", what, tried, of, wrong);
}

// Tries some of the calls. `trial` gets the number of the call and an errno that this call may return.
template <class Trial>
void try_errors(const char* what, const std::vector<std::string>& calls, std::size_t few, const Trial& trial) {
  std::mt19937 random = campaign_random();
  const std::vector<std::size_t> points = chosen_points(calls.size(), few, random);
  std::size_t wrong = 0;
  for (const std::size_t k : points) {
    const std::vector<int> errors = errors_of(calls[k - 1]);
    const int error = errors[random() % errors.size()];
    const std::string problem = trial(k, error);
    CAPTURE(what, k, calls[k - 1], error);
    CHECK(problem == "");
    wrong += !problem.empty();
  }
  report(what, points.size(), calls.size(), wrong);
}

TEST_CASE("a run that is killed at any call that changes its directory resumes to the same results") {
  Campaign campaign;
  std::mt19937 random = campaign_random();
  const std::vector<std::size_t> points = chosen_points(campaign.changes().size(), 12, random);
  REQUIRE(campaign.changes().size() > 100);
  std::size_t wrong = 0;
  for (const std::size_t k : points) {
    const std::string problem = campaign.kill_at(k);
    CAPTURE(k, campaign.changes()[k - 1]);
    CHECK(problem == "");
    wrong += !problem.empty();
  }
  report("killed", points.size(), campaign.changes().size(), wrong);
}

// Tries the calls between a checkpoint's rename and the next save: renames, links and removals.
TEST_CASE("a run that is killed between a checkpoint and its links resumes to the same results") {
  Campaign campaign;
  std::size_t tried = 0;
  for (std::size_t k = 1; k <= campaign.changes().size(); ++k) {
    const std::string& call = campaign.changes()[k - 1];
    const std::string before = k > 1 ? campaign.changes()[k - 2] : "";
    if (call != "symlink" && call != "rename" && before != "renameat2") continue;
    if (++tried % 3 != 0) continue;  // the script tries them all
    const std::string problem = campaign.kill_at(k);
    CAPTURE(k, call);
    CHECK(problem == "");
  }
  CHECK(tried > 20);
}

TEST_CASE(
    "a run in which one system call fails trains to its end, or ends with an error of the right kind and resumes") {
  Campaign campaign;
  try_errors("failed while training", campaign.calls(), 16,
             [&](std::size_t k, int error) { return campaign.fail_at(k, error); });
}

// The next start must not take a folder that was renamed, but not synced, for one of another run.
TEST_CASE("a run in which an fsync fails can be resumed in the same directory") {
  Campaign campaign;
  std::size_t tried = 0;
  for (std::size_t k = 1; k <= campaign.calls().size() && tried < 8; ++k) {
    if (campaign.calls()[k - 1] != "fsync") continue;
    ++tried;
    const std::string problem = campaign.fail_at(k, EIO);
    CAPTURE(k, tried);
    CHECK(problem == "");
  }
  CHECK(tried == 8);
}

TEST_CASE("a resume in which one system call fails ends with an error of the right kind, and can be resumed") {
  Campaign campaign;
  try_errors("failed while resuming", campaign.resume_calls(), 16,
             [&](std::size_t k, int error) { return campaign.fail_resume_at(k, error); });
  try_errors("failed while inspecting", campaign.inspect_calls(), 8,
             [&](std::size_t k, int error) { return campaign.fail_inspect_at(k, error); });
}

}  // namespace
}  // namespace trainctl::test::faults_test
