// Tests runs that start again after a failure or with another number of ranks: they end with the weights that they
// would have had undisturbed.
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "core/base/format.h"
#include "test/catch.h"
#include "test/support/command.h"
#include "test/support/configs.h"

namespace trainctl::test::restart_test {
namespace {

std::string write_config(const Folder& folder) {
  return folder.write("lasting.yaml", lasting_config("{every: 50 steps}", 200));
}

// Runs the config to its end without a disturbance. Returns the hash of the weights.
std::string undisturbed_weights(const Folder& folder, const std::string& config) {
  const std::string directory = folder / "undisturbed";
  const Finished run = trainctl(folder, {"run", config, "--ranks", "2", "--run-dir", directory, "--quiet"});
  REQUIRE(run.code == 0);
  return events(directory, "end").back().at("weights_sha256");
}

bool has_steps(const std::string& directory, std::size_t count) { return events(directory, "step").size() >= count; }

bool has_checkpoint(const std::string& directory) { return !events(directory, "checkpoint").empty(); }

TEST_CASE("a run whose rank is killed starts again from its checkpoint and ends with the same weights") {
  const Folder folder;
  const std::string config = write_config(folder), directory = folder / "killed";
  Command run(folder, {"run", config, "--ranks", "2", "--run-dir", directory, "--progress", "none", "--max-restarts",
                       "3", "--resume", "never"});
  REQUIRE(comes_true([&] { return has_checkpoint(directory); }));
  kill(run.ranks().at(1), SIGKILL);
  CHECK(run.wait() == 0);
  INFO(tail(run.errors()));
  CHECK(contains(run.errors(), "killed by signal 9"));
  CHECK(contains(run.errors(),
                 "the run starts again on 2 ranks (restart 1) from checkpoint " + directory + "/checkpoints/"));
  CHECK(run.left_no_process());
  const auto restarts = events(directory, "restart");
  REQUIRE(restarts.size() == 1);
  CHECK(restarts[0].at("attempt") == 2);
  CHECK(restarts[0].at("cause") == "rank_killed");
  CHECK(restarts[0].at("rank") == 1);
  CHECK(restarts[0].at("signal") == SIGKILL);
  CHECK(restarts[0].at("step") >= 1);
  CHECK(restarts[0].at("ranks") == 2);
  CHECK(events(directory, "start").back().at("first_step") >= 50);
  CHECK(events(directory, "end").back().at("weights_sha256") == undisturbed_weights(folder, config));
}

TEST_CASE("a run whose rank does not answer starts again, also before its first checkpoint") {
  const Folder folder;
  const std::string config = write_config(folder), directory = folder / "silent";
  const int timeout = 2 * sanitizer_slowdown;
  Command run(folder, {"run", config, "--ranks", "2", "--run-dir", directory, "--progress", "none", "--set",
                       "cluster.restarts=1", "--set", format("cluster.timeout={} s", timeout), "--set",
                       "checkpoint.every=100 epochs"});
  REQUIRE(comes_true([&] { return has_steps(directory, 3); }));
  kill(run.ranks().at(1), SIGSTOP);
  CHECK(run.wait() == 0);
  INFO(tail(run.errors()));
  CHECK(contains(run.errors(), "rank 1 did not arrive within"));
  CHECK(events(directory, "restart").at(0).at("cause") == "rank_silent");
  CHECK(events(directory, "start").back().at("first_step") == 0);
  CHECK(events(directory, "end").back().at("weights_sha256") == undisturbed_weights(folder, config));
}

TEST_CASE("a run ends if it has used its restarts") {
  const Folder folder;
  const std::string config = write_config(folder), directory = folder / "twice";
  Command run(folder,
              {"run", config, "--ranks", "2", "--run-dir", directory, "--progress", "none", "--max-restarts", "1"});
  REQUIRE(comes_true([&] { return has_checkpoint(directory); }));
  kill(run.ranks().at(0), SIGKILL);
  REQUIRE(comes_true([&] { return events(directory, "restart").size() == 1 && run.ranks().size() == 2; }));
  const std::size_t steps = events(directory, "step").size();
  REQUIRE(comes_true([&] { return has_steps(directory, steps + 3); }));
  kill(run.ranks().at(1), SIGKILL);
  CHECK(run.wait() == 5);
  CHECK(contains(run.errors(), "the run has started again 1 time, which is the most"));
  CHECK(run.left_no_process());
}

TEST_CASE("a run that trains is resized, and ends with the same weights") {
  const Folder folder;
  const std::string config = write_config(folder), directory = folder / "resized";
  Command run(folder, {"run", config, "--ranks", "2", "--run-dir", directory, "--progress", "none"});
  std::size_t starts = 1;
  for (const char* ranks : {"3", "1", "4"}) {
    REQUIRE(comes_true([&] { return events(directory, "start").size() == starts && has_steps(directory, 5); }));
    const std::size_t steps = events(directory, "step").size();
    REQUIRE(comes_true([&] { return has_steps(directory, steps + 3); }));
    const Finished resize = trainctl(folder, {"resize", directory, "--ranks", ranks});
    INFO(resize.errors);
    REQUIRE(resize.code == 0);
    ++starts;
  }
  CHECK(run.wait() == 0);
  INFO(tail(run.errors()));
  const auto begun = events(directory, "start");
  REQUIRE(begun.size() == 4);
  for (std::size_t i = 0; i < 4; ++i) CHECK(begun[i].at("ranks") == std::vector<int>({2, 3, 1, 4})[i]);
  CHECK(events(directory, "restart").at(0).at("cause") == "resized");
  CHECK(events(directory, "end").size() == 1);  // the run has not ended when it was resized
  CHECK_FALSE(std::filesystem::exists(directory + "/resize"));
  CHECK(events(directory, "end").back().at("weights_sha256") == undisturbed_weights(folder, config));
}

TEST_CASE("a request that comes while a run starts again is kept until its ranks train") {
  const Folder folder;
  const std::string config = write_config(folder), directory = folder / "busy";
  Command run(folder,
              {"run", config, "--ranks", "2", "--run-dir", directory, "--progress", "none", "--max-restarts", "1"});
  REQUIRE(comes_true([&] { return has_checkpoint(directory); }));
  kill(run.ranks().at(0), SIGKILL);
  REQUIRE(run.says("the run starts again on 2 ranks"));
  const Finished resize = trainctl(folder, {"resize", directory, "--ranks", "3"});
  INFO(resize.errors);
  CHECK(resize.code == 0);
  CHECK(run.wait() == 0);
  INFO(tail(run.errors()));
  const auto begun = events(directory, "start");
  REQUIRE(begun.size() == 3);
  CHECK(begun.back().at("ranks") == 3);
  CHECK(events(directory, "end").back().at("weights_sha256") == undisturbed_weights(folder, config));
}

// Kills a rank again and again before the ranks train, so that the supervisor waits before it starts them again.
void kill_without_progress(const Command& run, int restarts) {
  std::map<int, pid_t> ranks;
  for (int i = 1; i <= restarts; ++i) {
    REQUIRE(comes_true([&] {
      const std::map<int, pid_t> now = run.ranks();
      if (now.size() != 2 || now.at(1) == (ranks.empty() ? 0 : ranks.at(1))) return false;
      ranks = now;
      return true;
    }));
    kill(ranks.at(1), SIGKILL);
    REQUIRE(run.says(format("(restart {})", i)));
  }
}

TEST_CASE("between two starts of its ranks a run keeps its directory, is watched as a running one and is resized") {
  const Folder folder;
  const std::string config = write_config(folder), directory = folder / "kept";
  Command run(folder, {"run", config, "--ranks", "2", "--run-dir", directory, "--progress", "none", "--max-restarts",
                       "9", "--set", "checkpoint.every=20 steps"});
  REQUIRE(comes_true([&] { return has_checkpoint(directory); }));
  Command watch(folder, {"watch", directory});
  REQUIRE(comes_true([&] { return contains(watch.out(), "step "); }));
  kill_without_progress(run, 3);
  CHECK(contains(run.errors(), "in 2 s (restart 3)"));
  const std::string record = read_file(directory + "/metrics.jsonl");
  const Finished second = trainctl(folder, {"run", config, "--ranks", "1", "--run-dir", directory});
  INFO(second.errors);
  CHECK(second.code == 2);
  CHECK(contains(second.errors, "another trainctl is running in this directory: process "));
  CHECK(contains(second.errors, ", which starts its ranks again"));
  CHECK(read_file(directory + "/metrics.jsonl") == record);
  const Finished resize = trainctl(folder, {"resize", directory, "--ranks", "3"});
  INFO(resize.errors);
  CHECK(resize.code == 0);
  CHECK(run.wait() == 0);
  INFO(tail(run.errors()));
  CHECK(events(directory, "start").back().at("ranks") == 3);
  CHECK(events(directory, "end").size() == 1);
  CHECK(watch.wait() == 0);
  CHECK_FALSE(contains(watch.out(), "has ended without recording"));
  CHECK(contains(watch.out(), "completed after 200 epochs"));
  CHECK(events(directory, "end").back().at("weights_sha256") == undisturbed_weights(folder, config));
}

TEST_CASE("a request that the strategy does not permit is refused, and the run goes on") {
  struct Refused {
    std::string strategy, ranks, why;
  };
  const auto [strategy, ranks, why] =
      GENERATE(Refused{"{pipeline: 2}", "3", "a replica has 2 ranks"},
               Refused{"{data: 2}", "4", "strategy.data fixes the number of ranks at 2"},
               Refused{"{reproducible: {shards: 2}}", "4", "the strategy has logical shards for at most 2 ranks"});
  const Folder folder;
  const std::string config = write_config(folder), directory = folder / "refused";
  Command run(folder, {"run", config, "--ranks", "2", "--run-dir", directory, "--progress", "none", "--set",
                       "strategy=" + strategy});
  REQUIRE(comes_true([&] { return has_steps(directory, 3); }));
  REQUIRE(trainctl(folder, {"resize", directory, "--ranks", ranks}).code == 0);
  CHECK(run.wait() == 0);
  INFO(tail(run.errors()));
  CHECK(contains(run.errors(), "the run goes on as before, since it cannot train on " + ranks + " ranks: " + why));
  CHECK(events(directory, "start").size() == 1);
  const std::vector<Json> refused = events(directory, "refused_resize");
  REQUIRE(refused.size() == 1);
  CHECK(refused[0].at("ranks") == std::stoi(ranks));
  CHECK(refused[0].at("step") >= 3);
  CHECK(contains(refused[0].at("reason"), why));
}

TEST_CASE("a run goes on with the number of ranks before if the ranks cannot train in a new number") {
  const Folder folder;
  const std::string config = write_config(folder), directory = folder / "too-many";
  Command run(folder, {"run", config, "--ranks", "2", "--run-dir", directory, "--progress", "none", "--set",
                       "strategy={share: [1, 1]}"});
  REQUIRE(comes_true([&] { return has_steps(directory, 3); }));
  REQUIRE(trainctl(folder, {"resize", directory, "--ranks", "3"}).code == 0);
  CHECK(run.wait() == 0);
  INFO(tail(run.errors()));
  CHECK(contains(run.errors(), "strategy.share has 2 speeds, but there are 3 replicas"));
  CHECK(contains(run.errors(), "the run goes on with 2 ranks"));
  CHECK(events(directory, "end").size() == 1);
  CHECK(events(directory, "start").back().at("ranks") == 2);
  const std::vector<Json> refused = events(directory, "refused_resize");
  REQUIRE(refused.size() == 1);
  CHECK(refused[0].at("ranks") == 3);
  CHECK(contains(refused[0].at("reason"), "strategy.share has 2 speeds, but there are 3 replicas"));
}

TEST_CASE("a run whose last checkpoint could not be written is not resized, and goes on") {
  const Folder folder;
  const std::string directory = folder / "unsaved";
  const std::string config = folder.write("unsaved.yaml", lasting_config("{every: 20 steps}", 100'000) +
                                                              "faults: [{full_disk: {step: 10, for: 3600 s}}]\n");
  Command run(folder, {"run", config, "--ranks", "2", "--run-dir", directory, "--progress", "none"});
  REQUIRE(run.says("was not written; training goes on"));
  REQUIRE(trainctl(folder, {"resize", directory, "--ranks", "3"}).code == 0);
  CHECK(run.says("the run goes on as before, and not with 3 ranks, since its last checkpoint could not be written"));
  const int before = count(run.errors(), "was not written; training goes on");
  CHECK(run.says("was not written; training goes on", before + 1));
  run.send(SIGTERM);
  CHECK(run.wait() == 6);
}

TEST_CASE("a run on one rank starts again, too") {
  const Folder folder;
  const std::string config = write_config(folder), directory = folder / "one";
  Command run(folder,
              {"run", config, "--ranks", "1", "--run-dir", directory, "--progress", "none", "--max-restarts", "1"});
  REQUIRE(comes_true([&] { return has_checkpoint(directory); }));
  kill(run.ranks().at(0), SIGKILL);
  CHECK(run.wait() == 0);
  INFO(tail(run.errors()));
  CHECK(events(directory, "restart").size() == 1);
  CHECK(events(directory, "end").back().at("weights_sha256") == undisturbed_weights(folder, config));
}

// A rank that was cut off from its supervisor, as on a host that is frozen: the supervisor has started the run again.
TEST_CASE("a rank of an earlier start saves no more when it wakes up, and ends") {
  const Folder folder;
  const std::string config = write_config(folder), directory = folder / "frozen";
  Command old(folder, {"run", config, "--ranks", "2", "--run-dir", directory, "--progress", "none", "--set",
                       "train.epochs=100000"});
  REQUIRE(comes_true([&] { return has_checkpoint(directory); }));
  const std::map<int, pid_t> ranks = old.ranks();
  old.send(SIGSTOP);
  kill(ranks.at(0), SIGSTOP);
  const std::string lock = read_file(directory + "/lock"), launch = lock.substr(lock.find("launch ") + 7);
  const Command next(folder, {"run", config, "--run-dir", directory, "--progress", "none"}, ".",
                     {"TRAINCTL_LAUNCH=" + launch.substr(0, launch.find(' ')), "TRAINCTL_RESTART={\"attempt\": 2}",
                      "TRAINCTL_STATUS_FILE=" + folder / "status", "OMPI_COMM_WORLD_SIZE=1", "OMPI_COMM_WORLD_RANK=0"});
  CHECK(next.says("it will not save any more"));
  kill(ranks.at(0), SIGCONT);
  CHECK(comes_true([&] {
    return kill(ranks.at(0), 0) != 0 ||
           read_file(format("/proc/{}/stat", ranks.at(0))).find(") Z") != std::string::npos;
  }));
  old.send(SIGCONT);
  CHECK(old.wait() == 5);
  CHECK(contains(old.errors(), "a later start of this run has taken over the directory"));
}

// The supervisor cannot lock the directory if rank 0 is on another host.
TEST_CASE("a run waits for the supervisor of another host that may start its ranks again in the directory") {
  const Folder folder;
  const std::string config = write_config(folder), directory = folder / "left";
  {
    Command run(folder, {"run", config, "--ranks", "1", "--run-dir", directory, "--progress", "none"});
    REQUIRE(comes_true([&] { return has_checkpoint(directory); }));
    run.send(SIGKILL);
    run.wait();
  }
  const std::string holder = read_file(directory + "/lock");
  folder.write("left/lock", holder.substr(0, holder.find('\n')) + "\nlaunch elsewhere-77-5 generation 1 restarts\n");
  Command next(folder, {"run", config, "--ranks", "2", "--run-dir", directory, "--progress", "none", "--set",
                        format("cluster.timeout={} s", 3 * sanitizer_slowdown)});
  REQUIRE(next.says(" may start again from host elsewhere; this run waits for up to 60 s"));
  std::this_thread::sleep_for(std::chrono::seconds(5 * sanitizer_slowdown));  // longer than cluster.timeout
  CHECK_FALSE(contains(next.errors(), "goes on from"));
  std::ofstream(directory + "/metrics.jsonl", std::ios::app) << R"({"event":"end","time":1,"status":"stopped"})"
                                                             << "\n";
  CHECK(next.wait() == 0);
  INFO(tail(next.errors()));
  CHECK(contains(next.errors(), "goes on from " + directory));
  CHECK(events(directory, "end").back().at("weights_sha256") == undisturbed_weights(folder, config));
}

TEST_CASE("resize tells what cannot be resized") {
  const Folder folder;
  CHECK(trainctl(folder, {"resize", folder / "nowhere", "--ranks", "2"}).code == 2);
  const Finished none = trainctl(folder, {"resize", folder / "nowhere", "--ranks", "0"});
  CHECK(none.code == 2);
  CHECK(contains(none.errors, "not in range 1 to 1048576"));
  CHECK(contains(trainctl(folder, {"replay", folder / "nowhere", "--ranks", "0", "--step", "1"}).errors,
                 "not in range 1 to 1048576"));
  CHECK(contains(trainctl(folder, {"replay", folder / "nowhere", "--step", "0"}).errors,
                 "must be a whole number of at least 1, not '0'"));
  const std::string config = write_config(folder), directory = folder / "single";
  Command run(folder, {"run", config, "--ranks", "1", "--run-dir", directory, "--set", "train.epochs=100000"});
  REQUIRE(comes_true([&] { return has_steps(directory, 3); }));
  const Finished refused = trainctl(folder, {"resize", directory, "--ranks", "2"});
  CHECK(refused.code == 5);
  CHECK(contains(refused.errors, "has no supervisor"));
  CHECK_FALSE(std::filesystem::exists(directory + "/resize"));
  run.send(SIGTERM);
  CHECK(run.wait() == 75);
  const Finished ended = trainctl(folder, {"resize", directory, "--ranks", "2"});
  CHECK(ended.code == 2);
  CHECK(contains(ended.errors, "no process trains in"));
}

}  // namespace
}  // namespace trainctl::test::restart_test
