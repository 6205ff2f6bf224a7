// Tests what a run saves: checkpoints as configured, and metrics.jsonl with its fields.
#include <algorithm>
#include <filesystem>
#include <set>

#include "core/base/format.h"
#include "test/catch.h"
#include "test/support/command.h"
#include "test/support/configs.h"

namespace trainctl::test::checkpoints_test {
namespace {

namespace fs = std::filesystem;

std::set<std::string> names(const std::string& folder) {
  std::set<std::string> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) found.insert(entry.path().filename());
  return found;
}

std::set<std::string> keys(const Json& json) {
  std::set<std::string> found;
  for (const auto& item : json.items()) found.insert(item.key());
  return found;
}

const std::string short_run =
    uneven_data + mlp_model + train_section("batch_size: 20, epochs: 4, optimizer: {name: adam, learning_rate: 1e-2}");

TEST_CASE("checkpoints are saved every n steps, and the newest k and the best are kept") {
  const Folder folder;
  const std::string config = folder.write("steps.yaml", short_run + "checkpoint: {every: 5 steps, keep: 2}\n");
  REQUIRE(trainctl(folder, {"run", config, "--ranks", "2", "--run-dir", "run"}).code == 0);
  const std::string best = fs::read_symlink(folder / "run/checkpoints/best").string();
  std::set<std::string> expected = {"step-00000020", "step-00000024", "last", "best", best};
  CHECK(names(folder / "run/checkpoints") == expected);
  CHECK(fs::read_symlink(folder / "run/checkpoints/last") == "step-00000024");
  CHECK(names(folder / "run/checkpoints/last") ==
        std::set<std::string>{"manifest.json", "state.safetensors", "weights.safetensors"});
}

TEST_CASE("checkpoints written in the background equal those of a run that waits for them") {
  const Folder folder;
  const std::string config = folder.write("background.yaml", short_run + "checkpoint: {every: 3 steps, keep: 100}\n");
  const std::vector<std::vector<std::string>> variants = {
      {"--ranks", "1"},
      {"--ranks", "2"},
      {"--ranks", "2", "--set", "strategy.shard=parameters"},
      {"--ranks", "2", "--set", "strategy.shard=optimizer", "--set", "train.moving_average=0.9"},
      {"--ranks", "2", "--set", "checkpoint.weights_only=true"}};
  for (const std::vector<std::string>& variant : variants) {
    const std::string background = folder / format("background-{}", &variant - variants.data());
    const std::string waits = folder / format("waits-{}", &variant - variants.data());
    for (const std::string& directory : {background, waits}) {
      std::vector<std::string> command = {
          "run", config, "--run-dir", directory, "--set", format("checkpoint.background={}", directory == background)};
      command.insert(command.end(), variant.begin(), variant.end());
      const Finished run = trainctl(folder, command);
      INFO(tail(run.errors));
      REQUIRE(run.code == 0);
    }
    const std::set<std::string> found = names(background + "/checkpoints");
    CHECK(found == names(waits + "/checkpoints"));
    CHECK(found.size() > 8);
    for (const std::string& checkpoint : found) {
      for (const std::string& file : names(background + "/checkpoints/" + checkpoint)) {
        if (!file.ends_with(".safetensors")) continue;
        CAPTURE(variant.back(), checkpoint, file);
        const std::string path = "/checkpoints/" + checkpoint + "/" + file;
        CHECK(read_file(background + path) == read_file(waits + path));
      }
    }
  }
}

TEST_CASE("the best checkpoint is that of the epoch with the best monitored metric") {
  const Folder folder;
  const std::string config =
      folder.write("best.yaml", short_run + "checkpoint: {every: 2 epochs, keep: 1, monitor: val_loss, mode: max}\n");
  REQUIRE(trainctl(folder, {"run", config, "--ranks", "2", "--run-dir", "run"}).code == 0);
  const std::vector<Json> epochs = events(folder / "run", "epoch");
  REQUIRE(epochs.size() == 4);
  const auto value = [](const Json& epoch) { return epoch.at("validation").at("loss").get<double>(); };
  const auto best =
      std::max_element(epochs.begin(), epochs.end(), [&](const Json& a, const Json& b) { return value(a) < value(b); });
  const Json end = events(folder / "run", "end").at(0);
  CHECK(end.at("best").at("value") == best->at("validation").at("loss"));
  CHECK(end.at("best").at("step") == best->at("step"));
  CHECK(end.at("best").at("monitor") == "val_loss");
  CHECK(fs::read_symlink(folder / "run/checkpoints/best")
            .string()
            .ends_with(std::to_string(best->at("step").get<int>())));
}

TEST_CASE("metrics.jsonl has the documented fields") {
  const Folder folder;
  const std::string config = folder.write("fields.yaml", short_run);
  REQUIRE(trainctl(folder, {"run", config, "--ranks", "2", "--run-dir", "run"}).code == 0);
  const std::map<std::string, std::set<std::string>> documented = {
      {"start", {"version", "seed", "ranks", "mesh", "hosts", "device", "parameters", "resumed_from"}},
      {"step", {"step", "epoch", "loss", "learning_rate", "samples_per_second", "gradient_norm"}},
      {"epoch", {"epoch", "step", "train", "validation", "seconds"}},
      {"checkpoint", {"step", "path", "seconds", "bytes"}},
      {"end", {"status", "step", "epoch", "best", "weights_sha256", "seconds"}}};
  std::set<std::string> seen;
  for (const Json& event : events(folder / "run")) {
    const std::set<std::string> found = keys(event), &wanted = documented.at(event.at("event"));
    CAPTURE(event.dump());
    CHECK(std::includes(found.begin(), found.end(), wanted.begin(), wanted.end()));
    CHECK(event.at("time").get<double>() > 1.6e9);
    seen.insert(event.at("event").get<std::string>());
  }
  CHECK(seen.size() == documented.size());
  const Json start = events(folder / "run", "start").at(0);
  CHECK(start.at("ranks") == 2);
  CHECK(start.at("parameters") == 192 * 48 + 48 + 48 * 24 + 24 + 24 * 5 + 5);
  for (const Json& checkpoint : events(folder / "run", "checkpoint")) {
    const std::string saved = folder / checkpoint.at("path").get<std::string>();
    if (fs::exists(saved)) {  // older checkpoints are deleted
      CHECK(checkpoint.at("bytes").get<std::int64_t>() == 3 * 4 * start.at("parameters").get<std::int64_t>());
    }
  }
}

TEST_CASE("eval reports the values of the run's last evaluation, on any number of ranks") {
  const Folder folder;
  const std::string config = folder.write("eval.yaml", short_run);
  REQUIRE(trainctl(folder, {"run", config, "--ranks", "2"}).code == 0);
  const Json expected = events(folder / "runs/eval", "epoch").back().at("validation");
  for (const char* ranks : {"1", "2", "3"}) {
    const Finished eval =
        trainctl(folder, {"eval", config, "--ranks", ranks, "--json", "--checkpoint", "runs/eval/checkpoints/last"});
    INFO(tail(eval.errors));
    REQUIRE(eval.code == 0);
    const Json found = Json::parse(eval.out);
    CHECK(found.at("loss").get<double>() == Approx(expected.at("loss").get<double>()).epsilon(1e-6));
    CHECK(found.at("accuracy") == expected.at("accuracy"));
  }
  const Finished none = trainctl(folder, {"eval", config, "--checkpoint", "nowhere"});
  CHECK(none.code == 3);
  CHECK(contains(none.errors, "nowhere"));
}

}  // namespace
}  // namespace trainctl::test::checkpoints_test
