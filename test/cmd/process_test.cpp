// Tests the process of a command: requests to stop at any time, output that cannot be written, limits, and --json for
// every failure.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <regex>

#include "core/base/format.h"
#include "test/catch.h"
#include "test/support/command.h"
#include "test/support/configs.h"
#include "test/support/files.h"

namespace trainctl::test::process_test {
namespace {

namespace fs = std::filesystem;

// A config with three steps an epoch and `validation` validation samples.
std::string config_text(long long validation, const std::string& train = "epochs: 3") {
  return format(R"(
data: {{dataset: synthetic, samples: 60, shape: [8, 8, 3], classes: 5, validation: {{samples: {}}}}}
log: {{every: 1 steps}}
)",
                validation) +
         mlp_model + train_section("batch_size: 20, optimizer: adam, " + train);
}

constexpr long long endless = 400'000'000;

// Runs a shell command in the folder, in which $T is the program; the exit code is 124 after the time limit.
Finished shell(const Folder& folder, const std::string& line) {
  folder.write("line.sh", "cd " + folder.path().string() + "\nexport T=" + TRAINCTL_BINARY +
                              " TMPDIR=$PWD/temporary XDG_CACHE_HOME=$PWD/cache\nmkdir -p temporary\n" + line + "\n");
  const std::string command =
      format("timeout {1} bash {0}/line.sh >{0}/shell.out 2>{0}/shell.err", folder.path().string(), time_limit);
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), read_file(folder / "shell.out"),
          read_file(folder / "shell.err")};
}

// Checks that a failure prints one document on standard output, with this exit code and these words.
void check_document(const Finished& finished, int code, const std::string& words) {
  INFO(finished.out << tail(finished.errors));
  CHECK(finished.code == code);
  const Json json = Json::parse(finished.out, nullptr, false);
  REQUIRE(json.is_object());
  CHECK(json.at("ok") == false);
  CHECK(json.at("exit_code") == code);
  REQUIRE(!json.at("errors").empty());
  const Json& error = json.at("errors").at(0);
  for (const char* key : {"file", "line", "column", "message", "related"}) CHECK(error.contains(key));
  CHECK(contains(finished.out, words));
  CHECK_FALSE(contains(finished.out, "internal error"));
}

Finished finished(Command& command) {
  const int code = command.wait();
  return {code, command.out(), command.errors()};
}

TEST_CASE("a stop during a long evaluation saves the run, and the next run begins with the evaluation") {
  for (const char* ranks : {"1", "2"}) {
    const Folder folder;
    const std::string config = folder.write("config.yaml", config_text(endless));
    for (int attempt = 0; attempt < 2; ++attempt) {
      Command run(folder, {"run", config, "--ranks", ranks});
      REQUIRE(comes_true([&] {
        return attempt == 0 ? events(folder / "runs/config", "step").size() == 3
                            : events(folder / "runs/config", "start").size() == 2;
      }));
      usleep(300000);
      run.send(attempt == 0 ? SIGINT : SIGTERM);
      const int code = run.wait();
      INFO(tail(run.errors()));
      CHECK(code == 75);
      CHECK(run.left_no_process());
      CHECK(fs::exists(folder / "runs/config/checkpoints/last/manifest.json"));
      CHECK(events(folder / "runs/config", "step").size() == 3);
      CHECK(events(folder / "runs/config", "end").back().at("status") == "stopped");
    }
  }
}

TEST_CASE("a stopped evaluation is repeated, and the results are those of an uninterrupted run") {
  const Folder folder;
  const std::string config = folder.write("config.yaml", config_text(200'000, "epochs: 2"));
  REQUIRE(trainctl(folder, {"run", config, "--ranks", "2", "--run-dir", "whole"}).code == 0);
  int code = 75;
  for (int runs = 0; code == 75 && runs < 10; ++runs) {
    Command run(folder, {"run", config, "--ranks", "2", "--run-dir", "stopped"});
    const std::size_t steps = runs == 0 ? 3 : 6;
    if (runs < 2) {
      comes_true([&] { return events(folder / "stopped", "step").size() >= steps; });
      run.send(SIGINT);
    }
    code = run.wait();
  }
  REQUIRE(code == 0);
  const Json whole = events(folder / "whole", "end").back(), stopped = events(folder / "stopped", "end").back();
  CHECK(stopped.at("weights_sha256") == whole.at("weights_sha256"));
  CHECK(stopped.at("best") == whole.at("best"));
  const auto epochs = events(folder / "stopped", "epoch"), expected = events(folder / "whole", "epoch");
  REQUIRE(epochs.size() == expected.size());
  for (std::size_t i = 0; i < epochs.size(); ++i) {
    CHECK(epochs[i].at("validation") == expected[i].at("validation"));
    CHECK(epochs[i].at("train") == expected[i].at("train"));
  }
}

TEST_CASE("eval and bench are stopped by one request, and print a document with --json") {
  const Folder folder;
  REQUIRE(trainctl(folder, {"run", folder.write("short.yaml", config_text(37)), "--ranks", "1"}).code == 0);
  const std::string config = folder.write("config.yaml", config_text(endless));
  const std::string checkpoint = folder / "runs/short/checkpoints/last";
  for (const char* ranks : {"1", "2"}) {
    for (int signal : {SIGINT, SIGTERM}) {
      CAPTURE(ranks, signal);
      Command eval(folder, {"eval", config, "--ranks", ranks, "--checkpoint", checkpoint, "--json"});
      usleep(1200000);
      eval.send(signal);
      check_document(finished(eval), 130, "stopped");
      CHECK(eval.left_no_process());
      Command bench(folder, {"bench", "step", config, "--ranks", ranks, "--seconds", "1000"});
      usleep(1200000);
      bench.send(signal);
      CHECK(bench.wait() == 130);
      CHECK(contains(bench.errors(), "stopped at once"));
      CHECK(bench.left_no_process());
    }
  }
}

TEST_CASE("a signal in the last moments of a run leads to exit code 0 or 75") {
  const Folder folder;
  const std::string config = folder.write("config.yaml", config_text(37, "epochs: 1"));
  for (const char* ranks : {"1", "2"}) {
    for (int microseconds : {0, 300, 1000, 3000, 10000, 30000}) {
      const std::string directory = folder / format("of-{}-{}", ranks, microseconds);
      Command run(folder, {"run", config, "--ranks", ranks, "--run-dir", directory});
      REQUIRE(comes_true([&] { return !events(directory, "end").empty(); }));
      usleep(static_cast<useconds_t>(microseconds));
      run.send(SIGINT);
      run.send(SIGTERM);
      const int code = run.wait();
      CAPTURE(ranks, microseconds);
      CHECK((code == 0 || code == 75));
    }
  }
}

TEST_CASE("training continues if the reader of its output goes away") {
  const Folder folder;
  const std::string config = folder.write("config.yaml", config_text(37, "epochs: 40"));
  for (const char* ranks : {"1", "2"}) {
    const Finished run = shell(folder, format("$T run {} --ranks {} --progress plain --run-dir of-{} 2>&1 | head -n 1\n"
                                              "exit ${{PIPESTATUS[0]}}",
                                              config, ranks, ranks));
    CHECK(run.code == 0);
    CHECK(events(folder / format("of-{}", ranks), "end").back().at("status") == "completed");
  }
  CHECK(shell(folder, "$T schema | head -c 1 >/dev/null\nexit ${PIPESTATUS[0]}").code == 0);
}

TEST_CASE("output that cannot be written is exit code 6, for every command") {
  const Folder folder;
  const std::string config = folder.write("config.yaml", config_text(37));
  REQUIRE(trainctl(folder, {"run", config, "--ranks", "1"}).code == 0);
  for (const std::string& arguments :
       {std::string("check config.yaml"), std::string("check config.yaml --json"), std::string("check none --json"),
        std::string("eval config.yaml --ranks 1"), std::string("eval config.yaml --ranks 2 --json"),
        std::string("eval config.yaml --ranks 2"), std::string("inspect runs/config"),
        std::string("inspect runs/config --json"), std::string("bench step config.yaml --ranks 1 --seconds 0.1"),
        std::string("schema"), std::string("schema --markdown"), std::string("--help"), std::string("--version"),
        std::string("run config.yaml --ranks 2 --json --run-dir other"), std::string("doctor --ranks 1 --json"),
        std::string("doctor --ranks 2 --device cpu")}) {
    CAPTURE(arguments);
    const Finished full = shell(folder, "$T " + arguments + " > /dev/full");
    CHECK(full.code == 6);
    CHECK(count(full.errors, "standard output cannot be written: No space left on device") == 1);
  }
}

TEST_CASE("a file that reaches the size limit is named with exit code 6") {
  const Folder folder;
  const std::string config = folder.write("config.yaml", config_text(37));
  for (const char* ranks : {"1", "2"}) {
    // Weights of 31 MB; OpenMPI's own files are smaller than the limit.
    const Finished run = shell(folder, format("ulimit -f 25000; $T run {} --ranks {} --run-dir of-{} --set "
                                              "model.layers.1.dense.units=40000 --set train.max_steps=1",
                                              config, ranks, ranks));
    INFO(tail(run.errors));
    CHECK(run.code == 6);
    CHECK(contains(run.errors, "File too large"));
    // With two ranks their shared memory reaches the limit first.
    CHECK(contains(run.errors, ranks == std::string("1") ? "of-1/checkpoints/" : "the file memfd:trainctl"));
  }
  const Finished small = shell(folder, format("ulimit -f 4000; $T run {} --ranks 2", config));
  INFO(tail(small.errors));
  CHECK(small.code == 6);
  CHECK(contains(small.errors, format("mpirun's files in {}", folder / "temporary")));
  CHECK(contains(small.errors, "ulimit -f"));
}

TEST_CASE("with closed descriptors no line of a log is written into a file of the run") {
  const Folder folder;
  const std::string config = folder.write("config.yaml", config_text(37));
  for (const char* ranks : {"1", "2"}) {
    for (const char* closed : {"0<&- 1>&- 2>&-", "2>&-", "0<&- 2>&-"}) {
      const std::string directory = folder / "run";
      fs::remove_all(directory);
      const Finished run = shell(folder, format("$T run {} --ranks {} --run-dir run {}", config, ranks, closed));
      CHECK(run.code == 0);
      CHECK(events(directory, "end").size() == 1);          // also checks that every line is JSON
      const int lines = std::string(ranks) == "1" ? 1 : 2;  // the process and, under a supervisor, its launch
      CHECK(count(read_file(directory + "/lock"), "\n") == lines);
    }
  }
}

TEST_CASE("every failure with --json is one document on standard output") {
  const Folder folder;
  const std::string config = folder.write("config.yaml", config_text(37));
  const std::string wrong = folder.write("wrong.yaml", config_text(37, "epoks: 1"));
  const std::string nan = folder.write("nan.yaml", config_text(37));
  REQUIRE(trainctl(folder, {"run", config, "--ranks", "1"}).code == 0);
  const auto check = [&](const std::vector<std::string>& arguments, int code, const std::string& words) {
    std::string line;
    for (const std::string& argument : arguments) line += argument + " ";
    CAPTURE(line);
    check_document(trainctl(folder, arguments), code, words);
  };
  check({"check", wrong, "--json"}, 2, "unknown key 'epoks'");
  check({"check", "--json", "none.yaml"}, 2, "none.yaml");
  check({"check", config, "--json", "--set", "train.epochs"}, 2, "--set");
  check({"check", config, "--jason", "--json"}, 2, "did you mean '--json'");
  check({"eval", config, "--json", "--checkpoint", "nowhere"}, 3, "does not exist; name the folder of a checkpoint");
  check({"inspect", "runs/config/checkpoints/best/weights.safetensors", "--json"}, 2, "name the folder of the check");
  check({"run", config, "--epochs", "3", "--json"}, 2, "unknown option '--epochs'; --set sets a key of the config");
  check({"check", "--json", "--", config, "--quiet"}, 2, "--quiet");  // after --, there are no options
  check({"eval", config, "--json", "--checkpoint", "nowhere", "--ranks", "2"}, 3, "nowhere");
  check({"inspect", "nowhere", "--json"}, 2, "nowhere");
  check({"bench", "step", wrong, "--json"}, 2, "unknown key 'epoks'");
  check({"schema", "--jsn", "--json"}, 2, "unknown option");
  check({"doctor", config, "--rank", "2", "--json"}, 2, "did you mean '--ranks'");
  for (const char* ranks : {"1", "2"}) {
    const std::string directory = folder / (std::string("of-") + ranks);
    check({"run", wrong, "--json", "--ranks", ranks}, 2, "unknown key 'epoks'");
    check({"run", config, "--json", "--ranks", ranks, "--resume", "nowhere", "--run-dir", directory}, 3, "nowhere");
    check({"run", config, "--json", "--ranks", ranks, "--run-dir", "/proc/nowhere"}, 6, "/proc/nowhere");
    check({"run", nan, "--json", "--ranks", ranks, "--run-dir", directory + "-nan", "--set",
           "train.optimizer.learning_rate=1e38", "--set", "train.epochs=100"},
          4, "diverged");
  }
}

TEST_CASE("a supervised run that is stopped, or whose rank is killed, prints one document, too") {
  const Folder folder;
  const std::string config = folder.write("config.yaml", config_text(37, "epochs: 1000000"));
  {
    Command run(folder, {"run", config, "--ranks", "2", "--json"});
    REQUIRE(comes_true([&] { return events(folder / "runs/config", "step").size() > 9; }));
    run.send(SIGINT);
    const Finished stopped = finished(run);
    CHECK(stopped.code == 75);
    CHECK(Json::parse(stopped.out).at("status") == "stopped");
  }
  {
    Command run(folder, {"run", config, "--ranks", "2", "--json"});
    const std::size_t steps = events(folder / "runs/config", "step").size();
    REQUIRE(comes_true([&] { return events(folder / "runs/config", "step").size() > steps; }));
    const std::map<int, pid_t> ranks = run.ranks();
    REQUIRE(ranks.size() == 2);
    kill(ranks.at(1), SIGKILL);
    const Finished killed = finished(run);
    check_document(killed, 5, "killed by signal 9");
    CHECK(contains(killed.out, "; the last known step is "));
  }
  CHECK(contains(read_file(folder / "runs/config/log.txt"), "rank 1 on "));  // logged by the supervisor
}

TEST_CASE("the supervisor reports which rank has failed, on which host and at which step, and the end of its log") {
  const Folder folder;
  const std::string config = folder.write("config.yaml", config_text(37, "epochs: 1000000"));
  Command run(folder, {"run", config, "--ranks", "2", "--verbose", "--set", "cluster.timeout=2 s"});
  REQUIRE(comes_true([&] { return events(folder / "runs/config", "step").size() > 9; }));
  const std::map<int, pid_t> ranks = run.ranks();
  REQUIRE(ranks.size() == 2);
  kill(ranks.at(1), SIGSTOP);
  CHECK(run.wait() == 5);
  const std::string errors = run.errors();
  INFO(tail(errors));
  std::smatch told;
  REQUIRE(std::regex_search(
      errors, told, std::regex(R"(the ranks have ended: rank_silent \(exit code 5\): rank 1 on \S+, step (\d+)\n)")));
  CHECK(std::stoi(told[1]) > 9);
  CHECK(contains(errors, "the last lines of their log:\n"));
}

TEST_CASE("an error of rank 1 only is written to log.txt, and all its messages to its own log") {
  const Folder folder;
  for (int i = 0; i < 2; ++i) folder.write(format("images/a/{}.png", i), png(8, 8, 2, std::string(192, '\x40')));
  const std::string config = folder.write("config.yaml", R"(
data: {dataset: image_folder, path: images, shuffle: false}
model: {layers: [flatten, {dense: 2}]}
)" + train_section("batch_size: 4, epochs: 1, optimizer: sgd"));
  for (int i = 0; i < 4; ++i) folder.write(format("images/b/{}.jpg", i), "\xff\xd8\xff and no more");
  const Finished run = trainctl(folder, {"run", config, "--ranks", "2", "--run-dir", "run"});
  CHECK(run.code == 3);
  CHECK(contains(read_file(folder / "run/log.txt"), "images/"));
  CHECK(fs::exists(folder / "run/logs/rank-1.log"));
}

}  // namespace
}  // namespace trainctl::test::process_test
