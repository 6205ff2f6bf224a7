// The store: round trips, links, what is kept, what is refused, and what a damaged checkpoint does.
#include "io/checkpoint/store.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "core/base/error.h"
#include "core/base/hash.h"
#include "core/base/json.h"
#include "io/checkpoint/load.h"
#include "test/catch.h"
#include "test/checkpoint/support.h"

using namespace trainctl;
using namespace trainctl::test;

namespace {

std::set<std::string> names_in(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename().string());
  return names;
}

std::string step(std::int64_t number) {
  const std::string digits = std::to_string(number);
  return "step-" + std::string(8 - digits.size(), '0') + digits;
}

void flip_bit(const std::string& path, std::size_t byte, int bit) {
  std::string text = read_text(path);
  text.at(byte) = static_cast<char>(text[byte] ^ (1 << bit));
  write_text(path, text);
}

}  // namespace

TEST_CASE("a saved checkpoint is loaded bit for bit") {
  const TemporaryFolder run;
  const RandomSnapshot random(5, 1234);
  CheckpointStore store(run.path, {});
  const std::string path = store.save(random.snapshot, false);
  CHECK(path == run / "checkpoints/step-00001234");
  CHECK(names_in(path) == std::set<std::string>{"weights.safetensors", "state.safetensors", "manifest.json"});
  CHECK(names_in(run / "checkpoints") == std::set<std::string>{"step-00001234", "last"});

  const LoadedCheckpoint loaded = load_checkpoint(run / "checkpoints/last");
  CHECK(same(loaded.snapshot.weights, random.snapshot.weights));
  CHECK(same(loaded.snapshot.state, random.snapshot.state));
  CHECK(loaded.snapshot.step == 1234);
  CHECK(loaded.snapshot.position == random.snapshot.position);
  CHECK(loaded.snapshot.mesh == random.snapshot.mesh);
  CHECK(loaded.snapshot.facts == random.snapshot.facts);
  CHECK(loaded.snapshot.metrics == random.snapshot.metrics);
}

TEST_CASE("the manifest states format, step, position, mesh and hashes") {
  const TemporaryFolder run;
  const RandomSnapshot random(6, 12);
  const std::string path = CheckpointStore(run.path, {}).save(random.snapshot, false);
  const auto manifest = nlohmann::json::parse(read_text(path + "/manifest.json"));
  CHECK(manifest["format_version"] == 1);
  CHECK(manifest["step"] == 12);
  CHECK(manifest["position"]["seed"] == random.snapshot.position.seed);
  CHECK(manifest["position"]["epoch"] == random.snapshot.position.epoch);
  CHECK(manifest["position"]["offset"] == random.snapshot.position.offset);
  CHECK(manifest["mesh"] == std::vector<int>{2, 1, 1});
  CHECK(manifest["weights_sha256"] == weights_sha256(random.snapshot.weights));
  for (const char* name : {"weights.safetensors", "state.safetensors"}) {
    const std::string text = read_text(path + "/" + name);
    CHECK(manifest["files"][name]["sha256"] == sha256(text.data(), text.size()));
    CHECK(manifest["files"][name]["bytes"] == text.size());
  }
  CHECK(manifest["files"]["weights.safetensors"]["tensors"]["conv/kernel"]["shape"] == std::vector<int>{3, 3, 2, 5});
}

TEST_CASE("keep leaves the newest and the best") {
  const TemporaryFolder run;
  CheckpointStore store(run.path, {.keep = 2});
  for (const int number : {10, 20, 30, 40, 50}) store.save(RandomSnapshot(1, number).snapshot, number == 20);
  CHECK(names_in(run / "checkpoints") == std::set<std::string>{step(20), step(40), step(50), "last", "best"});
  CHECK(fs::read_symlink(run / "checkpoints/last") == step(50));
  CHECK(fs::read_symlink(run / "checkpoints/best") == step(20));
  store.save(RandomSnapshot(1, 60).snapshot, true);
  CHECK(names_in(run / "checkpoints") == std::set<std::string>{step(50), step(60), "last", "best"});
  CHECK(fs::read_symlink(run / "checkpoints/best") == step(60));
}

TEST_CASE("weights_only leaves out the state") {
  const TemporaryFolder run;
  const RandomSnapshot random(8, 3);
  const std::string path = CheckpointStore(run.path, {.weights_only = true}).save(random.snapshot, false);
  CHECK(names_in(path) == std::set<std::string>{"weights.safetensors", "manifest.json"});
  const LoadedCheckpoint loaded = load_checkpoint(path);
  CHECK(same(loaded.snapshot.weights, random.snapshot.weights));
  CHECK(loaded.snapshot.state.empty());
}

TEST_CASE("saving a step again replaces it") {
  const TemporaryFolder run;
  CheckpointStore store(run.path, {});
  store.save(RandomSnapshot(1, 5).snapshot, false);
  const RandomSnapshot second(2, 5);
  const std::string path = store.save(second.snapshot, false);
  CHECK(same(load_checkpoint(path).snapshot.weights, second.snapshot.weights));
  CHECK(names_in(run / "checkpoints") == std::set<std::string>{step(5), "last"});
}

TEST_CASE("a flipped bit anywhere in a checkpoint is found") {
  const TemporaryFolder run;
  const std::string path = CheckpointStore(run.path, {}).save(RandomSnapshot(9, 4).snapshot, false);
  REQUIRE_NOTHROW(load_checkpoint(path));
  std::mt19937 random(11);
  for (const char* name : {"weights.safetensors", "state.safetensors", "manifest.json"}) {
    const std::string file = path + "/" + name;
    const std::string whole = read_text(file);
    std::set<std::size_t> bytes{0, 1, 7, 8, 9, whole.size() - 1, whole.size() - 2, whole.size() - 20};
    while (bytes.size() < 150) bytes.insert(random() % whole.size());
    for (const std::size_t byte : bytes) {
      INFO(file << " byte " << byte);
      flip_bit(file, byte, static_cast<int>(random() % 8));
      ErrorKind kind{};
      CHECK(failure_of([&] { load_checkpoint(path); }, &kind) != "nothing was thrown");
      CHECK(kind == ErrorKind::data);
      write_text(file, whole);
    }
    for (const std::size_t length : {std::size_t{0}, std::size_t{5}, whole.size() / 2, whole.size() - 1}) {
      write_text(file, whole.substr(0, length));
      CHECK_THROWS_AS(load_checkpoint(path), Error);
    }
    fs::remove(file);
    CHECK_THROWS_AS(load_checkpoint(path), Error);
    write_text(file, whole);
  }
  CHECK_NOTHROW(load_checkpoint(path));
}

TEST_CASE("a damaged tensor is named") {
  const TemporaryFolder run;
  const std::string path = CheckpointStore(run.path, {}).save(RandomSnapshot(9, 4).snapshot, false);
  const std::string file = path + "/weights.safetensors";
  flip_bit(file, read_text(file).size() - 10, 3);
  const std::string text = failure_of([&] { load_checkpoint(path); });
  CHECK(contains(text, file));
  CHECK(contains(text, "'dense/kernel'"));
}

TEST_CASE("auto takes the newest whole checkpoint") {
  const TemporaryFolder run;
  CHECK_FALSE(load_newest_checkpoint(run.path));
  CheckpointStore store(run.path, {});
  for (const int number : {10, 20, 30}) store.save(RandomSnapshot(1, number).snapshot, false);
  CHECK(load_newest_checkpoint(run.path)->snapshot.step == 30);
  flip_bit(run / "checkpoints/step-00000030/state.safetensors", 400, 1);
  CHECK(load_newest_checkpoint(run.path)->snapshot.step == 20);
  fs::remove(run / "checkpoints/step-00000020/manifest.json");
  CHECK(load_newest_checkpoint(run.path)->snapshot.step == 10);

  // The run goes on from 10: its next checkpoint is the newest although 20 and 30 are still there.
  CheckpointStore again(run.path, {});
  again.save(RandomSnapshot(2, 15).snapshot, false);
  CHECK(load_newest_checkpoint(run.path)->snapshot.step == 15);
  CHECK(names_in(run / "checkpoints") == std::set<std::string>{step(10), step(15), step(30), "last"});

  for (const int number : {10, 15}) flip_bit(run / ("checkpoints/" + step(number) + "/weights.safetensors"), 300, 0);
  ErrorKind kind{};
  CHECK(contains(failure_of([&] { load_newest_checkpoint(run.path); }, &kind), "none of its 3 checkpoints is whole"));
  CHECK(kind == ErrorKind::data);
}

TEST_CASE("metrics that are not finite survive in a manifest, which stays JSON") {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  Manifest manifest;
  manifest.metrics = {{"a", std::nan("")}, {"b", infinity}, {"c", -infinity}, {"d", 0.25}};
  const std::string text = to_text(manifest);
  CHECK(Json::parse(text)["metrics"].dump() == R"({"a":"NaN","b":"Infinity","c":"-Infinity","d":0.25})");
  const std::map<std::string, double> read = parse_manifest(text, "here").metrics;
  CHECK(std::isnan(read.at("a")));
  CHECK(read.at("b") == infinity);
  CHECK(read.at("c") == -infinity);
  CHECK(read.at("d") == 0.25);
}

TEST_CASE("a manifest of a newer format is refused by name") {
  Manifest manifest;
  std::string text = to_text(manifest);
  CHECK(parse_manifest(text, "m").step == 0);
  const std::size_t at = text.find("\"format_version\": 1");
  text.replace(at, 19, "\"format_version\": 2");
  const std::size_t end = text.rfind(",\n  \"manifest_sha256\"");
  text = text.substr(0, end) + ",\n  \"manifest_sha256\": \"" + sha256(text.data(), end) + "\"\n}\n";
  CHECK(contains(failure_of([&] { parse_manifest(text, "m"); }), "format version 2"));
}
