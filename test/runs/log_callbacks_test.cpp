// Tests log.callbacks: the variables of the commands, and that commands that fail or hang do not affect the run.
#include <signal.h>
#include <sys/stat.h>

#include <cstdio>
#include <filesystem>

#include "core/base/format.h"
#include "test/catch.h"
#include "test/support/command.h"
#include "test/support/configs.h"

namespace trainctl::test::log_callbacks_test {

TEST_CASE("callbacks get the values of their event, may call trainctl, and only warn if they fail") {
  const Folder folder;
  const std::string config = folder.write("told.yaml", format(R"(
data: {{dataset: synthetic, samples: 103, shape: [8, 8, 3], classes: 5, validation: {{samples: 37}}}}
log:
  callbacks:
    - epoch: 'echo "$TRAINCTL_EVENT $TRAINCTL_RUN $TRAINCTL_EPOCH $TRAINCTL_STEP $TRAINCTL_VAL_ACCURACY" >> epochs.txt'
    - checkpoint: 'test -f "$TRAINCTL_CHECKPOINT/manifest.json" && echo "$TRAINCTL_STEP" >> checkpoints.txt'
    - epoch: 'echo to the log; exit 3'
    - end: {{command: sleep 300, timeout: 500 ms}}
    - end: 'echo "$TRAINCTL_STATUS $TRAINCTL_LOSS" >> ends.txt'
    - end: "{} eval told.yaml --ranks 1 --json --checkpoint $TRAINCTL_RUN_DIR/checkpoints/last > eval.json"
)",
                                                              TRAINCTL_BINARY) +
                                                           mlp_model +
                                                           train_section("batch_size: 20, epochs: 2, "
                                                                         "optimizer: sgd"));
  const Finished run = trainctl(folder, {"run", config, "--ranks", "2"});
  INFO(tail(run.errors));
  REQUIRE(run.code == 0);
  const std::vector<Json> epochs = events(folder / "runs/told", "epoch");
  std::string expected;
  for (const Json& epoch : epochs) {
    expected += format("epoch told {} {} {}\n", epoch["epoch"].get<int>(), epoch["step"].get<int>(),
                       epoch["validation"]["accuracy"].get<double>());
  }
  CHECK(read_file(folder / "epochs.txt") == expected);
  CHECK(read_file(folder / "checkpoints.txt") == "6\n12\n");
  CHECK(contains(read_file(folder / "ends.txt"), "completed "));
  CHECK(count(run.errors, "ended with exit code 3; its output is in") == 2);
  CHECK(contains(run.errors, "`sleep 300` had not ended after 0.5"));
  CHECK(count(read_file(folder / "runs/told/callbacks.log"), "to the log\n") == 2);
  CHECK(Json::parse(read_file(folder / "eval.json"))["accuracy"] == epochs.back()["validation"]["accuracy"]);

  const Finished diverged = trainctl(
      folder, {"run", config, "--ranks", "1", "--run-dir", "diverged", "--set", "train.optimizer.learning_rate=1e38"});
  CHECK(diverged.code == 4);
  CHECK(contains(read_file(folder / "ends.txt"), "diverged"));
}

TEST_CASE("callbacks do not see the secret of launch agents") {
  const Folder folder;
  const std::string config = folder.write("quiet.yaml", R"(
data: {dataset: synthetic, samples: 40, shape: [8, 8, 3], classes: 5}
log: {callbacks: [{end: "env >> seen.txt"}]}
)" + mlp_model + train_section("batch_size: 20, epochs: 1, optimizer: sgd"));
  for (const char* ranks : {"1", "2"}) {
    Command run(folder, {"run", config, "--ranks", ranks}, ".",
                {"TRAINCTL_SECRET=0123456789abcdef", "SEEN=" + std::string(ranks)});
    REQUIRE(run.wait() == 0);
  }
  const std::string seen = read_file(folder / "seen.txt");
  CHECK(contains(seen, "SEEN=1"));
  CHECK(contains(seen, "SEEN=2"));
  CHECK_FALSE(contains(seen, "0123456789abcdef"));
}

// Whether a process of the group is running; zombies do not count.
bool runs_in(pid_t group) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string stat = read_file(entry.path() / "stat");
    const std::size_t name_end = stat.rfind(')');
    int parent = 0, of = 0;
    char state = 0;
    if (name_end == std::string::npos) continue;
    if (std::sscanf(stat.c_str() + name_end + 1, " %c %d %d", &state, &parent, &of) == 3 && of == group && state != 'Z')
      return true;
  }
  return false;
}

TEST_CASE("a command ends with its run, however the run ends") {
  const Folder folder;
  const std::string config = folder.write("killed.yaml", R"(
data: {dataset: synthetic, samples: 103, shape: [8, 8, 3], classes: 5}
log:
  callbacks:
    - epoch: {command: 'echo $$ > group.txt; sleep 300; true', timeout: 400 s}
)" + mlp_model + train_section("batch_size: 20, epochs: 100000, optimizer: sgd"));
  const int ranks = GENERATE(1, 2);
  CAPTURE(ranks);
  Command run(folder, {"run", config, "--ranks", std::to_string(ranks)});
  REQUIRE(comes_true([&] { return contains(read_file(folder / "group.txt"), "\n"); }));
  const pid_t group = std::stoi(read_file(folder / "group.txt"));
  REQUIRE(runs_in(group));
  run.send(SIGKILL);
  run.wait();
  CHECK(comes_true([&] { return !runs_in(group); }));  // neither the shell nor its children run
  CHECK(run.left_no_process());
}

TEST_CASE("a callbacks.log that is a pipe is reported, not waited for") {
  const Folder folder;
  const std::string config = folder.write("pipe.yaml", R"(
data: {dataset: synthetic, samples: 103, shape: [8, 8, 3], classes: 5}
log: {callbacks: [{epoch: echo}]}
)" + mlp_model + train_section("batch_size: 20, epochs: 1, optimizer: sgd"));
  REQUIRE(trainctl(folder, {"run", config, "--ranks", "1"}).code == 0);
  std::filesystem::remove(folder / "runs/pipe/callbacks.log");
  REQUIRE(mkfifo((folder / "runs/pipe/callbacks.log").c_str(), 0600) == 0);
  const Finished run =
      trainctl(folder, {"run", config, "--ranks", "1", "--run-dir", "runs/pipe", "--set", "train.epochs=2"});
  CHECK(run.code == 0);
  CHECK(contains(run.errors, "cannot be started: No such device or address"));
}

}  // namespace trainctl::test::log_callbacks_test
