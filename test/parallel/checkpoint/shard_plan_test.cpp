// Tests the shard plan of a checkpoint: every element is written once, by the lowest rank that holds it.
#include "parallel/checkpoint/shard_plan.h"

#include <map>
#include <set>

#include "core/base/error.h"
#include "test/catch.h"
#include "test/parallel/checkpoint/random_parts.h"

namespace trainctl::test::shard_plan_test {

TEST_CASE("every element is written once, by the lowest rank that holds it") {
  for (unsigned seed = 0; seed < 200; ++seed) {
    const int ranks = 1 + static_cast<int>(seed % 5);
    std::vector<std::vector<NamedTensor>> held;
    for (int rank = 0; rank < ranks; ++rank) held.push_back(RankTensors("", seed, rank, ranks).tensors());
    const ShardPlan plan(held);
    CAPTURE(seed, ranks);
    std::map<std::string, std::vector<int>> writer_of;  // of each element
    std::set<int> writers;
    for (int rank = 0; rank < ranks; ++rank) {
      for (const NamedTensor& part : plan.shards_of(rank)) {
        writers.insert(rank);
        std::vector<int>& writer = writer_of[part.name];
        writer.resize(static_cast<std::size_t>(part.shape.count()), -1);
        for (std::int64_t i = 0; i < part.shape.count(); ++i) {
          if (!holds(part.extent, part.shape, i)) continue;
          CHECK(std::exchange(writer[static_cast<std::size_t>(i)], rank) == -1);
        }
      }
    }
    CHECK(std::vector<int>(writers.begin(), writers.end()) == plan.writers());
    std::int64_t bytes = 0;
    for (const ShapeOf& tensor : test_tensors()) {
      const std::vector<int>& writer = writer_of.at(tensor.name);
      bytes += tensor.shape.count() * 4;
      for (std::int64_t i = 0; i < tensor.shape.count(); ++i) {
        int lowest = -1;
        for (int rank = ranks - 1; rank >= 0; --rank) {
          for (const NamedTensor& mine : held[static_cast<std::size_t>(rank)]) {
            if (mine.name == tensor.name && holds(mine.extent, mine.shape, i)) lowest = rank;
          }
        }
        CHECK(writer[static_cast<std::size_t>(i)] == lowest);
      }
    }
    CHECK(plan.bytes() == bytes);
  }
}

TEST_CASE("replicas are written by rank 0 alone") {
  const std::vector<NamedTensor> all = {{"a", {2, 3}, {}}, {"b", {4}, {}}};
  const std::vector<std::vector<NamedTensor>> ranks = {all, all, all};
  const ShardPlan plan(ranks);
  CHECK(plan.writers() == std::vector<int>{0});
  CHECK(plan.shards_of(0).size() == 2);
  CHECK(plan.shards_of(1).empty());
  CHECK(ShardPlan(std::vector<std::vector<NamedTensor>>(2)).writers() == std::vector<int>{0});
}

TEST_CASE("shards that leave a gap are refused with the name of the tensor") {
  const Shape shape{4, 6};
  const auto refusal = [&](const TensorExtent& first, const TensorExtent& second) {
    const std::vector<std::vector<NamedTensor>> ranks = {{{"fc/kernel", shape, {}, first}},
                                                         {{"fc/kernel", shape, {}, second}}};
    try {
      ShardPlan plan(ranks);
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::internal);
      return std::string(error.what());
    }
    return std::string();
  };
  const auto rows = [&](std::int64_t from, std::int64_t to) {
    return TensorExtent::box(shape, {from, 0}, {to - from, 6});
  };
  CHECK(refusal(rows(0, 2), rows(2, 4)).empty());
  CHECK(refusal(rows(0, 2), rows(3, 4)).find("element 12 of 'fc/kernel'") != std::string::npos);
  CHECK(refusal(rows(0, 3), rows(2, 4)).find("element 18 of 'fc/kernel'") != std::string::npos);
}

TEST_CASE("shards of replicas that cut a tensor at different elements are written once") {
  const Shape shape{4, 6};
  const auto held = [&](std::int64_t offset, std::int64_t count) {
    return std::vector<NamedTensor>{{"norm/scale", shape, {}, TensorExtent::range(shape, offset, count)}};
  };
  const std::vector<std::vector<NamedTensor>> ranks = {held(0, 12), held(0, 10), held(10, 14), held(12, 12)};
  const ShardPlan plan(ranks);
  CHECK(plan.writers() == std::vector<int>{0, 3});
  REQUIRE(plan.tensors().size() == 1);
  REQUIRE(plan.tensors()[0].shards.size() == 2);
  CHECK(plan.tensors()[0].shards[1].extent == TensorExtent::range(shape, 12, 12));
}

}  // namespace trainctl::test::shard_plan_test
