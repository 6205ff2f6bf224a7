// Tests that each rank gets cores of its own as long as there are enough.
#include "parallel/launch/host/cores.h"

#include <sched.h>

#include <set>

#include "test/catch.h"

namespace trainctl::cores_test {
namespace {

Cores plain_cores(int count) {
  Cores cores;
  for (int core = 0; core < count; ++core) cores.allowed.push_back({core});
  cores.usable = cores.online = count;
  return cores;
}

Situation rank_of(int local_rank, int local_ranks, bool supervised = true) {
  Situation situation;
  situation.started_by = StartedBy::mpirun;
  situation.rank = situation.local_rank = local_rank;
  situation.ranks = situation.local_ranks = local_ranks;
  situation.supervised = supervised;
  return situation;
}

TEST_CASE("hardware threads are grouped into cores") {
  // Two hardware threads a core, numbered as Linux does on most machines: n and n + 4; 6 is not allowed.
  const auto siblings = [](int processor) { return Core{processor % 4, processor % 4 + 4}; };
  CHECK(group_cores({0, 1, 2, 3, 4, 5, 7}, siblings) == std::vector<Core>{{0, 4}, {1, 5}, {2}, {3, 7}});
  CHECK(group_cores({3, 5}, [](int) { return Core{}; }) == std::vector<Core>{{3}, {5}});
}

TEST_CASE("shares are equal and disjoint while cores suffice") {
  for (int cores = 1; cores <= 12; ++cores) {
    for (int ranks = 2; ranks <= cores; ++ranks) {
      std::set<int> taken;
      for (int rank = 0; rank < ranks; ++rank) {
        const CoreShare share = core_share_of(plain_cores(cores), rank_of(rank, ranks));
        CHECK(share.threads == cores / ranks);
        CHECK(static_cast<int>(share.processors.size()) == share.threads);
        for (int processor : share.processors) {
          CHECK(processor < cores);
          CHECK(taken.insert(processor).second);
        }
      }
    }
  }
}

TEST_CASE("ranks get the cores close to their GPUs") {
  Cores cores;  // two NUMA nodes of four cores; the second hardware threads are 8 to 15
  for (int core = 0; core < 8; ++core) cores.allowed.push_back({core, core + 8});
  cores.usable = cores.online = 8;
  const std::vector<int> second_node = {4, 5, 6, 7, 12, 13, 14, 15};
  const auto share = [&](int index, int count, const Situation& situation) {
    return core_share_near(cores, situation, second_node, index, count);
  };
  CHECK(share(0, 2, rank_of(2, 4)).processors == std::vector<int>{4, 12, 5, 13});
  CHECK(share(1, 2, rank_of(3, 4)).processors == std::vector<int>{6, 14, 7, 15});
  CHECK(share(1, 2, rank_of(3, 4)).threads == 2);
  CHECK(share(1, 3, rank_of(3, 4)).threads == 1);
  CHECK(share(0, 1, Situation{}).processors.size() == 8);  // a single rank
  // More ranks than cores near the GPUs: the same shares as without GPUs.
  CHECK(share(4, 5, rank_of(4, 5)).processors == core_share_of(cores, rank_of(4, 5)).processors);
  // The user's launcher has bound the ranks, or was told not to.
  CHECK(share(0, 2, rank_of(2, 4, false)).processors.empty());
  Situation bound = rank_of(2, 4);
  bound.bound = true;
  CHECK(share(0, 2, bound).processors.empty());
  // The NUMA node of the GPU is unknown.
  CHECK(core_share_near(cores, rank_of(1, 2), {}, 1, 2).processors == core_share_of(cores, rank_of(1, 2)).processors);
}

TEST_CASE("an unknown PCI device has no NUMA node and no processors") {
  CHECK(numa_node_of("ffff:ff:ff.7") == -1);
  CHECK(processors_near("ffff:ff:ff.7").empty());
}

TEST_CASE("a rank binds to all hardware threads of its cores") {
  Cores cores;
  cores.allowed = {{0, 4}, {1, 5}, {2, 6}, {3, 7}};
  cores.usable = cores.online = 4;
  const CoreShare share = core_share_of(cores, rank_of(1, 2));
  CHECK(share.threads == 2);
  CHECK(share.processors == std::vector<int>{2, 6, 3, 7});
}

TEST_CASE("a rank is not bound if it is alone, has too few cores, or shares them with other jobs") {
  CHECK(core_share_of(plain_cores(4), rank_of(0, 1)).processors.empty());
  CHECK(core_share_of(plain_cores(4), rank_of(0, 1)).threads == 4);
  CHECK(core_share_of(plain_cores(2), rank_of(2, 3)).processors.empty());
  CHECK(core_share_of(plain_cores(2), rank_of(2, 3)).threads == 1);
  Cores limited = plain_cores(8);
  limited.usable = 4;
  CHECK(core_share_of(limited, rank_of(1, 2)).processors.empty());
  CHECK(core_share_of(limited, rank_of(1, 2)).threads == 2);
}

TEST_CASE("a user's binding stays, but threads do not add up to more than the cores") {
  Situation situation = rank_of(1, 4, false);
  CHECK(core_share_of(plain_cores(8), situation).processors.empty());
  CHECK(core_share_of(plain_cores(8), situation).threads == 2);
  situation.bound = true;
  Cores mine = plain_cores(2);  // the rank may use 2 of 8 cores
  mine.online = 8;
  CHECK(core_share_of(mine, situation).threads == 2);
  Cores socket = plain_cores(4);  // two ranks share 4 of 8 cores
  socket.online = 8;
  CHECK(core_share_of(socket, situation).threads == 2);
  CHECK(core_share_of(socket, situation).processors.empty());
}

TEST_CASE("this host's cores are those that the affinity of the process allows") {
  cpu_set_t set;
  REQUIRE(sched_getaffinity(0, sizeof set, &set) == 0);
  const Cores cores = find_cores(Variables());
  int processors = 0;
  for (const Core& core : cores.allowed) processors += static_cast<int>(core.size());
  CHECK(processors == CPU_COUNT(&set));
  CHECK(cores.usable >= 1);
  CHECK(cores.usable <= static_cast<int>(cores.allowed.size()));
  CHECK(cores.online >= cores.usable);
  CHECK(find_cores(Variables{{"SLURM_JOB_ID", "1"}, {"SLURM_CPUS_ON_NODE", "1"}}).usable == 1);
}

}  // namespace
}  // namespace trainctl::cores_test
