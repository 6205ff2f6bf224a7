// Tests runs on a small file system that is filled while they train: training goes on, saving pauses, and the weights
// are those of an undisturbed run.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <random>
#include <thread>

#include "core/base/format.h"
#include "io/checkpoint/load.h"
#include "test/catch.h"
#include "test/support/command.h"
#include "test/support/configs.h"

namespace trainctl::test::full_disk_test {
namespace {

namespace fs = std::filesystem;

// A mounted file system of `kilobytes` kB for the lifetime of the object.
class SmallDisk {
 public:
  SmallDisk(const std::string& path, int kilobytes) : path_(path) {
    fs::create_directories(path);
    mounted_ = std::system(format("mount -t tmpfs -o size={}k tmpfs '{}' 2>/dev/null", kilobytes, path).c_str()) == 0;
  }
  ~SmallDisk() {
    if (mounted_ && std::system(format("umount -l '{}'", path_).c_str()) != 0) fs::remove_all(path_);
  }
  bool mounted() const { return mounted_; }

  // Fills the disk up to its last `left` bytes.
  void fill(std::int64_t left) const {
    const int descriptor = open((path_ + "/filler").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
    const std::string block(4096, 'x');
    std::int64_t bytes = 0;
    for (ssize_t done = 1; done > 0; bytes += done) done = write(descriptor, block.data(), block.size());
    REQUIRE(ftruncate(descriptor, std::max<std::int64_t>(0, bytes - left)) == 0);
    close(descriptor);
  }
  void free() const { fs::remove(path_ + "/filler"); }

 private:
  std::string path_;
  bool mounted_ = false;
};

bool skipped(const SmallDisk& disk) {
  if (!disk.mounted()) WARN("skipped: mounting a small file system needs root");
  return !disk.mounted();
}

// A checkpoint has 200 kB of tensors.
std::string config_of(int steps) {
  return "data: {dataset: synthetic, samples: 400, shape: [8], classes: 4, validation: {samples: 40}}\n"
         "model: {layers: [{dense: {units: 2000, activation: relu}}, {dense: 4}]}\n"
         "checkpoint: {every: 5 steps, keep: 2}\n"
         "log: {every: 1 step}\n" +
         train_section(format("batch_size: 20, max_steps: {}, optimizer: {{name: sgd, learning_rate: 0.01, momentum: "
                              "0.9}}, deterministic: true",
                              steps));
}

std::vector<std::string> run_of(const std::string& config, const std::string& directory) {
  return {"run", config, "--ranks", "2", "--run-dir", directory};
}

std::string weights_of(const std::string& directory) {
  const std::vector<Json> ends = events(directory, "end");
  return ends.empty() || ends.back().at("status") != "completed" ? "" : ends.back().at("weights_sha256");
}

void require_whole_checkpoints(const std::string& directory) {
  for (const fs::directory_entry& entry : fs::directory_iterator(directory + "/checkpoints")) {
    const std::string name = entry.path().filename();
    CAPTURE(name);
    CHECK_FALSE(name.starts_with(".partial-"));
    CHECK_NOTHROW(load_checkpoint(entry.path()));
  }
}

}  // namespace

TEST_CASE("a disk that is full for a time pauses saving, and the weights and metrics are those of an undisturbed run") {
  const Folder folder;
  const SmallDisk disk(folder / "disk", 8000);
  if (skipped(disk)) return;
  constexpr int steps = 3000;  // enough that a fast machine has not finished before the disk is full for the third time
  const std::string config = folder.write("full.yaml", config_of(steps));
  REQUIRE(trainctl(folder, run_of(config, "undisturbed")).code == 0);

  const unsigned seed = std::random_device()();
  CAPTURE(seed);
  std::mt19937 random(seed);
  Command command(folder, run_of(config, "disk/run"));
  REQUIRE(comes_true([&] { return fs::exists(folder / "disk/run/checkpoints/last"); }));
  for (int times = 0; times < 3; ++times) {
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 100));
    const int skipped_before = count(command.errors(), "was not written; training goes on");
    const int again_before = count(command.errors(), "checkpoints can be written again");
    disk.fill(times == 0 ? 0 : static_cast<std::int64_t>(random() % 200'000));
    REQUIRE(command.says("was not written; training goes on", skipped_before + 1));
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 50));
    disk.free();
    REQUIRE(command.says("checkpoints can be written again", again_before + 1));
  }
  const int code = command.wait();
  INFO(tail(command.errors()));
  CHECK(code == 0);
  CHECK(contains(command.errors(), "No space left on device"));
  const std::string expected = weights_of(folder / "undisturbed");
  CHECK(expected != "");
  CHECK(weights_of(folder / "disk/run") == expected);
  CHECK(fs::read_symlink(folder / "disk/run/checkpoints/last") == format("step-{:08}", steps));
  require_whole_checkpoints(folder / "disk/run");
  // All lines were kept until they could be written, in their order.
  const std::map<std::int64_t, double> losses = step_losses(folder / "disk/run");
  CHECK(losses.size() == steps);
  CHECK(losses == step_losses(folder / "undisturbed"));
}

TEST_CASE(
    "a disk that stays full is exit code 6 at the end, and the newest whole checkpoint resumes to the same weights") {
  const Folder folder;
  const SmallDisk disk(folder / "disk", 8000);
  if (skipped(disk)) return;
  const bool stops = GENERATE(false, true);  // whether the run is asked to stop, or trains to its end
  const std::string config = folder.write("full.yaml", config_of(stops ? 20000 : 300));
  Command command(folder, run_of(config, "disk/run"));
  REQUIRE(comes_true([&] { return fs::exists(folder / "disk/run/checkpoints/last"); }));
  disk.fill(static_cast<std::int64_t>(std::random_device()() % 100'000));
  REQUIRE(command.says("was not written; training goes on"));
  if (stops) command.send(SIGTERM);
  CHECK(command.wait() == 6);
  const std::string errors = command.errors();
  INFO(tail(errors));
  CHECK(contains(errors, "its last state could not be saved"));
  CHECK(contains(errors, "No space left on device"));
  const fs::path newest = fs::canonical(folder / "disk/run/checkpoints/last");
  CHECK(contains(errors, "the newest whole checkpoint is disk/run/checkpoints/" + newest.filename().string()));
  CHECK(read_file(folder / "disk/run/metrics.jsonl").ends_with("\n"));
  require_whole_checkpoints(folder / "disk/run");

  disk.free();
  if (stops) return;
  REQUIRE(trainctl(folder, run_of(config, "undisturbed")).code == 0);
  const Finished rest = trainctl(folder, run_of(config, "disk/run"));
  INFO(tail(rest.errors));
  CHECK(rest.code == 0);
  CHECK(contains(rest.errors, "goes on from disk/run/checkpoints/" + newest.filename().string()));
  CHECK(weights_of(folder / "disk/run") == weights_of(folder / "undisturbed"));
  CHECK(weights_of(folder / "disk/run") != "");
}

TEST_CASE("a run is not resized while the disk has no space for a checkpoint, and goes on") {
  const Folder folder;
  const SmallDisk disk(folder / "disk", 8000);
  if (skipped(disk)) return;
  std::vector<std::string> arguments = run_of(folder.write("full.yaml", config_of(1'000'000)), "disk/run");
  arguments.insert(arguments.end(), {"--set", "log.every=100 epochs", "--set", "checkpoint.every=50 steps"});
  Command command(folder, arguments);
  REQUIRE(comes_true([&] { return fs::exists(folder / "disk/run/checkpoints/last"); }));
  REQUIRE(comes_true([&] {  // a checkpoint that is given up, or an old one that is removed, makes room again
    disk.fill(150'000);
    return contains(command.errors(), "was not written; training goes on");
  }));
  REQUIRE(trainctl(folder, {"resize", "disk/run", "--ranks", "1"}).code == 0);
  CHECK(
      command.says("the run goes on as before, since it cannot train on 1 rank: the checkpoint from which it would go "
                   "on cannot be written: "));
  disk.free();
  REQUIRE(command.says("checkpoints can be written again"));
  REQUIRE(trainctl(folder, {"resize", "disk/run", "--ranks", "1"}).code == 0);
  CHECK(comes_true([&] { return events(folder / "disk/run", "start").size() == 2; }));
  command.send(SIGTERM);
  CHECK(command.wait() == 75);
  INFO(tail(command.errors()));
  CHECK(events(folder / "disk/run", "start").back().at("ranks") == 1);
}

TEST_CASE("a disk without space for a checkpoint is exit code 6 before the first step, and nothing is written") {
  const Folder folder;
  const SmallDisk disk(folder / "disk", 280);
  if (skipped(disk)) return;
  const std::string config = folder.write("full.yaml", config_of(1));
  for (const char* ranks : {"1", "2"}) {
    // With Adam's two states a checkpoint needs three times the bytes of the weights.
    const Finished run = trainctl(
        folder, {"run", config, "--ranks", ranks, "--run-dir", "disk/run", "--set", "train.optimizer={name: adam}"});
    INFO(tail(run.errors));
    CHECK(run.code == 6);
    for (const char* words : {"no checkpoint can be written: ", "disk has ", "are needed", "--run-dir"}) {
      CHECK(contains(run.errors, words));
    }
    CHECK_FALSE(fs::exists(folder / "disk/run"));
  }
  const Finished plain =
      trainctl(folder, {"run", config, "--ranks", "1", "--run-dir", "disk/run", "--set", "checkpoint.weights_only=true",
                        "--set", "checkpoint.keep=1", "--set", "log.tensorboard=false"});
  CHECK_FALSE(contains(plain.errors, "no checkpoint can be written"));
}

}  // namespace trainctl::test::full_disk_test
