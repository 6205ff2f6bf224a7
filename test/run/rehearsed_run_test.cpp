// Tests what a rehearsal reads from the directory of a run, and its verdict on a fault.
#include <random>

#include "core/base/format.h"
#include "run/rehearsal/rehearsed_run.h"
#include "run/rehearsal/standard_faults.h"
#include "test/catch.h"
#include "test/support/snapshots.h"

namespace trainctl::test::rehearsed_run_test {
namespace {

constexpr int diverged = 4, peer = 5;  // exit codes

// A run of 40 steps that was started again from a checkpoint after a fault, and what its directory says.
struct RestartedRun {
  std::int64_t checkpoint, fault_step;
  double fault, detected, first_step;  // seconds since 1970

  explicit RestartedRun(std::mt19937& random) {
    std::uniform_real_distribution<double> seconds(0.5, 20);
    checkpoint = 1 + static_cast<std::int64_t>(random() % 20);
    fault_step = checkpoint + static_cast<std::int64_t>(random() % 15);
    fault = 1.7e9 + seconds(random);
    detected = fault + seconds(random);
    first_step = detected + seconds(random);
  }

  void write(const std::string& folder, double loss, const std::string& hash) const {
    std::string lines = R"({"event": "start", "ranks": 3, "hosts": ["a", "b"], "first_step": 0})"
                        "\n";
    lines += format("{{\"event\": \"step\", \"step\": 1, \"time\": {:.6f}, \"loss\": 9.5}}\n", fault - 0.25);
    lines +=
        format("{{\"event\": \"start\", \"ranks\": 3, \"hosts\": [\"a\", \"b\"], \"first_step\": {}}}\n", checkpoint);
    lines += format("{{\"event\": \"restart\", \"cause\": \"rank_killed\", \"detected\": {:.6f}}}\n", detected);
    lines += format("{{\"event\": \"step\", \"time\": {:.6f}, \"loss\": 3}}\n", first_step);
    lines += format("{{\"event\": \"step\", \"time\": {:.6f}, \"loss\": {:.17g}}}\n", first_step + 1, loss);
    lines += format("{{\"event\": \"end\", \"step\": 40, \"weights_sha256\": \"{}\"}}\n{{\"event\": \"st", hash);
    write_text(folder + "/metrics.jsonl", lines);
    fs::create_directories(folder + "/faults");
    write_text(folder + "/faults/2-kill", format("{{\"step\": {}, \"time\": {:.6f}}}", fault_step, fault));
  }
};

RehearsedFault fault_with(Survival survival) { return {"torn checkpoint, kill", "", "kill", 2, survival}; }

}  // namespace

TEST_CASE("the steps and seconds that a fault costs follow from the run's metrics and the fault's mark") {
  std::mt19937 random(11);
  std::uniform_real_distribution<double> loss(0.1, 3);
  for (int trial = 0; trial < 20; ++trial) {
    const TemporaryFolder folder;
    const RestartedRun written(random);
    const double own = loss(random);
    RehearsedRun undisturbed;
    undisturbed.loss = loss(random);
    undisturbed.weights_sha256 = "abc";
    written.write(folder.path, own, "abd");
    const RehearsedRun run = read_rehearsed_run(folder.path, 0, "");
    CHECK(run.ranks == 3);
    CHECK(run.hosts == std::vector<std::string>{"a", "b"});
    CHECK(run.steps == 40);
    const FaultResult result = judge(fault_with(Survival::same_weights), run, undisturbed, false);
    CHECK(result.happened);
    CHECK(result.outcome == "rank killed, started again");
    CHECK(result.lost_steps == written.fault_step - written.checkpoint);
    CHECK(result.detect_seconds.value() == Approx(written.detected - written.fault).margin(1e-5));
    CHECK(result.recover_seconds.value() == Approx(written.first_step - written.fault).margin(1e-5));
    CHECK(result.loss_change.value() == Approx(own / *undisturbed.loss - 1));
  }
}

TEST_CASE("a fault is survived if the run ends as it must") {
  std::mt19937 random(12);
  const TemporaryFolder folder;
  RestartedRun(random).write(folder.path, 1.5, "abc");
  RehearsedRun same, other;
  same.weights_sha256 = "abc";
  other.weights_sha256 = "abd";
  const auto survived = [&](Survival survival, int code, const RehearsedRun& undisturbed, bool reproducible) {
    return judge(fault_with(survival), read_rehearsed_run(folder.path, code, ""), undisturbed, reproducible).survived;
  };
  CHECK(survived(Survival::same_weights, 0, same, true));
  CHECK_FALSE(survived(Survival::same_weights, 0, other, true));
  CHECK(survived(Survival::same_weights, 0, other, false));
  CHECK(survived(Survival::completes, 0, other, true));
  CHECK_FALSE(survived(Survival::completes, peer, same, true));
  CHECK(survived(Survival::diverges, diverged, other, true));
  CHECK_FALSE(survived(Survival::diverges, 0, same, true));
  fs::remove_all(folder.path + "/faults");  // a fault that has not happened is not survived
  CHECK_FALSE(survived(Survival::same_weights, 0, same, true));
  CHECK(judge(fault_with(Survival::completes), read_rehearsed_run(folder.path, 0, ""), same, true).outcome ==
        "did not happen");
}

TEST_CASE("faults happen between two checkpoints, and only those that the ranks and hosts allow") {
  const auto names_for = [](int ranks, std::vector<std::string> hosts) {
    std::vector<std::string> names;
    for (const RehearsedFault& fault : standard_faults({.ranks = ranks, .hosts = std::move(hosts)})) {
      names.push_back(fault.name);
    }
    return names;
  };
  const std::vector<std::string> alone{"kill", "torn checkpoint, kill", "full disk", "slow rank", "NaN"};
  CHECK(names_for(1, {"a"}) == alone);
  CHECK(names_for(2, {"a"}).at(1) == "hang");
  CHECK(names_for(4, {"a", "b"}).back() == "lost host");
  const RehearsalPlan plan{.ranks = 4, .steps = 24, .checkpoint_every = rehearsed_interval(24)};
  CHECK(plan.checkpoint_every == 6);
  CHECK(standard_faults(plan).front().faults == "[{kill: {rank: 3, step: 14}}]");
}

}  // namespace trainctl::test::rehearsed_run_test
