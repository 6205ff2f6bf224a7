// Tests that a run whose newest checkpoint is damaged goes on from the one before and ends with the same weights.
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "core/base/format.h"
#include "io/checkpoint/load.h"
#include "test/catch.h"
#include "test/support/command.h"
#include "test/support/configs.h"

namespace trainctl::test::damaged_checkpoint_test {
namespace {

namespace fs = std::filesystem;

// Two ranks with sharded optimizer state, so that a checkpoint has two files of state.
std::string config_of(int steps, int every) {
  return format(R"(
data: {{dataset: synthetic, samples: 160, shape: [12], classes: 4}}
model: {{layers: [{{dense: {{units: 64, activation: relu}}}}, {{dropout: 0.2}}, {{dense: 4}}]}}
checkpoint: {{every: {} steps, keep: 4}}
strategy: {{shard: optimizer}}
log: {{every: 1 step, tensorboard: false}}
)",
                every) +
         train_section(format("batch_size: 16, max_steps: {}, optimizer: {{name: adam, learning_rate: 1e-3}}, "
                              "deterministic: true",
                              steps));
}

std::vector<std::string> run_of(const std::string& config, const std::string& directory) {
  return {"run", config, "--ranks", "2", "--run-dir", directory, "--progress", "none"};
}

std::string weights_of(const std::string& directory) {
  const std::vector<Json> ends = events(directory, "end");
  return ends.empty() ? "" : ends.back().at("weights_sha256");
}

void flip_bit(const std::string& path, double place) {
  std::string text = read_file(path);
  const auto byte = static_cast<std::size_t>(place * static_cast<double>(text.size()));
  text.at(byte) = static_cast<char>(text[byte] ^ 8);
  std::ofstream(path) << text;
}

using Damage = std::function<void(const std::string& checkpoint)>;

struct NamedDamage {
  const char* name;
  Damage damage;
};

std::string state_of(const std::string& checkpoint) { return checkpoint + "/state-00002-of-00002.safetensors"; }

const std::vector<NamedDamage> damages = {
    {"flipped weight", [](const std::string& c) { flip_bit(c + "/weights.safetensors", 0.9); }},
    {"flipped header", [](const std::string& c) { flip_bit(c + "/weights.safetensors", 0.01); }},
    {"flipped state", [](const std::string& c) { flip_bit(state_of(c), 0.5); }},
    {"flipped manifest", [](const std::string& c) { flip_bit(c + "/manifest.json", 0.3); }},
    {"short weights", [](const std::string& c) { fs::resize_file(c + "/weights.safetensors", 1000); }},
    {"empty state", [](const std::string& c) { fs::resize_file(state_of(c), 0); }},
    {"short manifest",
     [](const std::string& c) { fs::resize_file(c + "/manifest.json", fs::file_size(c + "/manifest.json") / 2); }},
    {"empty manifest", [](const std::string& c) { fs::resize_file(c + "/manifest.json", 0); }},
    {"missing weights", [](const std::string& c) { fs::remove(c + "/weights.safetensors"); }},
    {"missing part of the state", [](const std::string& c) { fs::remove(state_of(c)); }},
    {"missing manifest", [](const std::string& c) { fs::remove(c + "/manifest.json"); }},
    {"empty folder",
     [](const std::string& c) {
       fs::remove_all(c);
       fs::create_directory(c);
     }},
    {"weights of an older checkpoint",
     [](const std::string& c) {
       fs::copy_file(fs::path(c).parent_path() / "step-00000020/weights.safetensors", c + "/weights.safetensors",
                     fs::copy_options::overwrite_existing);
     }},
};

}  // namespace

TEST_CASE("a run whose newest checkpoint is damaged in any way goes on from the one before") {
  const Folder folder;
  const std::string config = folder.write("damaged.yaml", config_of(40, 10));
  const std::string whole = folder / "whole", directory = folder / "run";
  REQUIRE(trainctl(folder, run_of(config, whole)).code == 0);
  REQUIRE(fs::exists(state_of(whole + "/checkpoints/step-00000040")));
  const std::string expected = weights_of(whole);
  for (const NamedDamage& one : damages) {
    CAPTURE(one.name);
    fs::remove_all(directory);
    fs::copy(whole, directory, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
    fs::remove(directory + "/metrics.jsonl");  // as if the run were unfinished
    one.damage(directory + "/checkpoints/step-00000040");
    const Finished rest = trainctl(folder, run_of(config, directory));
    INFO(tail(rest.errors));
    REQUIRE(rest.code == 0);
    CHECK(contains(rest.errors, "skipped a checkpoint: " + directory + "/checkpoints/step-00000040"));
    CHECK(contains(rest.errors, "goes on from " + directory + "/checkpoints/step-00000030 (step 30"));
    CHECK(weights_of(directory) == expected);
    for (const int step : {10, 20, 30, 40}) {
      CHECK_NOTHROW(load_checkpoint(format("{}/checkpoints/step-{:08}", directory, step)));
    }
  }
}

TEST_CASE("a run with several damaged checkpoints goes on from the newest whole one, and without any it says so") {
  const Folder folder;
  const std::string config = folder.write("damaged.yaml", config_of(40, 10));
  const std::string directory = folder / "run", checkpoints = directory + "/checkpoints/step-000000";
  REQUIRE(trainctl(folder, run_of(config, directory)).code == 0);
  const std::string expected = weights_of(directory);
  fs::remove(directory + "/metrics.jsonl");
  damages[3].damage(checkpoints + "40");
  damages[0].damage(checkpoints + "30");
  damages[9].damage(checkpoints + "20");
  const Finished rest = trainctl(folder, run_of(config, directory));
  INFO(tail(rest.errors));
  CHECK(rest.code == 0);
  CHECK(count(rest.errors, "skipped a checkpoint: ") == 3);
  CHECK(contains(rest.errors, "(step 10, "));
  CHECK(weights_of(directory) == expected);

  fs::remove(directory + "/metrics.jsonl");
  for (const char* step : {"10", "20", "30", "40"}) fs::remove(checkpoints + step + "/manifest.json");
  const Finished none = trainctl(folder, run_of(config, directory));
  CHECK(none.code == 3);
  CHECK(contains(none.errors, "none of its 4 checkpoints is whole"));
}

TEST_CASE(
    "a run that starts again after a killed rank passes over a damaged checkpoint, and ends with the same weights") {
  const Folder folder;
  const std::string config = folder.write("damaged.yaml", config_of(6000, 1000));
  const std::string whole = folder / "whole", directory = folder / "run";
  REQUIRE(trainctl(folder, run_of(config, whole)).code == 0);
  std::vector<std::string> arguments = run_of(config, directory);
  arguments.insert(arguments.end(), {"--max-restarts", "2"});
  Command run(folder, arguments);
  REQUIRE(comes_true([&] { return events(directory, "checkpoint").size() >= 2; }));
  const std::string newest = events(directory, "checkpoint").back().at("path");
  damages[0].damage(newest);
  kill(run.ranks().at(1), SIGKILL);
  CHECK(run.wait() == 0);
  INFO(tail(run.errors()));
  CHECK(contains(run.errors(), "skipped a checkpoint: " + newest));
  CHECK(events(directory, "restart").size() == 1);
  CHECK(weights_of(directory) == weights_of(whole));
}

}  // namespace trainctl::test::damaged_checkpoint_test
