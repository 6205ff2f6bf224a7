// Tests the checkpoint store: round trips, links, retention and damaged checkpoints.
#include "io/checkpoint/store.h"

#include <algorithm>
#include <set>

#include "core/base/error.h"
#include "core/base/log.h"
#include "io/checkpoint/load.h"
#include "test/catch.h"
#include "test/support/snapshots.h"

namespace trainctl::test::store_test {
namespace {

std::set<std::string> entries_in(const std::string& folder) {
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
  const std::string path = save(store, random.snapshot);
  CHECK(path == run / "checkpoints/step-00001234");
  CHECK(entries_in(path) == std::set<std::string>{"weights.safetensors", "state.safetensors", "manifest.json"});
  CHECK(entries_in(run / "checkpoints") == std::set<std::string>{"step-00001234", "last"});

  const LoadedCheckpoint loaded = load_checkpoint(run / "checkpoints/last");
  CHECK(same(loaded.snapshot.weights, random.snapshot.weights));
  CHECK(same(loaded.snapshot.state, random.snapshot.state));
  CHECK(loaded.snapshot.step == 1234);
  CHECK(loaded.snapshot.position == random.snapshot.position);
  CHECK(loaded.snapshot.mesh == random.snapshot.mesh);
  CHECK(loaded.snapshot.metadata == random.snapshot.metadata);
  CHECK(loaded.snapshot.metrics == random.snapshot.metrics);
  CHECK_FALSE(loaded.snapshot.best);

  const Snapshot later = with_best(random.snapshot, 1234);
  const std::optional<BestResult> best = load_checkpoint(save(store, later)).snapshot.best;
  REQUIRE(best);
  CHECK(best->monitor == "val_loss");
  CHECK_FALSE(best->maximum);
  CHECK(best->value == later.best->value);  // to the last bit
  CHECK(best->step == 1234);
}

TEST_CASE("the manifest contains format, step, position, mesh and hashes") {
  const TemporaryFolder run;
  const RandomSnapshot random(6, 12);
  const std::string path = save(CheckpointStore(run.path, {}), random.snapshot);
  const auto manifest = nlohmann::json::parse(read_text(path + "/manifest.json"));
  CHECK(manifest["format_version"] == 3);
  CHECK(manifest["step"] == 12);
  CHECK(manifest["position"]["seed"] == random.snapshot.position.seed);
  CHECK(manifest["position"]["epoch"] == random.snapshot.position.epoch);
  CHECK(manifest["position"]["offset"] == random.snapshot.position.offset);
  CHECK(manifest["mesh"] == std::vector<int>{2, 1, 1});
  for (const char* name : {"weights.safetensors", "state.safetensors"}) {
    const std::string text = read_text(path + "/" + name);
    CHECK(manifest["files"][name]["sha256"] == sha256(text.data(), text.size()));
    CHECK(manifest["files"][name]["bytes"] == text.size());
  }
  CHECK(manifest["files"]["weights.safetensors"]["tensors"]["conv/kernel"]["shape"] == std::vector<int>{3, 3, 2, 5});
}

TEST_CASE("the option keep retains the newest checkpoints and the best one") {
  const TemporaryFolder run;
  CheckpointStore store(run.path, {.keep = 2});
  for (const int number : {10, 20, 30, 40, 50}) {
    const RandomSnapshot random(1, number);
    save(store, number < 20 ? random.snapshot : with_best(random.snapshot, 20));
  }
  CHECK(entries_in(run / "checkpoints") == std::set<std::string>{step(20), step(40), step(50), "last", "best"});
  CHECK(fs::read_symlink(run / "checkpoints/last") == step(50));
  CHECK(fs::read_symlink(run / "checkpoints/best") == step(20));
  save(store, with_best(RandomSnapshot(1, 60).snapshot, 60));
  CHECK(entries_in(run / "checkpoints") == std::set<std::string>{step(50), step(60), "last", "best"});
  CHECK(fs::read_symlink(run / "checkpoints/best") == step(60));
}

TEST_CASE("the next writer restores missing and wrong links from the manifests") {
  const TemporaryFolder run;
  {
    CheckpointStore store(run.path, {.keep = 2});
    for (const int number : {10, 20, 30, 40}) {
      const RandomSnapshot random(1, number);
      save(store, with_best(random.snapshot, number == 30 ? 20 : number));
    }
  }
  const std::string folder = run / "checkpoints/";
  const auto check_restored = [&] {
    const CheckpointStore again(run.path, {.keep = 2}, folder + step(40));
    CHECK(fs::read_symlink(folder + "last") == step(40));
    CHECK(fs::read_symlink(folder + "best") == step(40));
    CHECK(entries_in(folder) == std::set<std::string>{step(30), step(40), "last", "best"});
  };
  for (const char* link : {"last", "best"}) {
    fs::remove(folder + link);
    check_restored();
    fs::remove(folder + link);
    fs::create_symlink(step(30), folder + link);
    check_restored();
    fs::remove(folder + link);
    fs::create_symlink("step-00000099", folder + link);
    check_restored();
  }
  // As if the run was killed before it removed step 20.
  fs::copy(folder + step(30), folder + step(20), fs::copy_options::recursive);
  check_restored();
  fs::remove_all(folder + step(40));  // the newest checkpoint left names step 20 as the best, which does not exist
  const CheckpointStore again(run.path, {.keep = 2});
  CHECK(entries_in(folder) == std::set<std::string>{step(30), "last"});
}

TEST_CASE("weights_only leaves out the state") {
  const TemporaryFolder run;
  const RandomSnapshot random(8, 3);
  const std::string path = save(CheckpointStore(run.path, {}), random.snapshot, true);
  CHECK(entries_in(path) == std::set<std::string>{"weights.safetensors", "manifest.json"});
  const LoadedCheckpoint loaded = load_checkpoint(path);
  CHECK(same(loaded.snapshot.weights, random.snapshot.weights));
  CHECK(loaded.snapshot.state.empty());
}

TEST_CASE("saving a step again replaces its checkpoint") {
  const TemporaryFolder run;
  CheckpointStore store(run.path, {});
  save(store, RandomSnapshot(1, 5).snapshot);
  const RandomSnapshot second(2, 5);
  const std::string path = save(store, second.snapshot);
  CHECK(same(load_checkpoint(path).snapshot.weights, second.snapshot.weights));
  CHECK(entries_in(run / "checkpoints") == std::set<std::string>{step(5), "last"});
}

TEST_CASE("a flipped bit anywhere in a checkpoint is found") {
  const TemporaryFolder run;
  const std::string path = save(CheckpointStore(run.path, {}), RandomSnapshot(9, 4).snapshot);
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

TEST_CASE("the error for a damaged tensor names it") {
  const TemporaryFolder run;
  const std::string path = save(CheckpointStore(run.path, {}), RandomSnapshot(9, 4).snapshot);
  const std::string file = path + "/weights.safetensors";
  flip_bit(file, read_text(file).size() - 10, 3);
  const std::string text = failure_of([&] { load_checkpoint(path); });
  CHECK(contains(text, file));
  CHECK(contains(text, "'dense/kernel'"));
}

TEST_CASE("resume auto loads the newest whole checkpoint") {
  const TemporaryFolder run;
  CHECK_FALSE(load_newest_checkpoint(run.path));
  CHECK_FALSE(newest_checkpoint_by_manifest(run.path));
  CheckpointStore store(run.path, {});
  for (const int number : {10, 20, 30}) save(store, RandomSnapshot(1, number).snapshot);
  CHECK(load_newest_checkpoint(run.path)->snapshot.step == 30);
  CHECK(load_newest_checkpoint(run.path, 29)->snapshot.step == 30);
  CHECK_FALSE(load_newest_checkpoint(run.path, 30));
  flip_bit(run / "checkpoints/step-00000030/state.safetensors", 400, 1);
  CHECK(load_newest_checkpoint(run.path)->snapshot.step == 20);
  CHECK(contains(failure_of([&] { load_newest_checkpoint(run.path, 20); }), "its only checkpoint is not whole"));
  CHECK(newest_checkpoint_by_manifest(run.path)->step == 30);  // its tensors are not read
  fs::remove(run / "checkpoints/step-00000020/manifest.json");
  fs::rename(run / "checkpoints/step-00000030/manifest.json", run / "manifest");
  CHECK(newest_checkpoint_by_manifest(run.path)->step == 10);
  fs::rename(run / "manifest", run / "checkpoints/step-00000030/manifest.json");
  CHECK(load_newest_checkpoint(run.path)->snapshot.step == 10);

  // The run goes on from 10: its next checkpoint is the newest although 20 and 30 are still there.
  CheckpointStore again(run.path, {});
  save(again, RandomSnapshot(2, 15).snapshot);
  CHECK(load_newest_checkpoint(run.path)->snapshot.step == 15);
  CHECK(entries_in(run / "checkpoints") == std::set<std::string>{step(10), step(15), step(30), "last"});

  for (const int number : {10, 15}) flip_bit(run / ("checkpoints/" + step(number) + "/weights.safetensors"), 300, 0);
  ErrorKind kind{};
  CHECK(contains(failure_of([&] { load_newest_checkpoint(run.path); }, &kind), "none of its 3 checkpoints is whole"));
  CHECK(kind == ErrorKind::data);
}

TEST_CASE("a checkpoint in a folder with another name is that of its manifest") {
  const TemporaryFolder run;
  const std::string folder = run / "checkpoints/";
  {
    CheckpointStore store(run.path, {.keep = 9});
    for (const int number : {5, 8}) save(store, RandomSnapshot(1, number).snapshot);
  }
  log::add_file(run / "log.txt", log::Level::warning);
  const auto warnings_of = [&run](const std::string& path, std::int64_t wanted) {
    const std::size_t before = read_text(run / "log.txt").size();
    CHECK(load_named_checkpoint(path).snapshot.step == wanted);
    return read_text(run / "log.txt").substr(before);
  };
  fs::copy(folder + step(5), folder + "foo", fs::copy_options::recursive);
  CHECK(warnings_of(folder + "foo", 5).empty());  // the name says nothing about a step
  CHECK(warnings_of(folder + step(5) + "/", 5).empty());
  fs::copy(folder + step(5), folder + step(77), fs::copy_options::recursive);
  const std::string warning =
      "step-00000077: the name of the folder says step 77, but its manifest says step 5, which counts: rename it";
  CHECK(contains(warnings_of(folder + step(77), 5), warning));
  CHECK(warnings_of(folder + "last", 8).empty());

  // In the run directory it counts as a checkpoint of step 5, after the one that is named so.
  CHECK(warnings_of(run.path, 8).empty());
  std::vector<std::string> paths;
  for (const CheckpointFolder& found : newest_checkpoints_first(run.path)) {
    CHECK(found.step == (paths.empty() ? 8 : 5));
    paths.push_back(found.path);
  }
  CHECK(paths == std::vector{folder + step(8), folder + step(5), folder + step(77)});
  CHECK_FALSE(load_newest_checkpoint(run.path, 8));

  // The newest checkpoint under the name of a later step stays the newest until the run saves another one.
  fs::remove_all(folder + step(77));
  fs::rename(folder + step(8), folder + step(99));
  CHECK(contains(warnings_of(run.path, 8), "says step 99, but its manifest says step 8"));
  CHECK(newest_checkpoint_by_manifest(run.path)->step == 8);
  CheckpointStore again(run.path, {.keep = 9}, folder + step(99));
  save(again, RandomSnapshot(2, 12).snapshot);
  CHECK(load_newest_checkpoint(run.path)->snapshot.step == 12);
}

TEST_CASE("a run that goes on from an older checkpoint keeps it until a newer one is whole") {
  const TemporaryFolder run;
  {
    CheckpointStore store(run.path, {.keep = 3});
    for (const int number : {10, 20, 30}) save(store, with_best(RandomSnapshot(1, number).snapshot, number));
  }
  const std::string folder = run / "checkpoints/";
  flip_bit(folder + step(30) + "/weights.safetensors", 300, 0);
  CHECK(load_newest_checkpoint(run.path)->path == folder + step(20));
  CheckpointStore store(run.path, {.keep = 1}, folder + step(20));
  CHECK(entries_in(folder) == std::set<std::string>{step(20), step(30), "last", "best"});
  CHECK(fs::read_symlink(folder + "last") == step(20));
  CHECK(fs::read_symlink(folder + "best") == step(20));
  save(store, with_best(RandomSnapshot(2, 25).snapshot, 20));
  CHECK(entries_in(folder) == std::set<std::string>{step(20), step(25), "last", "best"});
  CHECK(load_newest_checkpoint(run.path)->snapshot.step == 25);
}

TEST_CASE("no old checkpoint is removed before a run has verified a newer one") {
  const TemporaryFolder run;
  {
    CheckpointStore store(run.path, {.keep = 3});
    for (const int number : {10, 20, 30}) save(store, RandomSnapshot(1, number).snapshot);
  }
  const CheckpointStore again(run.path, {.keep = 1});
  CHECK(entries_in(run / "checkpoints") == std::set<std::string>{step(10), step(20), step(30), "last"});
}

TEST_CASE("the link to the best checkpoint stays at the one before if the best one was not written") {
  const TemporaryFolder run;
  CheckpointStore store(run.path, {.keep = 1});
  save(store, with_best(RandomSnapshot(1, 10).snapshot, 10));
  save(store, with_best(RandomSnapshot(1, 30).snapshot, 20));  // the checkpoint of step 20 was left out
  CHECK(entries_in(run / "checkpoints") == std::set<std::string>{step(10), step(30), "last", "best"});
  CHECK(fs::read_symlink(run / "checkpoints/best") == step(10));
  save(store, with_best(RandomSnapshot(1, 40).snapshot, 40));
  CHECK(entries_in(run / "checkpoints") == std::set<std::string>{step(40), "last", "best"});
}

}  // namespace trainctl::test::store_test
