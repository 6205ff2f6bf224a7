// Tests the arithmetic of shares of a batch by the speeds of replicas.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "core/exec/interfaces/batch_source.h"
#include "run/planning/shares.h"
#include "test/catch.h"

namespace trainctl::shares_test {

TEST_CASE("shares of random speeds are consecutive, add up to the batch, and are in proportion") {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> uniform(0.01, 10);
  for (int trial = 0; trial < 500; ++trial) {
    const int replicas = 1 + static_cast<int>(random() % 9), parts = 1 + static_cast<int>(random() % 3);
    std::vector<double> speeds;
    for (int r = 0; r < replicas; ++r) speeds.push_back(trial % 2 == 0 ? uniform(random) : 1.0 + random() % 5);
    const double all = std::accumulate(speeds.begin(), speeds.end(), 0.0);
    const Mesh mesh{.data = replicas, .pipeline = parts};
    const std::int64_t full = 1 + static_cast<std::int64_t>(random() % 500);
    for (const std::int64_t batch : {full, full / 3, std::int64_t{1}, std::int64_t{0}}) {
      std::int64_t next = 0;
      for (int r = 0; r < replicas; ++r) {
        for (int p = 0; p < parts; ++p) {  // all ranks of a replica have its share
          const Share share = share_of(batch, {MeshRank(mesh, mesh.rank({r, p, 0})), speeds});
          CHECK(share.first == next);
          CHECK(share.count >= 0);
          const double exact = static_cast<double>(batch) * speeds[static_cast<std::size_t>(r)] / all;
          CHECK(std::abs(static_cast<double>(share.count) - exact) < 1 + 1e-9);
          CHECK(share.count <= largest_share(full, {MeshRank(mesh, 0), speeds}));
          if (p + 1 == parts) next = share.first + share.count;
        }
      }
      CHECK(next == batch);
    }
  }
}

TEST_CASE("equal speeds lead to equal shares, and shares that are whole numbers are exact") {
  for (const std::int64_t batch : {64, 7, 1}) {
    for (int r = 0; r < 4; ++r) {
      const MeshRank rank = replica(r, 4);
      CHECK(share_of(batch, {rank, {2, 2, 2, 2}}).count == share_of(batch, rank).count);
      CHECK(share_of(batch, {rank, {2, 2, 2, 2}}).first == share_of(batch, rank).first);
    }
  }
  CHECK(share_of(64, {replica(0, 2), {3, 1}}).count == 48);
  CHECK(share_of(64, {replica(1, 3), {21, 22, 21}}).first == 21);
  CHECK(share_of(64, {replica(1, 3), {21, 22, 21}}).count == 22);
}

TEST_CASE("parts by speed are multiples of the unit, add up to the whole, and leave no replica out") {
  std::mt19937 random(8);
  std::uniform_real_distribution<double> uniform(0.05, 4);
  for (int trial = 0; trial < 500; ++trial) {
    const std::int64_t unit = 1 + static_cast<std::int64_t>(random() % 5);
    const std::int64_t units = 1 + static_cast<std::int64_t>(random() % 60);
    std::vector<double> speeds(1 + random() % 8);
    for (double& speed : speeds) speed = uniform(random);
    const std::vector<std::int64_t> parts = shares_by_speed(units * unit, unit, speeds);
    REQUIRE(parts.size() == speeds.size());
    CHECK(std::accumulate(parts.begin(), parts.end(), std::int64_t{0}) == units * unit);
    const double all = std::accumulate(speeds.begin(), speeds.end(), 0.0);
    bool is_large = true;  // every replica is due a unit
    for (const double speed : speeds) is_large = is_large && static_cast<double>(units) * speed / all >= 1;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      CHECK(parts[i] % unit == 0);
      CHECK(parts[i] >= (units >= std::ssize(speeds) ? unit : 0));
      const double exact = static_cast<double>(units * unit) * speeds[i] / all;
      if (is_large) CHECK(std::abs(static_cast<double>(parts[i]) - exact) < static_cast<double>(unit) + 1e-6);
      for (std::size_t j = 0; j < parts.size() && is_large; ++j) {
        if (speeds[i] > speeds[j]) CHECK(parts[i] >= parts[j]);
      }
    }
  }
  CHECK(shares_by_speed(64, 1, {2, 1}) == std::vector<std::int64_t>{43, 21});
  CHECK(shares_by_speed(64, 4, {2, 1}) == std::vector<std::int64_t>{44, 20});
}

TEST_CASE("consecutive and interleaved logical shards make up the batch, each on one replica") {
  for (const bool interleaved : {false, true}) {
    for (int replicas = 1; replicas <= 8; ++replicas) {
      const LogicalShards shards{8, 3, interleaved};
      for (const std::int64_t batch : {24, 23, 16, 7, 3, 1}) {
        CAPTURE(interleaved, replicas, batch);
        std::vector<int> taken(static_cast<std::size_t>(batch), 0);
        for (int r = 0; r < replicas; ++r) {
          const BatchDivision division{replica(r, replicas), {}, shards};
          const Share share = share_of(batch, division);
          CHECK(share.count <= largest_share(24, division));
          for (std::int64_t i = 0; i < share.count; ++i) {
            REQUIRE(share.at(i) < batch);
            ++taken[static_cast<std::size_t>(share.at(i))];
            if (interleaved) CHECK(share.at(i) / 3 % replicas == r);
            if (i % 3 > 0) CHECK(share.at(i) == share.at(i - 1) + 1);  // a shard's samples are consecutive
          }
        }
        CHECK(std::all_of(taken.begin(), taken.end(), [](int times) { return times == 1; }));
      }
    }
  }
}

TEST_CASE("a batch of evaluation has one logical shard for each replica") {
  const BatchDivision training{replica(2, 3), {}, {8, 5, true}};
  CHECK(evaluation_batch(40, training) == 15);
  const BatchDivision division = evaluation_division(training);
  CHECK(share_of(15, division).first == 10);
  CHECK(share_of(15, division).count == 5);
  CHECK(share_of(12, division).count == 2);
  CHECK(share_of(9, division).count == 0);
  const BatchDivision plain{replica(1, 2), {1, 3}};
  CHECK(evaluation_batch(40, plain) == 40);
  CHECK(share_of(40, evaluation_division(plain)).count == 30);
}

}  // namespace trainctl::shares_test
