// Tests checkpoints that a thread writes during training, on ranks of one process that hold random shards.
#include "parallel/checkpoint/staged_saver.h"

#include <atomic>
#include <set>
#include <thread>

#include "core/base/log.h"
#include "parallel/checkpoint/gathered_hash.h"
#include "test/catch.h"
#include "test/parallel/checkpoint/held_engine.h"
#include "test/parallel/checkpoint/memory_store.h"
#include "test/parallel/comm/on_threads.h"
#include "test/support/snapshots.h"

namespace trainctl::test::staged_saver_test {
namespace {

using namespace std::chrono_literals;

// A rank that saves to a store of all ranks.
struct Saving {
  Saving(Communicator& communicator, MemoryStore& store, unsigned seed, bool background = true, bool is_memory = false)
      : world(communicator),
        engine(seed, world.rank(), world.size()),
        plan(plan_snapshot(engine.weights(), engine.state(), world, stream)),
        saver(engine, plan, {.sink = &store, .store = world.rank() == 0 ? &store : nullptr, .is_memory = is_memory},
              background, world, stream) {}

  void stage(std::int64_t step) {
    engine.train_to(step);
    Snapshot snapshot;
    snapshot.step = step;
    snapshot.metadata["of"] = format("{}", step);
    saver.stage(std::move(snapshot));
  }
  void meet() {
    world.barrier(stream);
    stream.synchronize();
  }
  std::vector<std::int64_t> committed() {
    std::vector<std::int64_t> steps;
    while (const auto save = saver.ended()) {
      save->failure ? failures.push_back(save->failure->what()) : steps.push_back(save->step);
    }
    return steps;
  }

  Communicator& world;
  ImmediateStream stream;
  HeldEngine engine;
  SnapshotPlan plan;
  StagedSaver saver;
  std::vector<std::string> failures;  // of the saves that committed() has seen
};

std::vector<std::string> no_errors_on(int ranks) { return std::vector<std::string>(static_cast<std::size_t>(ranks)); }

// Describes a wrong value in a snapshot; empty if there is none.
std::string wrong_values(const KeptSnapshot& snapshot) {
  std::size_t elements = 0, expected = 0;
  for (const auto& [file, parts] : snapshot.files) {
    for (const KeptShard& part : parts) {
      std::size_t next = 0;
      for (std::int64_t i = 0; i < part.shape.count(); ++i) {
        if (!holds(part.extent, part.shape, i)) continue;
        const float expected_value = value_of(part.name, i) + static_cast<float>(snapshot.step);
        if (part.values.at(next++) != expected_value) return format("{} of step {}", part.name, snapshot.step);
      }
      elements += next;
    }
  }
  for (const ShapeOf& tensor : test_tensors()) expected += 2 * static_cast<std::size_t>(tensor.shape.count());
  return elements == expected ? "" : format("{} elements instead of {}", elements, expected);
}

void check(bool holds, const std::string& what) {
  if (!holds) throw Error(ErrorKind::internal, what);
}

// Releases a held store after a time.
struct Later {
  Later(MemoryStore& store, std::chrono::milliseconds time)
      : thread([&store, time] {
          std::this_thread::sleep_for(time);
          store.release();
        }) {}
  ~Later() { thread.join(); }
  std::thread thread;
};

}  // namespace

TEST_CASE("training continues during a save, which holds the values of its own step") {
  for (unsigned seed = 0; seed < 12; ++seed) {
    const int ranks = 1 + static_cast<int>(seed % 4);
    CAPTURE(seed, ranks);
    MemoryStore store;
    store.hold();
    const auto errors = on_threads(ranks, [&](Communicator& world) {
      Saving rank(world, store, seed);
      rank.stage(10);
      for (std::int64_t step = 11; step < 60; ++step) {  // each step has a collective
        rank.engine.train_to(step);
        rank.meet();
        check(rank.committed().empty(), "nothing is saved while the store is held");
      }
      check(!rank.saver.is_idle(), "the save has not ended");
      rank.meet();
      if (world.rank() == 0) store.release();
      rank.saver.wait();
      check(rank.committed() == std::vector<std::int64_t>{10}, "it is saved after the release");
      check(rank.committed().empty(), "it is returned once");
    });
    CHECK(errors == no_errors_on(ranks));
    REQUIRE(store.steps() == std::vector<std::int64_t>{10});
    CHECK(wrong_values(store.kept().front()) == "");
    CHECK(store.kept().front().metadata.at("of") == "10");
  }
}

TEST_CASE("without a thread a save is complete when stage() returns") {
  for (unsigned seed = 0; seed < 4; ++seed) {
    MemoryStore store;
    const auto errors = on_threads(3, [&](Communicator& world) {
      Saving rank(world, store, seed, false);
      rank.stage(10);
      check(rank.committed() == std::vector<std::int64_t>{10}, "it is saved");
      rank.stage(20);
      check(rank.saver.is_idle(), "no save is running");
      rank.saver.wait();
      check(rank.committed() == std::vector<std::int64_t>{20}, "it is saved");
    });
    CHECK(errors == no_errors_on(3));
    REQUIRE(store.steps() == std::vector<std::int64_t>{10, 20});
    for (const KeptSnapshot& snapshot : store.kept()) CHECK(wrong_values(snapshot) == "");
  }
}

TEST_CASE("a second save waits for the first and logs it, and a third one makes training wait") {
  const TemporaryFolder folder;
  const std::string lines = folder / "log.txt";
  log::add_file(lines, log::Level::info);
  MemoryStore store;
  store.hold();
  std::atomic<bool> released{false};
  const auto errors = on_threads(2, [&](Communicator& world) {
    Saving rank(world, store, 3);
    rank.stage(10);
    check(store.wait_for_writes(1), "the first save begins");
    std::this_thread::sleep_for(150ms);
    rank.stage(20);  // returns
    rank.engine.train_to(25);
    rank.meet();
    check(rank.committed().empty(), "neither is saved");
    if (world.rank() == 0) {
      const std::string logged = read_text(lines);
      check(contains(logged, "the checkpoint of step 20 waits: that of step 10 is still being written"), logged);
      check(!contains(logged, "training waits"), logged);
    }
    rank.meet();
    std::optional<std::thread> opener;
    if (world.rank() == 0) {
      opener.emplace([&] {
        std::this_thread::sleep_for(400ms);
        released = true;
        store.release();
      });
    }
    rank.stage(30);
    check(released, "the third waits for the first");
    if (opener) opener->join();
    rank.saver.wait();
    check(rank.committed() == std::vector<std::int64_t>{10, 20, 30}, "in their order");
  });
  CHECK(errors == no_errors_on(2));
  const std::string logged = read_text(lines);
  CHECK(contains(logged, "training waits until the checkpoint of step 10 is written"));
  CHECK_FALSE(contains(logged, "the checkpoint of step 30 waits"));  // within a minute of the first such message
  REQUIRE(store.steps() == std::vector<std::int64_t>{10, 20, 30});
  for (const KeptSnapshot& snapshot : store.kept()) CHECK(wrong_values(snapshot) == "");
}

TEST_CASE("the saver of copies in memory names the key of their interval") {
  const TemporaryFolder folder;
  const std::string lines = folder / "log.txt";
  log::add_file(lines, log::Level::info);
  MemoryStore store;
  store.hold();
  const auto errors = on_threads(1, [&](Communicator& world) {
    Saving rank(world, store, 3, true, true);
    rank.stage(10);
    std::this_thread::sleep_for(110ms);
    rank.stage(20);
    const Later later(store, 500ms);
    rank.stage(30);
    rank.saver.wait();
  });
  CHECK(errors == no_errors_on(1));
  const std::string logged = read_text(lines);
  CHECK(contains(logged, "the copy in memory of step 20 waits: that of step 10 is still being written"));
  CHECK(contains(logged, "training waits until the copy in memory of step 10 is written: checkpoint.memory_every is"));
  CHECK_FALSE(contains(logged, "checkpoint.every"));
}

TEST_CASE("a checkpoint that cannot be written is left out on all ranks, and later ones are saved") {
  for (unsigned seed = 0; seed < 8; ++seed) {
    const bool background = seed % 2 == 0;
    CAPTURE(seed, background);
    MemoryStore store;
    store.fail_at(20);
    if (background) store.hold();
    const auto errors = on_threads(3, [&](Communicator& world) {
      Saving rank(world, store, seed, background);
      rank.stage(10);
      rank.stage(20);
      rank.meet();
      if (world.rank() == 0) store.release();
      rank.stage(30);
      rank.meet();
      rank.saver.wait();
      check(rank.committed() == std::vector<std::int64_t>{10, 30}, "the others are saved");
      check(rank.failures.size() == 1, "the failure is returned once");
      rank.stage(40);
      rank.saver.wait();
      check(rank.committed() == std::vector<std::int64_t>{40}, "saving goes on");
      throw Error(ErrorKind::resource, rank.failures.front());
    });
    for (const std::string& error : errors) CHECK(contains(error, "step 20: cannot write: disk full"));
    CHECK(std::set<std::string>(errors.begin(), errors.end()).size() == 1);
    CHECK(store.steps() == std::vector<std::int64_t>{10, 30, 40});
    for (const KeptSnapshot& snapshot : store.kept()) CHECK(wrong_values(snapshot) == "");
  }
}

TEST_CASE("staged snapshots are written before the saver is destroyed") {
  MemoryStore store;
  store.hold();
  const Later later(store, 100ms);
  const auto errors = on_threads(2, [&](Communicator& world) {
    Saving rank(world, store, 5);
    rank.stage(10);
    rank.stage(20);
  });
  CHECK(errors == no_errors_on(2));
  CHECK(store.steps() == std::vector<std::int64_t>{10, 20});
}

TEST_CASE("a rank whose peers do not take part in a save reports that they did not arrive") {
  MemoryStore store;
  const auto errors = on_threads(
      2,
      [&](Communicator& world) {
        Saving rank(world, store, 5);
        if (world.rank() == 0) {
          rank.stage(10);
          rank.saver.wait();
        } else {
          std::this_thread::sleep_for(6s);
        }
      },
      1s);
  CHECK(contains(errors[0], "rank 1 did not arrive within 1 s"));
  CHECK(store.steps().empty());
}

TEST_CASE("the hash of gathered shards is that of the whole tensors") {
  std::vector<std::vector<float>> memory;
  std::vector<NamedTensor> whole;
  for (const ShapeOf& one : test_tensors()) {
    std::vector<float>& values = memory.emplace_back();
    for (std::int64_t i = 0; i < one.shape.count(); ++i) values.push_back(value_of(one.name, i) + 3);
    whole.push_back({one.name, one.shape, {values.data(), DType::float32, one.shape.count()}});
  }
  const std::string expected = weights_sha256(whole);
  for (unsigned seed = 0; seed < 8; ++seed) {
    const auto errors = on_threads(3, [&](Communicator& world) {
      ImmediateStream stream;
      HeldEngine engine(seed, world.rank(), world.size());
      engine.train_to(3);
      engine.download();
      const ShardPlan plan = plan_shards(engine.weights(), world, stream);
      const std::string hash = gathered_sha256(plan, engine.weights(), world, stream);
      check(hash == (world.rank() == 0 ? expected : ""), "rank 0 has the hash");
    });
    CHECK(errors == no_errors_on(3));
  }
}

}  // namespace trainctl::test::staged_saver_test
