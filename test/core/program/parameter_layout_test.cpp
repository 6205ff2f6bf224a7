// Compares what each replica holds of a parameter layout with a loop over all elements.
#include "core/program/parameter_layout.h"

#include <algorithm>
#include <random>
#include <set>

#include "test/catch.h"

namespace trainctl::test::parameter_layout_test {
namespace {

// Parameters of random sizes in random buckets, some of them without decay, and two frozen parameters.
struct RandomParameters {
  std::vector<Tensor> tensors;
  ParameterLayout layout;
  std::vector<FlatBucket> buckets;

  explicit RandomParameters(std::mt19937& random) {
    const int trainable = 1 + static_cast<int>(random() % 12);
    for (int i = 0; i < trainable + 2; ++i) {
      const std::int64_t count = 1 + static_cast<std::int64_t>(random() % (random() % 4 == 0 ? 3000 : 60));
      const bool trains = i < trainable;
      tensors.push_back({.name = std::to_string(i), .type = {{count}, DType::float32}});
      layout.parameters.push_back({i, trains ? 100 + i : no_tensor, 0, count, random() % 2 == 0});
      if (!trains) continue;
      if (buckets.empty() || random() % 3 == 0) buckets.emplace_back();
      ++buckets.back().entries;
    }
    layout.buckets = {{.entries = trainable}};
    layout.states = {"m", "v"};
    layout.alignment = random() % 3 == 0 ? 64 : flat_alignment;
  }
  ParameterLayout of_replica(int replicas, int replica, const std::set<Quantity>& quantities) {
    ParameterLayout shared = layout;
    if (replicas > 1) shared.share(replicas, replica, quantities, buckets);
    shared.assign_offsets(tensors);
    return shared;
  }
};

constexpr Quantity quantities[] = {Quantity::states, Quantity::gradients, Quantity::parameters};

// The quantities that replicas share: those of `shard: optimizer`, `gradients` and `parameters`, and the states and
// parameters without the gradients.
const std::set<Quantity> shared_quantities[] = {{Quantity::states},
                                                {Quantity::states, Quantity::gradients},
                                                {Quantity::states, Quantity::gradients, Quantity::parameters},
                                                {Quantity::states, Quantity::parameters}};

TEST_CASE("replicas update each element of each parameter once, at its offset in all regions") {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    RandomParameters parameters(random);
    const int replicas = 1 + static_cast<int>(random() % 5);
    const std::set<Quantity>& shared = shared_quantities[random() % 4];
    INFO("round " << round << ", " << replicas << " replicas");
    std::vector<int> updates;  // by element of the layout
    for (int replica = 0; replica < replicas; ++replica) {
      const ParameterLayout layout = parameters.of_replica(replicas, replica, shared);
      updates.resize(static_cast<std::size_t>(layout.trainable_count));
      std::vector<int> in_region(static_cast<std::size_t>(layout.local_count(Quantity::states)));
      for (const LocalExtent& extent : layout.local_extents()) {
        const FlatBucket& bucket = layout.buckets[extent.bucket];
        REQUIRE(extent.entry->gradient != no_tensor);
        REQUIRE(extent.first + extent.count <= extent.entry->count);
        for (std::int64_t i = 0; i < extent.count; ++i) {
          const std::int64_t element = extent.entry->offset + extent.first + i;
          REQUIRE(element == layout.shard_offset(bucket) + extent.offset + i);
          ++updates[static_cast<std::size_t>(element)];
          ++in_region[static_cast<std::size_t>(layout.shard_offset(bucket, Quantity::states) + extent.offset + i)];
          for (const Quantity quantity : quantities) {
            const std::int64_t at = layout.shard_offset(bucket, quantity) + extent.offset + i;
            REQUIRE(at < layout.local_count(quantity));
            if (!layout.shares(quantity)) REQUIRE(at == element);
          }
        }
      }
      CHECK(std::ranges::max(in_region) <= 1);  // no two elements have the same offset
      for (const FlatEntry& frozen : layout.parameters) {
        if (frozen.gradient != no_tensor) continue;
        REQUIRE(layout.frozen_offset(frozen) >= layout.local_count(Quantity::parameters));
      }
    }
    const ParameterLayout layout = parameters.of_replica(replicas, 0, shared);
    std::vector<int> expected(updates.size(), 0);  // 0: a gap
    for (const FlatEntry& entry : layout.parameters) {
      if (entry.gradient != no_tensor) std::fill_n(expected.begin() + entry.offset, entry.count, 1);
      REQUIRE(entry.offset % layout.alignment == 0);
    }
    CHECK(updates == expected);
  }
}

TEST_CASE("the ranges of an update have each element's own decay") {
  std::mt19937 random(6);
  for (int round = 0; round < 200; ++round) {
    RandomParameters parameters(random);
    const int replicas = 1 + static_cast<int>(random() % 4);
    for (int replica = 0; replica < replicas; ++replica) {
      const ParameterLayout layout = parameters.of_replica(replicas, replica, {Quantity::states, Quantity::gradients});
      for (std::size_t b = 0; b < layout.buckets.size(); ++b) {
        const FlatBucket& bucket = layout.buckets[b];
        const bool by_parameter = replicas == 1 && random() % 2 == 0;
        std::vector<int> decays(static_cast<std::size_t>(layout.shard_count(bucket)), -1);
        const std::vector<UpdateRange> ranges = layout.update_ranges(bucket, by_parameter);
        for (const UpdateRange& range : ranges) {
          REQUIRE(range.offset + range.count <= layout.shard_count(bucket));
          for (std::int64_t i = 0; i < range.count; ++i) {
            REQUIRE(decays[static_cast<std::size_t>(range.offset + i)] == -1);
            decays[static_cast<std::size_t>(range.offset + i)] = range.decay;
          }
        }
        int extents = 0;
        for (const LocalExtent& extent : layout.local_extents()) {
          if (extent.bucket != b) continue;
          ++extents;
          for (std::int64_t i = 0; i < extent.count; ++i) {
            REQUIRE(decays[static_cast<std::size_t>(extent.offset + i)] == static_cast<int>(extent.entry->decay));
          }
        }
        if (by_parameter) CHECK(std::ssize(ranges) == extents);
      }
    }
  }
}

TEST_CASE("replicas hold only their shards of the quantities that they share, and all of the others") {
  std::mt19937 random(7);
  RandomParameters parameters(random);
  for (const std::set<Quantity>& shared : shared_quantities) {
    const ParameterLayout layout = parameters.of_replica(4, 1, shared);
    for (const Quantity quantity : quantities) {
      CHECK(layout.shares(quantity) == shared.contains(quantity));
      CHECK(layout.local_count(quantity) == layout.trainable_count / (shared.contains(quantity) ? 4 : 1));
    }
  }
  const ParameterLayout alone = parameters.of_replica(1, 0, shared_quantities[2]);
  CHECK_FALSE(alone.shares(Quantity::states));
  CHECK(alone.local_count(Quantity::parameters) == alone.trainable_count);
}

}  // namespace
}  // namespace trainctl::test::parameter_layout_test
