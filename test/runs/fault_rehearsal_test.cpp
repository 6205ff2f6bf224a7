// Tests runs that rehearse faults: each fault happens once, and `rehearse` reports what it did.
#include <filesystem>
#include <fstream>

#include "core/base/format.h"
#include "test/catch.h"
#include "test/support/command.h"
#include "test/support/configs.h"

namespace trainctl::test::fault_rehearsal_test {
namespace {

std::string write_config(const Folder& folder) {
  return folder.write("faults.yaml", R"(
data: {dataset: synthetic, samples: 160, shape: [8, 8, 3], classes: 5}
log: {every: 1 steps}
checkpoint: {every: 10 steps, background: false}
strategy: {reproducible: {shards: 4}, verify_every: 5 steps}
)" + mlp_model + train_section("batch_size: 32, epochs: 8, optimizer: {name: adam, learning_rate: 1e-3}"));
}

// Runs the config on two ranks with these faults and restarts.
Finished run(const Folder& folder, const std::string& name, const std::string& faults, int restarts = 0) {
  return trainctl(folder, {"run", write_config(folder), "--ranks", "2", "--run-dir", folder / name, "--progress",
                           "none", "--set", "faults=" + faults, "--max-restarts", std::to_string(restarts)});
}

std::string weights_of(const std::string& directory) { return events(directory, "end").back().at("weights_sha256"); }

// The weights of a run without faults.
std::string undisturbed(const Folder& folder) {
  REQUIRE(run(folder, "undisturbed", "[]").code == 0);
  return weights_of(folder / "undisturbed");
}

TEST_CASE("a rank that is killed on request is killed once, at the step") {
  const Folder folder;
  const Finished killed = run(folder, "run", "[{kill: {rank: 1, step: 23}}, {kill: {rank: 0, step: 33}}]", 3);
  INFO(tail(killed.errors));
  REQUIRE(killed.code == 0);
  const std::string warning = "this run rehearses faults, each of them once: ";
  const std::string second = "rank 0 is killed after 33 steps\n";
  CHECK(count(killed.errors, warning + "rank 1 is killed after 23 steps; " + second) == 1);
  CHECK(count(killed.errors, warning + second) == 1);  // the second start has only this one before it
  CHECK(count(killed.errors, warning) == 2);           // and the third start has none
  CHECK(count(killed.errors, "rehearsed fault: ") == 2);
  const auto restarts = events(folder / "run", "restart");
  REQUIRE(restarts.size() == 2);
  CHECK(restarts[0].at("cause") == "rank_killed");
  CHECK(restarts[0].at("rank") == 1);
  CHECK(restarts[0].at("detected").get<double>() > events(folder / "run").front().at("time").get<double>());
  const auto starts = events(folder / "run", "start");
  CHECK(starts[1].at("first_step") == 20);
  CHECK(starts[2].at("first_step") == 30);
  CHECK(weights_of(folder / "run") == undisturbed(folder));
  // Exactly the steps before the kill were done; the ranks tell them at most once a second.
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
    const auto step = restarts[i].at("step").get<std::int64_t>(), killed_after = std::int64_t{i == 0 ? 23 : 33};
    CHECK(step >= killed_after - 1);
    CHECK(step <= killed_after);
  }
  CHECK(contains(killed.errors, "(restart 1) from checkpoint " + folder / "run/checkpoints/step-00000020"));
  CHECK(contains(killed.errors, "(restart 2) from checkpoint " + folder / "run/checkpoints/step-00000030"));
  const Finished replay = trainctl(folder, {"replay", folder / "run", "--step", "35"});
  CHECK(replay.code == 0);
  CHECK_FALSE(contains(replay.errors, "rehearses faults"));
}

TEST_CASE("replay says that a rehearsed fault made the recorded step NaN, and that the repeated step is finite") {
  const Folder folder;
  for (const char* action : {"stop", "skip"}) {
    CAPTURE(action);
    const std::string directory = folder / action;
    const Finished spoiled = trainctl(
        folder, {"run", write_config(folder), "--ranks", "2", "--run-dir", directory, "--progress", "none", "--set",
                 "faults=[{nan: {rank: 1, step: 12}}]", "--set", std::string("train.on_not_finite=") + action});
    INFO(tail(spoiled.errors));
    REQUIRE(spoiled.code == (std::string(action) == "stop" ? 4 : 0));
    const Finished text = trainctl(folder, {"replay", directory, "--step", "13"});
    CHECK(text.code == 0);
    INFO(text.out);
    CHECK(contains(text.out, "  recorded       not finite ("));
    CHECK(contains(text.out, "made by the rehearsed fault \"the next loss of rank 1 is NaN\""));
    CHECK(contains(text.out, "; the repeated step, without the fault, is finite\n"));
    const Finished json = trainctl(folder, {"replay", directory, "--step", "13", "--json"});
    const Json found = Json::parse(json.out);
    CHECK(found.at("recorded").at("fault") == "the next loss of rank 1 is NaN");
    CHECK(found.at("loss").is_number());
    const Finished before = trainctl(folder, {"replay", directory, "--step", "12"});
    CHECK(before.code == 0);
    CHECK_FALSE(contains(before.out, "recorded"));
  }
}

TEST_CASE("a fault of a run that is stopped and resumed happens once") {
  const Folder folder;
  const std::string fault = "[{kill: {rank: 0, step: 12}}]";
  CHECK(run(folder, "run", fault).code != 0);
  REQUIRE(run(folder, "run", fault).code == 0);
  CHECK(std::filesystem::exists(folder / "run/faults/1-kill"));
  CHECK(weights_of(folder / "run") == undisturbed(folder));
}

TEST_CASE("a rank that hangs on request is noticed") {
  const Folder folder;
  const std::string timeout = format("{} s", 8 * sanitizer_slowdown);
  const Finished hung = trainctl(
      folder, {"run", write_config(folder), "--ranks", "2", "--run-dir", folder / "run", "--progress", "none", "--set",
               "cluster.timeout=" + timeout, "--set", "faults=[{hang: {rank: 1, step: 15}}]", "--max-restarts", "5"});
  INFO(tail(hung.errors));
  REQUIRE(hung.code == 0);
  CHECK_FALSE(events(folder / "run", "restart").empty());
  CHECK(weights_of(folder / "run") == undisturbed(folder));
}

TEST_CASE("a slow rank changes no weights") {
  const Folder folder;
  const Finished slow = run(folder, "run", "[{slow: {rank: 1, step: 5, steps: 10, delay: 100 ms}}]");
  REQUIRE(slow.code == 0);
  const auto steps = events(folder / "run", "step");
  const auto time_of = [&](std::size_t step) { return steps.at(step - 1).at("time").get<double>(); };
  CHECK(time_of(16) - time_of(5) > 0.8);
  CHECK(weights_of(folder / "run") == undisturbed(folder));
}

TEST_CASE("a loss that is NaN on request ends the run at the next step") {
  const Folder folder;
  const Finished spoiled = run(folder, "run", "[{nan: {rank: 1, step: 15}}]");
  CHECK(spoiled.code == 4);
  CHECK(contains(spoiled.errors, "diverged at step 16"));
}

TEST_CASE("a flipped bit is found by the comparison of replicas") {
  const Folder folder;
  const Finished corrupt = run(folder, "run", "[{corrupt: {rank: 1, step: 12}}]");
  CHECK(corrupt.code == 5);
  CHECK(contains(corrupt.errors, "it is unknown which of them is right"));
}

TEST_CASE("a damaged checkpoint is left out, and the one before is taken") {
  const Folder folder;
  const Finished torn = run(folder, "run", "[{torn_checkpoint: {step: 20}}, {kill: {rank: 1, step: 21}}]", 3);
  INFO(tail(torn.errors));
  REQUIRE(torn.code == 0);
  CHECK(contains(torn.errors, "step-00000020/weights.safetensors is damaged"));
  CHECK(contains(torn.errors, "skipped a checkpoint: "));
  CHECK(events(folder / "run", "start").back().at("first_step") == 10);
  CHECK(weights_of(folder / "run") == undisturbed(folder));
}

TEST_CASE("a run whose disk is full for a while ends with the same weights") {
  const Folder folder;
  const Finished full = run(folder, "run", "[{full_disk: {step: 9, saves: 1}}]");
  INFO(tail(full.errors));
  CHECK(count(full.errors, "No space left on device") > 0);
  REQUIRE(full.code == 0);
  CHECK(std::filesystem::exists(folder / "run/checkpoints/step-00000020"));
  CHECK_FALSE(std::filesystem::exists(folder / "run/checkpoints/step-00000010"));
  CHECK(weights_of(folder / "run") == undisturbed(folder));
}

TEST_CASE("faults that cannot happen are refused together before training") {
  const Folder folder;
  const Finished refused = run(folder, "run", "[{kill: {rank: 2, step: 5}}, {lose_host: {host: elsewhere, step: 5}}]");
  CHECK(refused.code == 2);
  INFO(refused.errors);
  CHECK(contains(refused.errors, "there is no rank 2 among 2 ranks: name one of 0 to 1"));
  CHECK(contains(refused.errors, "no rank runs on a host 'elsewhere'"));
  CHECK(events(folder / "run", "step").empty());
}

TEST_CASE("a fault of a rank that the run does not have is refused with its line, by check and by run") {
  const Folder folder;
  const std::string config = folder.write("few.yaml", read_file(write_config(folder)) + R"(
faults:
  - kill: {rank: 1, step: 3}
  - nan: {rank: 7, step: 50}
)");
  for (const Finished& refused : {trainctl(folder, {"check", config, "--ranks", "2"}),
                                  trainctl(folder, {"run", config, "--ranks", "2", "--run-dir", folder / "few"})}) {
    INFO(refused.errors);
    CHECK(refused.code == 2);
    CHECK(contains(refused.errors, "few.yaml:18:5: there is no rank 7 among 2 ranks: name one of 0 to 1"));
    CHECK_FALSE(contains(refused.errors, "rank 1 among"));
  }
  // The check says all that is wrong with a fault at once.
  CHECK(contains(trainctl(folder, {"check", config, "--ranks", "2"}).errors,
                 "few.yaml:18:5: the fault would happen after 50 steps"));
}

TEST_CASE("a fault after the last step is refused with its line, by check and by run") {
  const Folder folder;
  const std::string config = folder.write("late.yaml", read_file(write_config(folder)) + R"(
faults:
  - kill: {rank: 0, step: 40}
  - torn_checkpoint: {step: 40}
)");
  const std::string late = "late.yaml:18:5: the fault would happen after 41 steps, and the run ends after 40";
  for (const Finished& refused : {trainctl(folder, {"check", config, "--ranks", "2"}),
                                  trainctl(folder, {"run", config, "--ranks", "2", "--run-dir", folder / "late"})}) {
    INFO(refused.errors);
    CHECK(refused.code == 2);
    CHECK(contains(refused.errors, late));
    CHECK_FALSE(contains(refused.errors, "40 steps, and"));
  }
}

TEST_CASE("rehearse tries faults on a config and reports them") {
  const Folder folder;
  const Finished rehearsed = trainctl(folder, {"rehearse", write_config(folder), "--ranks", "2", "--timeout",
                                               std::to_string(8 * sanitizer_slowdown), "--json"});
  INFO(tail(rehearsed.errors));
  const Json report = Json::parse(rehearsed.out);
  CHECK(rehearsed.code == (report.at("ok").get<bool>() ? 0 : 1));
  CHECK(report.at("ranks") == 2);
  CHECK(report.at("steps") == 20);
  std::map<std::string, Json> faults;
  for (const Json& fault : report.at("faults")) faults[fault.at("fault")] = fault;
  for (const char* name : {"kill", "hang", "torn checkpoint, kill", "full disk", "slow rank", "NaN"}) {
    CHECK(faults.contains(name));
  }
  CHECK_FALSE(faults.contains("lost host"));  // there is one host
  for (const char* name : {"kill", "hang", "torn checkpoint, kill", "full disk", "slow rank"}) {
    INFO(faults[name].dump());
    CHECK(faults[name].at("survived") == true);
    CHECK(faults[name].at("weights_equal") == true);
  }
  CHECK(faults["kill"].at("outcome") == "rank killed, started again");
  CHECK(faults["kill"].at("lost_steps") == 2);
  CHECK(faults["torn checkpoint, kill"].at("lost_steps") == 7);
  CHECK(faults["slow rank"].at("lost_steps") == 0);
  CHECK(faults["hang"].at("detect_seconds") > 7.5);
  CHECK(faults["kill"].at("recover_seconds") > faults["kill"].at("detect_seconds"));
  CHECK(faults["NaN"].at("exit_code") == 4);
  CHECK(faults["NaN"].at("survived") == true);
  CHECK_FALSE(std::filesystem::exists(folder / "runs"));  // nothing is left
}

TEST_CASE("rehearse refuses a run that is too short") {
  const Folder folder;
  const Finished refused =
      trainctl(folder, {"rehearse", write_config(folder), "--ranks", "1", "--set", "train.epochs=1"});
  CHECK(refused.code == 2);
  CHECK(contains(refused.errors, "the run has 5 steps, and a rehearsal needs at least 8"));
  CHECK(contains(refused.errors, "--set train.epochs=10"));
  const Finished few =
      trainctl(folder, {"rehearse", write_config(folder), "--ranks", "1", "--set", "train.max_steps=3"});
  CHECK(few.code == 2);
  CHECK(contains(few.errors, "--set train.max_steps=20"));
}

}  // namespace
}  // namespace trainctl::test::fault_rehearsal_test
