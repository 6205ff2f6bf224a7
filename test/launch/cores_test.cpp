// Cores are shared out so that ranks never fight for them while there are enough.
#include "parallel/launch/cores.h"

#include <sched.h>

#include <set>

#include "test/catch.h"

namespace trainctl {
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

TEST_CASE("a rank binds to all hardware threads of its cores") {
  Cores cores;
  cores.allowed = {{0, 4}, {1, 5}, {2, 6}, {3, 7}};
  cores.usable = cores.online = 4;
  const CoreShare share = core_share_of(cores, rank_of(1, 2));
  CHECK(share.threads == 2);
  CHECK(share.processors == std::vector<int>{2, 6, 3, 7});
}

TEST_CASE("nobody is bound who is alone, has too few cores, or shares them with others") {
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
  Cores mine = plain_cores(2);  // of 8
  mine.online = 8;
  CHECK(core_share_of(mine, situation).threads == 2);
  Cores socket = plain_cores(4);  // shared with another rank, of 8
  socket.online = 8;
  CHECK(core_share_of(socket, situation).threads == 2);
  CHECK(core_share_of(socket, situation).processors.empty());
}

TEST_CASE("this host has cores, as many as the affinity of the process allows") {
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
}  // namespace trainctl
