// Tests which directory a run uses, which runs are resumed, and which checkpoints eval and inspect read.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "core/base/format.h"
#include "test/catch.h"
#include "test/support/command.h"
#include "test/support/configs.h"

namespace trainctl::test::directories_test {
namespace {

namespace fs = std::filesystem;

std::string small(const std::string& keys, const std::string& more = "") {
  return uneven_data + mlp_model +
         train_section("batch_size: 20, optimizer: {name: sgd, learning_rate: 0.05}, " + keys) + more;
}

// Trains on one rank, with further arguments.
Finished train(const Folder& folder, const std::string& config, std::vector<std::string> more = {}) {
  std::vector<std::string> words = {"run", config, "--ranks", "1"};
  words.insert(words.end(), more.begin(), more.end());
  return trainctl(folder, words);
}

std::string last_hash(const std::string& directory) {
  const std::vector<Json> ends = events(directory, "end");
  return ends.empty() ? "" : ends.back().at("weights_sha256");
}

// Makes a run unfinished by removing its end event.
void cut_end(const std::string& directory) {
  std::string lines = read_file(directory + "/metrics.jsonl");
  lines.erase(lines.rfind('\n', lines.size() - 2) + 1);
  std::ofstream(directory + "/metrics.jsonl") << lines;
}

TEST_CASE("a run that is refused leaves nothing behind") {
  const Folder folder;
  const std::string config = folder.write("small.yaml", small("epochs: 1"));
  const auto refused = [&](const std::vector<std::string>& more, int code) {
    const Finished run = train(folder, config, more);
    CAPTURE(more.back(), tail(run.errors));
    CHECK(run.code == code);
    CHECK_FALSE(fs::exists(folder / "runs"));
    CHECK_FALSE(fs::exists(folder / "new"));
    CHECK_FALSE(contains(run.errors, "internal error"));
  };
  refused({"--set", "data={dataset: npy, x: none.npy, y: none.npy}"}, 3);
  refused({"--set", "model.layers.1.dense.units=1000000000"}, 6);
  refused({"--run-dir", "new/run", "--set", "model.layers.1.dense.units=1000000000"}, 6);
  refused({"--run-dir", "new/run", "--resume", "none"}, 3);
  fs::create_directory(folder / "mine");
  folder.write("mine/thesis.tex", "");
  refused({"--run-dir", "mine"}, 2);
  CHECK_FALSE(fs::exists(folder / "mine/lock"));
  fs::create_symlink("loop", folder / "loop");
  refused({"--run-dir", "loop"}, 6);
  refused({"--run-dir", std::string(300, 'x')}, 6);
}

TEST_CASE("a run directory that is a link to nowhere is reported as such") {
  const Folder folder;
  fs::create_symlink("no/such/place", folder / "link");
  const Finished run = train(folder, folder.write("small.yaml", small("epochs: 1")), {"--run-dir", "link"});
  INFO(run.errors);
  CHECK(run.code == 6);
  CHECK(contains(run.errors, "link: it is a link to no/such/place, which does not exist; make that folder"));
}

TEST_CASE("a run without a checkpoint does not block the corrected config") {
  const Folder folder;
  const std::string config = folder.write("small.yaml", small("epochs: 3"));
  const Finished diverged = train(folder, config, {"--set", "train.optimizer.learning_rate=1e38"});
  REQUIRE(diverged.code == 4);
  CHECK_FALSE(contains(diverged.errors, "checkpoint"));  // there is none
  REQUIRE(fs::exists(folder / "runs/small/config.yaml"));
  const Finished right = train(folder, config);
  INFO(tail(right.errors));
  REQUIRE(right.code == 0);
  CHECK(contains(right.errors, "starts anew"));
  CHECK(events(folder / "runs/small", "start").size() == 1);
  CHECK(contains(read_file(folder / "runs/small/config.yaml"), "0.05"));
  CHECK_FALSE(fs::exists(folder / "runs/small-2"));
}

TEST_CASE("an unfinished run is resumed with other epochs, log and checkpoint keys, and logs from where") {
  const Folder folder;
  const std::string config = folder.write("small.yaml", small("epochs: 5"));
  REQUIRE(train(folder, config, {"--run-dir", "whole"}).code == 0);
  REQUIRE(train(folder, config, {"--set", "train.epochs=2"}).code == 0);
  cut_end(folder / "runs/small");
  const Finished rest = train(folder, config, {"--set", "log.every=7 steps", "--set", "checkpoint.every=3 steps"});
  INFO(tail(rest.errors));
  REQUIRE(rest.code == 0);
  CHECK(contains(rest.errors, "goes on from runs/small/checkpoints/step-00000012 (step 12, epoch 2.00)"));
  CHECK(contains(read_file(folder / "runs/small/log.txt"), "goes on from"));
  CHECK(last_hash(folder / "runs/small") == last_hash(folder / "whole"));
  CHECK_FALSE(fs::exists(folder / "runs/small-2"));
}

TEST_CASE("a finished run that is named is continued if more epochs are requested") {
  const Folder folder;
  const std::string config = folder.write("small.yaml", small("epochs: 2"));
  REQUIRE(train(folder, config, {"--run-dir", "whole", "--set", "train.epochs=4"}).code == 0);
  REQUIRE(train(folder, config, {"--run-dir", "mine"}).code == 0);
  const Finished same = train(folder, config, {"--run-dir", "mine"});
  CHECK(same.code == 0);
  CHECK(contains(same.errors, "nothing to do"));
  CHECK(events(folder / "mine", "start").size() == 1);
  const Finished more = train(folder, config, {"--run-dir", "mine", "--set", "train.epochs=4"});
  INFO(tail(more.errors));
  REQUIRE(more.code == 0);
  CHECK(contains(more.errors, "mine holds a finished run, which goes on"));
  CHECK(last_hash(folder / "mine") == last_hash(folder / "whole"));
  CHECK(train(folder, config, {"--run-dir", "mine", "--set", "train.batch_size=19"}).code == 2);
  // In the default directory a finished run is never continued: a new directory is used.
  REQUIRE(train(folder, config).code == 0);
  const Finished next = train(folder, config, {"--quiet", "--set", "train.epochs=3"});
  CHECK(contains(next.errors, "runs/small holds a finished run"));
  CHECK(events(folder / "runs/small-2", "end").back().at("step") == 18);
}

TEST_CASE("a finished run whose checkpoints were deleted is not said to be complete") {
  const Folder folder;
  const std::string config = folder.write("small.yaml", small("epochs: 2"));
  REQUIRE(train(folder, config, {"--run-dir", "mine"}).code == 0);
  fs::rename(folder / "mine/checkpoints", folder / "kept");
  for (const bool more : {false, true}) {
    const Finished refused =
        train(folder, config, {"--run-dir", "mine", "--set", more ? "train.epochs=4" : "train.epochs=2"});
    INFO(refused.errors);
    CHECK(refused.code == 3);
    CHECK(contains(refused.errors, "mine: there is a finished run, but its folder `checkpoints` holds no checkpoint"));
    CHECK(contains(refused.errors, "restore that folder"));
  }
  fs::rename(folder / "kept", folder / "mine/checkpoints");
  const Finished same = train(folder, config, {"--run-dir", "mine"});
  CHECK(same.code == 0);
  CHECK(contains(same.errors, "nothing to do"));
}

TEST_CASE("a changed length of the run leads to a warning if the schedule depends on it") {
  const Folder folder;
  const std::string config = folder.write("cosine.yaml", small("epochs: 2, schedule: cosine"));
  REQUIRE(train(folder, config, {"--run-dir", "mine"}).code == 0);
  const Finished more = train(folder, config, {"--run-dir", "mine", "--set", "train.epochs=4"});
  REQUIRE(more.code == 0);
  CHECK(contains(more.errors, "now 24 steps instead of 12"));
}

TEST_CASE("a checkpoint at or beyond the end of the run is refused, since there is nothing to train") {
  const Folder folder;
  const std::string config = folder.write("small.yaml", small("epochs: 2"));
  REQUIRE(train(folder, config, {"--run-dir", "first"}).code == 0);
  const auto refused = [&](const std::string& setting, const std::string& words) {
    for (const char* ranks : {"1", "2"}) {
      const Finished run = trainctl(
          folder, {"run", config, "--ranks", ranks, "--run-dir", "second", "--resume", "first", "--set", setting});
      CAPTURE(ranks, run.errors);
      CHECK(run.code == 2);
      CHECK(contains(run.errors, "first: there is nothing to train: " + words));
      CHECK(contains(run.errors, "which count from the beginning of the checkpoint's run"));
      CHECK_FALSE(fs::exists(folder / "second"));
    }
  };
  refused("train.epochs=2", "the checkpoint is at epoch 2, and train.epochs is 2; set more epochs");
  refused("train.epochs=1", "the checkpoint is at epoch 2, and train.epochs is 1; set more epochs");
  refused("train.max_steps=11", "the checkpoint is at step 12, and train.max_steps is 11; set more steps");
  const Finished more =
      train(folder, config, {"--run-dir", "second", "--resume", "first", "--set", "train.epochs=3", "--json"});
  INFO(tail(more.errors));
  REQUIRE(more.code == 0);
  CHECK(Json::parse(more.out).at("step") == 18);
  CHECK_FALSE(contains(more.errors, "another config"));  // the end of the run may differ
}

TEST_CASE("a checkpoint that --resume names for a finished run is checked, and said to be unused") {
  const Folder folder;
  const std::string config = folder.write("small.yaml", small("epochs: 2"));
  REQUIRE(train(folder, config, {"--run-dir", "first"}).code == 0);
  REQUIRE(train(folder, config, {"--run-dir", "second", "--set", "train.epochs=3"}).code == 0);
  const Finished missing = train(folder, config, {"--run-dir", "first", "--resume", "nope"});
  CHECK(missing.code == 3);
  CHECK(contains(missing.errors, "nope: does not exist"));
  const Finished unused = train(folder, config, {"--run-dir", "first", "--resume", "second", "--quiet"});
  CHECK(unused.code == 0);
  CHECK(contains(unused.errors,
                 "first holds a finished run: nothing to do, and the checkpoint second of --resume is "
                 "not used"));
}

TEST_CASE("a run that goes on from a run of another config names the keys and what is not taken") {
  const Folder folder;
  const std::string config = folder.write("small.yaml", small("epochs: 2"));
  const std::string adam = "train.optimizer={name: adam, learning_rate: 1e-3}";
  REQUIRE(train(folder, config, {"--run-dir", "first", "--set", adam}).code == 0);
  const Finished other =
      train(folder, config, {"--run-dir", "second", "--resume", "first/checkpoints/last", "--set", "train.epochs=3"});
  INFO(tail(other.errors));
  REQUIRE(other.code == 0);
  for (const std::string& text : {other.errors, read_file(folder / "second/log.txt")}) {
    CHECK(count(text, "first/checkpoints/last is a checkpoint of a run of another config:\n  train.optimizer.") == 1);
    CHECK(contains(text, "train.optimizer.name: adam before, sgd now"));
    CHECK(contains(text, "model.weights"));
  }
  CHECK(contains(other.errors, "has the state of another optimizer ("));
  CHECK(contains(other.errors, "it is dropped, since this optimizer has no state"));
  // A resume of the same config says nothing.
  const Finished same = train(folder, config,
                              {"--run-dir", "third", "--resume", "first", "--set", adam, "--set", "train.epochs=3",
                               "--set", "log.every=2 steps"});
  REQUIRE(same.code == 0);
  CHECK_FALSE(contains(same.errors, "another config"));
  CHECK_FALSE(contains(same.errors, "another optimizer"));
}

TEST_CASE("a directory that a command names and that does not exist is exit code 2, for every command") {
  const Folder folder;
  const std::string config = folder.write("small.yaml", small("epochs: 1"));
  REQUIRE(train(folder, config, {"--run-dir", "first"}).code == 0);
  for (const std::vector<std::string>& words : {std::vector<std::string>{"inspect", "nowhere"},
                                                {"inspect", "first", "nowhere"},
                                                {"inspect", "nowhere", "--flight"},
                                                {"watch", "nowhere"},
                                                {"report", "nowhere"},
                                                {"report", "first", "nowhere"},
                                                {"resize", "nowhere", "--ranks", "2"},
                                                {"replay", "nowhere", "--step", "1"},
                                                {"predict", "nowhere", config},
                                                {"export", "nowhere", "--format", "onnx"},
                                                {"eval", config, "--run", "nowhere", "--ranks", "1"}}) {
    const Finished refused = trainctl(folder, words);
    CAPTURE(words, refused.errors);
    CHECK(refused.code == 2);
    CHECK(contains(refused.errors, "nowhere"));
  }
}

TEST_CASE("eval reads the newest run of its config, and names the checkpoint") {
  const Folder folder;
  const std::string config = folder.write("small.yaml", small("epochs: 1"));
  CHECK(trainctl(folder, {"eval", config, "--ranks", "1"}).code == 3);
  for (int i = 0; i < 2; ++i) REQUIRE(train(folder, config).code == 0);
  REQUIRE(train(folder, config, {"--set", "train.optimizer.learning_rate=0.1"}).code == 0);
  const auto eval = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"eval", config, "--ranks", "1"};
    words.insert(words.end(), more.begin(), more.end());
    return trainctl(folder, words);
  };
  const Finished own = eval({});
  INFO(tail(own.errors));
  REQUIRE(own.code == 0);
  CHECK(contains(own.out, "runs/small-2/checkpoints/step-00000006"));
  CHECK(contains(eval({"--set", "train.optimizer.learning_rate=0.1"}).out, "runs/small-3/"));
  const Finished batch = eval({"--set", "train.batch_size=7"});
  CHECK(contains(batch.out, "runs/small-3/"));
  CHECK(contains(batch.errors, "batch_size"));
  const Finished named = eval({"--run", "runs/small", "--json"});
  CHECK(contains(named.errors, "runs/small/checkpoints/step-00000006"));
  CHECK(Json::parse(named.out).at("loss").is_number());
  // Without a best checkpoint the last one is used.
  fs::remove(folder / "runs/small-2/checkpoints/best");
  const Finished last = eval({});
  CHECK(last.code == 0);
  CHECK(contains(last.errors, "no best checkpoint: its last one is read"));
  const Finished missing = eval({"--run", "runs/smal"});
  CHECK(missing.code == 2);
  CHECK(contains(missing.errors, "runs/smal: there is no run directory of this name"));
  // Weights of another model are refused with both locations.
  for (const std::vector<std::string>& run : {std::vector<std::string>{}, {"--run", "runs/small-2"}}) {
    std::vector<std::string> words = {"--set", "model.layers.1.dense.units=7"};
    words.insert(words.end(), run.begin(), run.end());
    const Finished other = eval(words);
    CHECK(other.code == 2);
    CHECK(contains(other.errors, "small.yaml"));
    CHECK(contains(other.errors, run.empty() ? "runs/small-3/config.yaml" : "runs/small-2/checkpoints/step-00000006"));
  }
  const Finished inspect = trainctl(folder, {"inspect", config});
  CHECK(inspect.code == 0);
  CHECK(contains(inspect.out, "checkpoint  runs/small-2/checkpoints/step-00000006"));
}

TEST_CASE("a checkpoint keeps the kernel choices of its own network") {
  const Folder folder;
  const std::string convolutions = folder.write(
      "wide.yaml", uneven_data + skip_model + train_section("batch_size: 20, max_steps: 1, optimizer: {name: sgd}"));
  const std::string dense = folder.write("small.yaml", small("epochs: 1"));
  REQUIRE(train(folder, convolutions).code == 0);
  REQUIRE(train(folder, dense).code == 0);
  const auto choices = [&](const char* run) {
    const Json found = Json::parse(trainctl(folder, {"inspect", run, "--json"}).out);
    return found.at("checkpoints").at(0).at("facts").at("kernel_choices").get<std::string>();
  };
  CHECK(contains(choices("runs/wide"), "conv2d"));
  CHECK_FALSE(contains(choices("runs/small"), "conv2d"));
  CHECK(contains(choices("runs/small"), "dense"));
  const Finished text = trainctl(folder, {"inspect", "runs/small"});
  CHECK(contains(text.out, "1 x 1 x 1"));
  CHECK_FALSE(contains(text.out, "0x"));
  CHECK_FALSE(contains(text.out, "threads="));
}

TEST_CASE("the doctor checks that a run could use its directory") {
  const Folder folder;
  const std::string config = folder.write("small.yaml", small("epochs: 1"));
  const auto doctor = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"doctor", "--ranks", "1", "--device", "cpu"};
    words.insert(words.end(), more.begin(), more.end());
    return trainctl(folder, words);
  };
  folder.write("file", "");
  fs::create_symlink("loop", folder / "loop");
  for (const char* path : {"/proc/run", "/proc", "file", "file/run", "loop"}) {
    const Finished report = doctor({"--run-dir", path});
    CAPTURE(path, tail(report.out));
    CHECK(report.code == 1);
    CHECK(contains(report.out, "cannot write"));
  }
  CHECK(doctor({config}).code == 0);
  CHECK_FALSE(fs::exists(folder / "runs"));
  REQUIRE(train(folder, config).code == 0);
  cut_end(folder / "runs/small");
  const Finished other = doctor({config, "--set", "train.batch_size=3"});
  CHECK(other.code == 1);
  CHECK(contains(other.out, "an unfinished run of another config"));
  CHECK(doctor({config}).code == 0);
}

TEST_CASE("the doctor reports a full disk") {
  const Folder folder;
  const std::string disk = folder / "disk";
  fs::create_directory(disk);
  if (std::system(format("mount -t tmpfs -o size=64k tmpfs '{}' 2>/dev/null", disk).c_str()) != 0) {
    WARN("skipped: mounting a small file system needs root");
    return;
  }
  std::ofstream(disk + "/much") << std::string(1 << 17, 'x');
  const Finished report = trainctl(folder, {"doctor", "--ranks", "1", "--device", "cpu", "--run-dir", "disk/run"});
  CHECK(report.code == 1);
  CHECK(contains(report.out, "No space left on device"));
  CHECK_FALSE(fs::exists(disk + "/run"));
  CHECK(std::system(format("umount -l '{}'", disk).c_str()) == 0);
}

}  // namespace
}  // namespace trainctl::test::directories_test
