// Tests watch: what it shows of runs in other processes, and how it ends.
#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "core/base/format.h"
#include "test/catch.h"
#include "test/support/command.h"
#include "test/support/configs.h"

namespace trainctl::test::watch_test {
namespace {

namespace fs = std::filesystem;

std::string config_text(const std::string& epochs) {
  return uneven_data + mlp_model +
         train_section("batch_size: 20, optimizer: {name: sgd, learning_rate: 0.01}, epochs: " + epochs);
}

// A run that trains until it is stopped, and has already begun.
struct Endless {
  Folder folder;
  Command run;

  explicit Endless(const char* ranks)
      : run(folder, {"run", folder.write("config.yaml", config_text("100000000")), "--ranks", ranks}) {
    REQUIRE(comes_true([this] { return events(folder / "runs/config", "checkpoint").size() > 1; }));
  }
};

// The lines that contain these words, from there on.
std::vector<std::string> lines_with(const std::string& text, const std::string& words) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    if (const std::size_t at = line.find(words); at != std::string::npos) lines.push_back(line.substr(at));
  }
  return lines;
}

bool has_control_characters(const std::string& text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x20 && c != '\n'; });
}

}  // namespace

TEST_CASE("watch shows the epochs that a run shows, from before its metrics exist to its end") {
  const Folder folder;
  const std::string config = folder.write("config.yaml", config_text("30"));
  Command run(folder, {"run", config, "--ranks", "2", "--progress", "plain"});
  REQUIRE(comes_true([&] { return fs::exists(folder / "runs/config/lock"); }));
  Command watch(folder, {"watch", "runs/config/"});
  CHECK(run.wait() == 0);
  CHECK(watch.wait() == 0);
  INFO(watch.out() << watch.errors());
  CHECK(watch.errors().empty());
  CHECK_FALSE(has_control_characters(watch.out()));
  CHECK(contains(watch.out(), "runs/config"));
  const std::vector<std::string> shown = lines_with(watch.out(), "epoch "), told = lines_with(run.errors(), "epoch ");
  const auto of_all = [](const std::string& line) { return line.starts_with("epoch ") && contains(line, "/30  loss"); };
  std::vector<std::string> epochs, own;
  std::copy_if(shown.begin(), shown.end(), std::back_inserter(epochs), of_all);
  std::copy_if(told.begin(), told.end(), std::back_inserter(own), of_all);
  REQUIRE(own.size() == 30);
  REQUIRE(epochs.size() >= 10);  // of the epochs before watch began, ten are shown
  CHECK(std::equal(epochs.rbegin(), epochs.rend(), own.rbegin()));
  CHECK(contains(watch.out(), "completed after 30 epochs, 180 steps"));
  CHECK(contains(watch.out(), events(folder / "runs/config", "end").back()["weights_sha256"].get<std::string>()));

  const Finished again = trainctl(folder, {"watch", folder / "runs/config"});
  CHECK(again.code == 0);
  CHECK(contains(again.out, "completed after 30 epochs"));
  const Json json = Json::parse(trainctl(folder, {"watch", "runs/config", "--json"}).out);
  CHECK(json["state"] == "ended");
  CHECK(json["status"] == "completed");
  CHECK(json["step"] == 180);
  CHECK(json["epoch"] == 30);
  CHECK(json["loss"] == events(folder / "runs/config", "end").back()["train"]["loss"]);
  CHECK(json["checkpoint"]["step"] == 180);
  CHECK(trainctl(folder, {"watch", "runs/config", "--quiet"}).out.empty());
  const Finished none = trainctl(folder, {"watch"});
  CHECK(none.code == 0);
  CHECK(none.out == "no run is running in runs\n");
}

TEST_CASE("watch ends with a stopped run, and quietly on Ctrl-C") {
  Endless endless("1");
  const Folder& folder = endless.folder;
  const Finished table = trainctl(folder, {"watch"});
  CHECK(table.code == 0);
  CHECK(contains(table.out, "runs/config"));
  CHECK(contains(table.out, "running"));
  const Json all = Json::parse(trainctl(folder, {"watch", "--json"}).out);
  REQUIRE(all["runs"].size() == 1);
  CHECK(all["runs"][0]["state"] == "running");
  CHECK(all["runs"][0]["samples_per_second"].get<double>() > 0);

  Command left(folder, {"watch", "runs/config"});
  Command stays(folder, {"watch", "runs/config"});
  for (Command* watch : {&left, &stays}) {
    REQUIRE(comes_true([watch] { return lines_with(watch->out(), "step ").size() > 1; }));
  }
  left.send(SIGINT);
  CHECK(left.wait() == 130);
  CHECK(left.errors().empty());
  endless.run.send(SIGINT);
  CHECK(endless.run.wait() == 75);
  CHECK(stays.wait() == 0);
  CHECK(contains(stays.out(), "stopped after "));
  CHECK_FALSE(has_control_characters(stays.out()));
}

TEST_CASE("watch reports that a run was killed, and follows the one that resumes it") {
  Endless endless("1");
  const Folder& folder = endless.folder;
  Command watch(folder, {"watch", "runs/config"});
  REQUIRE(comes_true([&] { return contains(watch.out(), "step "); }));
  endless.run.send(SIGKILL);
  CHECK(endless.run.wait() == -SIGKILL);
  CHECK(comes_true([&] { return contains(watch.out(), "has ended without recording how the run ended"); }));
  Command next(folder, {"run", folder / "config.yaml", "--ranks", "1"});
  CHECK(comes_true([&] { return count(watch.out(), "runs/config: 1 rank on ") == 2; }));
  next.send(SIGINT);
  CHECK(next.wait() == 75);
  CHECK(watch.wait() == 0);
  CHECK(contains(watch.out(), "stopped after "));

  Command third(folder, {"run", folder / "config.yaml", "--ranks", "1"});
  REQUIRE(comes_true([&] { return events(folder / "runs/config", "start").size() == 3; }));
  third.send(SIGKILL);
  third.wait();
  const Finished dead = trainctl(folder, {"watch", "runs/config"});  // no other run resumes it
  CHECK(dead.code == 0);
  CHECK(contains(dead.out, "has ended without recording"));
  CHECK(contains(dead.out, "trainctl run continues from "));
  CHECK(Json::parse(trainctl(folder, {"watch", "runs/config", "--json"}).out)["state"] == "gone");
}

TEST_CASE("watch draws the bar of a run on a terminal, and removes it at the end") {
  if (std::system("command -v script > /dev/null") != 0) {
    WARN("script is not installed");
    return;
  }
  Endless endless("1");
  const Folder& folder = endless.folder;
  const auto drawn = [&folder](const std::string& arguments) {
    const std::string watch = format("timeout --foreground -s INT 4 {} watch {}", TRAINCTL_BINARY, arguments);
    const std::string line =
        format("cd '{}' && TERM=xterm script -qec '{}' drawn > shown < /dev/null", folder.path().string(), watch);
    CHECK(std::system(line.c_str()) != 0);
    return read_file(folder / "drawn");
  };
  const std::string one = drawn("runs/config"), all = drawn("");
  INFO(one << all);
  CHECK(contains(one, "epoch "));
  CHECK(contains(one, "samples/s"));
  CHECK(contains(one, "\nrunning  val_accuracy "));
  CHECK(contains(one, "checkpoint of step "));
  CHECK(contains(all, "runs/config"));
  for (const std::string& text : {one, all}) {
    CHECK(count(text, "\x1b[J") > 3);
    CHECK(contains(text.substr(text.size() - 100), "\x1b[J"));
  }
  endless.run.send(SIGINT);
  CHECK(endless.run.wait() == 75);
}

TEST_CASE("watch refuses a folder that is not a run, with one document for --json") {
  const Folder folder;
  const Finished nowhere = trainctl(folder, {"watch", "nowhere"});
  CHECK(nowhere.code == 2);
  CHECK(contains(nowhere.errors, "nowhere: there is no such directory"));
  CHECK(trainctl(folder, {"watch"}).code == 2);  // no runs/
  const Finished document = trainctl(folder, {"watch", folder.path().string(), "--json"});
  CHECK(document.code == 2);
  CHECK(Json::parse(document.out)["ok"] == false);
  CHECK(contains(document.out, "holds no run"));
}

}  // namespace trainctl::test::watch_test
