// Checkpoints that a thread writes while training goes on, on ranks of one process that hold random parts.
#include "parallel/checkpoint/staged_saver.h"

#include <atomic>
#include <set>
#include <thread>

#include "core/base/log.h"
#include "parallel/checkpoint/gathered_hash.h"
#include "test/catch.h"
#include "test/parallel/checkpoint/held_engine.h"
#include "test/parallel/checkpoint/memory_store.h"
#include "test/support/snapshots.h"
#include "test/parallel/comm/on_threads.h"

namespace trainctl::test::staged_saver_test {
namespace {

using namespace std::chrono_literals;

// A rank that saves to a store of all ranks.
struct Saving {
  Saving(Communicator& communicator, MemoryStore& store, unsigned seed, bool background = true)
      : world(communicator),
        engine(seed, world.rank(), world.size()),
        plan(plan_snapshot(engine.weights(), engine.state(), world, stream)),
        saver(engine, plan, {&store, world.rank() == 0 ? &store : nullptr}, background, world, stream) {}

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
    while (const auto saved = saver.committed()) steps.push_back(saved->step);
    return steps;
  }

  Communicator& world;
  ImmediateStream stream;
  HeldEngine engine;
  SnapshotPlan plan;
  StagedSaver saver;
};

std::vector<std::string> nobody_fails(int ranks) { return std::vector<std::string>(static_cast<std::size_t>(ranks)); }

// What is wrong with a snapshot of a step; "" if nothing is.
std::string wrong_values(const KeptSnapshot& snapshot) {
  std::size_t elements = 0, expected = 0;
  for (const auto& [file, parts] : snapshot.files) {
    for (const KeptShard& part : parts) {
      std::size_t next = 0;
      for (std::int64_t i = 0; i < part.shape.count(); ++i) {
        if (!holds(part.extent, part.shape, i)) continue;
        const float right = value_of(part.name, i) + static_cast<float>(snapshot.step);
        if (part.values.at(next++) != right) return format("{} of step {}", part.name, snapshot.step);
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

// Lets what is held go after a time.
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

TEST_CASE("training goes on during a save, which holds the values of its own step") {
  for (unsigned seed = 0; seed < 12; ++seed) {
    const int ranks = 1 + static_cast<int>(seed % 4);
    CAPTURE(seed, ranks);
    MemoryStore store;
    store.hold();
    const auto errors = on_threads(ranks, [&](Communicator& world) {
      Saving rank(world, store, seed);
      rank.stage(10);
      for (std::int64_t step = 11; step < 60; ++step) {  // each a step with its collective
        rank.engine.train_to(step);
        rank.meet();
        check(rank.committed().empty(), "nothing is saved while the sink holds it");
      }
      check(!rank.saver.is_idle(), "the save is under way");
      rank.meet();
      if (world.rank() == 0) store.release();
      rank.saver.wait();
      check(rank.committed() == std::vector<std::int64_t>{10}, "now it is saved");
      check(rank.committed().empty(), "it is told of once");
    });
    CHECK(errors == nobody_fails(ranks));
    REQUIRE(store.steps() == std::vector<std::int64_t>{10});
    CHECK(wrong_values(store.kept().front()) == "");
    CHECK(store.kept().front().metadata.at("of") == "10");
  }
}

TEST_CASE("without a thread a save is whole when stage returns") {
  for (unsigned seed = 0; seed < 4; ++seed) {
    MemoryStore store;
    const auto errors = on_threads(3, [&](Communicator& world) {
      Saving rank(world, store, seed, false);
      rank.stage(10);
      check(rank.committed() == std::vector<std::int64_t>{10}, "it is saved");
      rank.stage(20);
      check(rank.saver.is_idle(), "nothing is under way");
      rank.saver.wait();
      check(rank.committed() == std::vector<std::int64_t>{20}, "it is saved");
    });
    CHECK(errors == nobody_fails(3));
    REQUIRE(store.steps() == std::vector<std::int64_t>{10, 20});
    for (const KeptSnapshot& snapshot : store.kept()) CHECK(wrong_values(snapshot) == "");
  }
}

TEST_CASE("a save that comes due during another waits for it and says so, and a third keeps training waiting") {
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
      const std::string said = read_text(lines);
      check(contains(said, "the checkpoint of step 20 waits: that of step 10 is still being written"), said);
      check(!contains(said, "training waits"), said);
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
  CHECK(errors == nobody_fails(2));
  CHECK(contains(read_text(lines), "training waits until the checkpoint of step 10 is written"));
  REQUIRE(store.steps() == std::vector<std::int64_t>{10, 20, 30});
  for (const KeptSnapshot& snapshot : store.kept()) CHECK(wrong_values(snapshot) == "");
}

TEST_CASE("a save that fails on one rank is the error of all, and nothing is saved after it") {
  for (unsigned seed = 0; seed < 8; ++seed) {
    MemoryStore store;
    store.fail_at(20);
    store.hold();
    const auto errors = on_threads(3, [&](Communicator& world) {
      Saving rank(world, store, seed);
      rank.stage(10);
      rank.stage(20);
      rank.meet();
      if (world.rank() == 0) store.release();
      rank.stage(30);
      while (!rank.saver.has_failed()) std::this_thread::sleep_for(1ms);
      try {
        rank.committed();
      } catch (const Error&) {
        throw Error(ErrorKind::internal, "thrown before the ranks agreed on a step");
      }
      rank.meet();
      rank.stage(40);
      rank.saver.wait();
    });
    for (const std::string& error : errors) CHECK(contains(error, "step 20: cannot write: no room"));
    CHECK(std::set<std::string>(errors.begin(), errors.end()).size() == 1);
    CHECK(store.steps() == std::vector<std::int64_t>{10});
  }
}

TEST_CASE("what is staged is written before the saver ends") {
  MemoryStore store;
  store.hold();
  const Later later(store, 100ms);
  const auto errors = on_threads(2, [&](Communicator& world) {
    Saving rank(world, store, 5);
    rank.stage(10);
    rank.stage(20);
  });
  CHECK(errors == nobody_fails(2));
  CHECK(store.steps() == std::vector<std::int64_t>{10, 20});
}

TEST_CASE("a rank whose peers do not come to a save has their absence as its error") {
  MemoryStore store;
  const auto errors = on_threads(
      2,
      [&](Communicator& world) {
        Saving rank(world, store, 5);
        if (world.rank() == 0) {
          rank.stage(10);
          while (!rank.saver.has_failed()) std::this_thread::sleep_for(1ms);
          rank.committed();
        } else {
          std::this_thread::sleep_for(6s);
        }
      },
      1s);
  CHECK(contains(errors[0], "rank 1 did not arrive within 1 s"));
  CHECK(store.steps().empty());
}

TEST_CASE("the hash of gathered parts is that of the whole tensors") {
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
    CHECK(errors == nobody_fails(3));
  }
}

}  // namespace trainctl::test::staged_saver_test
