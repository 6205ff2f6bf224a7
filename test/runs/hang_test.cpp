// Tests the reports on ranks that hang: the rank is named with its step and what it does, in time, and the run starts
// again and ends with the weights that it would have had.
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "core/base/format.h"
#include "test/catch.h"
#include "test/support/command.h"
#include "test/support/configs.h"
#include "test/support/files.h"

namespace trainctl::test::hang_test {
namespace {

namespace fs = std::filesystem;

// Seconds from the fault to the report, with the default of cluster.hang_timeout or a smaller one.
constexpr double limit = 10 * sanitizer_slowdown, most = limit + 10;

// Training in reproducible mode that takes about a minute on two ranks.
std::string write_config(const Folder& folder, int epochs) {
  return folder.write("hang.yaml", R"(
data: {dataset: synthetic, samples: 320, shape: [16, 16, 3], classes: 5}
log: {every: 1 steps}
checkpoint: {every: 20 steps}
model:
  layers:
    - conv2d: {filters: 8, kernel_size: 3, padding: same, activation: relu}
    - conv2d: {filters: 8, kernel_size: 3, padding: same, activation: relu}
    - flatten
    - dense: {units: 8, activation: relu}
    - dense: {units: 5, activation: softmax}
)" + train_section(format("batch_size: 32, epochs: {}, optimizer: {{name: adam, learning_rate: 1e-4}}", epochs)));
}

std::vector<std::string> run_words(const std::string& config, const std::string& directory, int ranks,
                                   const std::vector<std::string>& settings) {
  std::vector<std::string> words = {"run",       config,    "--ranks",    std::to_string(ranks),
                                    "--run-dir", directory, "--progress", "none"};
  for (const std::string& setting : settings) words.insert(words.end(), {"--set", setting});
  if (sanitizer_slowdown > 1) words.insert(words.end(), {"--set", format("cluster.hang_timeout={} s", limit)});
  return words;
}

bool has_steps(const std::string& directory, std::size_t count) {
  return comes_true([&] { return events(directory, "step").size() >= count; });
}

// Waits for a text on standard error; returns the seconds that it took.
double seconds_until(const Command& run, const std::string& text) {
  const auto begin = std::chrono::steady_clock::now();
  REQUIRE(run.says(text));
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  UNSCOPED_INFO(format("'{}' came after {:.1f} s", text, seconds));
  if (std::getenv("TRAINCTL_SHOW_TIMES") != nullptr) std::printf("'%s' came after %.1f s\n", text.c_str(), seconds);
  return seconds;
}

TEST_CASE("a stopped rank is named with its step, and the run starts again", "[waits]") {
  const std::string strategy = GENERATE("{}", "{pipeline: 2}", "{tensor: 2}");
  const int stopped = GENERATE(0, 1);
  const Folder folder;
  const std::string config = write_config(folder, 100000), directory = folder / "run";
  std::vector<std::string> settings{"strategy=" + strategy, "cluster.restarts=1"};
  const bool by_default = strategy == "{}" && stopped == 0;
  if (!by_default) settings.push_back("cluster.hang_timeout=3 s");
  Command run(folder, run_words(config, directory, 2, settings));
  REQUIRE(has_steps(directory, 20));
  kill(run.ranks().at(stopped), SIGSTOP);
  const std::size_t steps = events(directory, "step").size();
  CHECK(seconds_until(run, format("waiting for rank {} on ", stopped)) < most);
  const std::string errors = run.errors();
  INFO(strategy << "\n" << errors);
  const std::size_t at = errors.rfind("step ", errors.find(": waiting for rank "));
  REQUIRE(at != std::string::npos);
  const auto step = static_cast<std::size_t>(std::atoll(errors.c_str() + at + 5));
  CHECK(step + 25 >= steps);  // the log is written some steps later
  CHECK(contains(errors, ": stopped by a signal "));
  CHECK(contains(errors, format("the threads of rank {} (process ", stopped)));
  CHECK(contains(errors, "stopped by a signal (state T)"));
  REQUIRE(comes_true([&] { return events(directory, "restart").size() == 1; }));
  CHECK(events(directory, "restart").at(0).at("cause") == "rank_hung");
  CHECK(events(directory, "restart").at(0).at("rank") == stopped);
  for (const char* record : {"rank-00000", "rank-00001"}) CHECK(fs::exists(directory + "/flight/" + record));
  run.send(SIGTERM);
  CHECK(run.wait() == 75);
  CHECK(run.left_no_process());
  CHECK(fs::is_empty(folder / "temporary"));
}

// Writes images in two classes; returns the path of one of them.
std::string write_images(const Folder& folder) {
  std::string path;
  for (unsigned i = 0; i < 64; ++i) {
    path = folder.write(format("images/{}/{:02}.png", i % 2 == 0 ? "a" : "b", i), png(16, 16, 0, random_bytes(256, i)));
  }
  return path;
}

TEST_CASE(
    "a read of data that blocks is named with its file, and the run ends with the weights of an undisturbed run") {
  const Folder folder;
  const std::string blocked = fs::canonical(write_images(folder)), fifo = folder / "fifo";
  const std::string config = folder.write("images.yaml", R"(
data: {dataset: image_folder, path: images, shape: [16, 16, 1], classes: 2, transform: [{rescale: 1/255}], workers: 1}
log: {every: 1 steps}
checkpoint: {every: 20 steps}
strategy: {reproducible: {shards: 2}}
model: {layers: [flatten, {dense: {units: 16, activation: relu}}, {dense: {units: 2, activation: softmax}}]}
)" + train_section("batch_size: 16, epochs: 600, optimizer: {name: sgd, learning_rate: 1e-3}"));
  const std::string directory = folder / "run";
  Command run(folder, run_words(config, directory, 2, {"cluster.restarts=1"}), ".",
              {"LD_PRELOAD=" TRAINCTL_BLOCKED_READ_LIBRARY, "TRAINCTL_BLOCKED_FILE=" + blocked,
               "TRAINCTL_BLOCKED_FIFO=" + fifo});
  REQUIRE(has_steps(directory, 30));
  REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
  CHECK(seconds_until(run, ": reading ") < most);
  REQUIRE(run.says("the run starts again"));
  unlink(fifo.c_str());
  CHECK(run.wait() == 0);
  const std::string errors = run.errors();
  INFO(errors);
  CHECK(contains(errors, fs::path(blocked).filename()));
  CHECK(contains(errors, "in the system call read of " + fifo));
  CHECK(events(directory, "restart").at(0).at("cause") == "rank_hung");
  const Finished undisturbed =
      trainctl(folder, {"run", config, "--ranks", "2", "--run-dir", folder / "undisturbed", "--quiet"});
  REQUIRE(undisturbed.code == 0);
  CHECK(events(directory, "end").back().at("weights_sha256") ==
        events(folder / "undisturbed", "end").back().at("weights_sha256"));
}

TEST_CASE("a stopped rank of a run that does not restart ends it with exit code 5", "[waits]") {
  const Folder folder;
  const std::string config = write_config(folder, 100000), directory = folder / "run";
  const int stopped = 3;
  Command run(folder, run_words(config, directory, 4, {"strategy.pipeline=2", "cluster.hang_timeout=3 s"}));
  REQUIRE(has_steps(directory, 20));
  kill(run.ranks().at(stopped), SIGSTOP);
  CHECK(run.wait() == 5);
  INFO(run.errors());
  CHECK(contains(run.errors(), "waiting for rank 3 on "));
  CHECK(contains(run.errors(), "the ranks were ended; "));
  CHECK(run.left_no_process());
}

TEST_CASE("a killed supervisor leaves neither ranks nor an agent") {
  const Folder folder;
  const std::string config = write_config(folder, 100000), directory = folder / "run";
  Command run(folder, run_words(config, directory, 2, {}));
  REQUIRE(has_steps(directory, 20));
  REQUIRE(comes_true([&] { return run.starts("host-agent"); }));
  run.send(SIGKILL);
  CHECK(run.wait() == -SIGKILL);
  CHECK(run.left_no_process());
}

TEST_CASE("a run that is suspended as a whole goes on without a report", "[waits]") {
  const Folder folder;
  const std::string config = write_config(folder, 100000), directory = folder / "run";
  Command run(folder, run_words(config, directory, 2, {"cluster.hang_timeout=3 s"}));
  REQUIRE(has_steps(directory, 20));
  REQUIRE(comes_true([&] { return run.starts("host-agent"); }));
  run.send_to_all(SIGSTOP);
  sleep(8);
  run.send_to_all(SIGCONT);
  const std::size_t steps = events(directory, "step").size();
  REQUIRE(has_steps(directory, steps + 20));
  run.send(SIGTERM);
  CHECK(run.wait() == 75);
  INFO(run.errors());
  CHECK_FALSE(contains(run.errors(), "waiting for rank"));
}

TEST_CASE("without a hang timeout no agent is started") {
  const Folder folder;
  const std::string config = write_config(folder, 100000), directory = folder / "run";
  Command run(folder, run_words(config, directory, 2, {"cluster.hang_timeout=none"}));
  REQUIRE(has_steps(directory, 20));
  CHECK_FALSE(run.starts("host-agent"));
  run.send(SIGTERM);
  CHECK(run.wait() == 75);
}

}  // namespace
}  // namespace trainctl::test::hang_test
