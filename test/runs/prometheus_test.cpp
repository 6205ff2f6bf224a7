// Tests log.prometheus in whole runs: the metrics during training, on several ranks, over phases and restarts.
#include <signal.h>

#include <cstdlib>

#include "core/base/format.h"
#include "test/catch.h"
#include "test/support/command.h"
#include "test/support/configs.h"
#include "test/support/scrape.h"

namespace trainctl::test::prometheus_test {
namespace {

std::string config_text(const std::string& train, const std::string& more = "") {
  return R"(
data: {dataset: synthetic, samples: 96, shape: [8, 8, 3], classes: 5, validation: {samples: 32}}
)" + mlp_model +
         train_section("batch_size: 16, optimizer: {name: sgd, learning_rate: 0.01}, " + train) + more;
}

double sample(int port, const std::string& name) {
  const auto samples = samples_of(scrape(port));
  const auto found = samples.find(name);
  return found == samples.end() ? -1 : found->second;
}

// Whether `promtool check metrics` accepts the text; true if promtool is not installed.
bool promtool_accepts(const Folder& folder, const std::string& text) {
  if (std::system("command -v promtool > /dev/null") != 0) {
    WARN("promtool is not installed");
    return true;
  }
  const std::string file = folder.write("scraped", text);
  const int status = std::system(format("promtool check metrics < {0} > {0}.out 2>&1", file).c_str());
  INFO(read_file(file + ".out"));
  CHECK(read_file(file + ".out").empty());
  return status == 0;
}

}  // namespace

TEST_CASE("a reproducible run in phases on two ranks serves metrics until it ends, and counts its restarts") {
  const Folder folder;
  const int port = free_port();
  const std::string config = folder.write(
      "told.yaml", config_text("phases: [{epochs: 2}, {epochs: 100000000, freeze: [dense]}]",
                               format("strategy: {{reproducible: {{shards: 4}}}}\nlog: {{prometheus: {}}}\n", port)));
  for (int restarts = 0; restarts < 2; ++restarts) {
    Command run(folder, {"run", config, "--ranks", "2"});
    REQUIRE(comes_true([&] { return sample(port, "trainctl_checkpoint_step") > 18; }));  // in the second phase
    const std::string text = scrape(port);
    const std::map<std::string, double> samples = samples_of(text);
    CHECK(promtool_accepts(folder, text));
    CHECK(samples.at("trainctl_ranks") == 2);
    CHECK(samples.at("trainctl_restarts_total") == restarts);
    CHECK(samples.at("trainctl_samples_per_second") > 0);
    CHECK(samples.at("trainctl_learning_rate") == Approx(0.01));
    CHECK(samples.at("trainctl_epoch_metric{metric=\"loss\",data=\"validation\"}") > 0);
    CHECK(samples.at("trainctl_epoch_metric{metric=\"accuracy\",data=\"training\"}") > 0);
    CHECK(samples.at("trainctl_checkpoint_step") > 0);
    CHECK(comes_true([&] { return sample(port, "trainctl_steps_total") > samples.at("trainctl_steps_total"); }));
    run.send(SIGINT);
    CHECK(run.wait() == 75);
    INFO(tail(run.errors()));
    CHECK(contains(run.errors(), format("http://127.0.0.1:{}/metrics", port)));
    CHECK_FALSE(is_listened_on(port));
  }
}

TEST_CASE("under the user's own mpirun only rank 0 serves metrics") {
  const Folder folder;
  const int port = free_port();
  const std::string config =
      folder.write("own.yaml", config_text("epochs: 100000000", format("log: {{prometheus: {}}}\n", port)));
  folder.write("temporary/none", "");
  const std::string line = format(
      "cd '{}' && TMPDIR=$PWD/temporary XDG_CACHE_HOME=$PWD/cache OMPI_ALLOW_RUN_AS_ROOT=1 "
      "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout -s TERM 200 mpirun -n 2 --oversubscribe '{}' run own.yaml > out 2>&1 & "
      "echo $! > '{}/pid'",
      folder.path().string(), TRAINCTL_BINARY, folder.path().string());
  REQUIRE(std::system(line.c_str()) == 0);
  CHECK(comes_true([&] { return sample(port, "trainctl_ranks") == 2; }));
  CHECK(comes_true([&] { return sample(port, "trainctl_steps_total") > 10; }));
  kill(std::stoi(read_file(folder / "pid")), SIGTERM);
  CHECK(comes_true([&] { return !is_listened_on(port); }));
}

TEST_CASE("a port in use is reported before training starts, with its line of the config") {
  const Folder folder;
  const int port = free_port();
  const std::string config =
      folder.write("first.yaml", config_text("epochs: 100000000", format("log:\n  prometheus: {}\n", port)));
  Command run(folder, {"run", config, "--ranks", "1"});
  REQUIRE(comes_true([&] { return sample(port, "trainctl_steps_total") > 0; }));
  for (const char* ranks : {"1", "2"}) {
    const Finished second = trainctl(folder, {"run", config, "--ranks", ranks, "--run-dir", "second"});
    INFO(second.errors);
    CHECK(second.code == 2);
    CHECK(contains(second.errors, format("first.yaml:{}:15: log.prometheus: port {} of 127.0.0.1 is in use",
                                         count(read_file(config), "\n"), port)));
    CHECK(count(second.errors, "in use") == 1);
    CHECK(events(folder / "second").empty());
  }
  const Finished other = trainctl(folder, {"run", config, "--ranks", "1", "--run-dir", "second", "--set",
                                           "log.prometheus=none", "--set", "train.epochs=1"});
  CHECK(other.code == 0);
  const Finished scaling = trainctl(folder, {"verify-scaling", config, "--ranks", "1,2", "--steps", "2"});
  CHECK_FALSE(contains(scaling.errors, "in use"));
  // The run that has the port continues.
  CHECK(sample(port, "trainctl_steps_total") > 0);
  run.send(SIGINT);
  CHECK(run.wait() == 75);

  const Finished wrong = trainctl(folder, {"check", config, "--set", "log.prometheus=localhost"});
  CHECK(wrong.code == 2);
  CHECK(contains(wrong.errors, "prometheus must be a port such as 9464"));
}

}  // namespace trainctl::test::prometheus_test
