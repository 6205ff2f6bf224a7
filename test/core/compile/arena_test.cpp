// Tests the arena: tensors that are alive together share no byte, with random lifetimes and with real networks.
#include <random>

#include "core/compile/liveness.h"
#include "test/catch.h"

namespace trainctl::arena_test {
namespace {

// Whether two lifetimes are joined by a chain of `continues`.
bool same_chain(const std::vector<Lifetime>& lifetimes, int a, int b) {
  const auto root = [&](int i) {
    while (lifetimes[static_cast<std::size_t>(i)].continues >= 0) i = lifetimes[static_cast<std::size_t>(i)].continues;
    return i;
  };
  return root(a) == root(b);
}

// Checks what must hold for every plan, pair by pair and independently of how the plan was made.
void check_plan(const std::vector<Lifetime>& lifetimes, const ArenaPlan& plan, std::int64_t alignment) {
  REQUIRE(plan.offsets.size() == lifetimes.size());
  std::int64_t end = 0;
  int clashes = 0;
  for (std::size_t i = 0; i < lifetimes.size(); ++i) {
    const Lifetime& a = lifetimes[i];
    CHECK(plan.offsets[i] % alignment == 0);
    end = std::max(end, plan.offsets[i] + a.bytes);
    if (a.continues >= 0) CHECK(plan.offsets[i] == plan.offsets[static_cast<std::size_t>(a.continues)]);
    for (std::size_t j = 0; j < i; ++j) {
      const Lifetime& b = lifetimes[j];
      if (a.last < b.first || b.last < a.first || same_chain(lifetimes, static_cast<int>(i), static_cast<int>(j)))
        continue;
      clashes += plan.offsets[i] < plan.offsets[j] + b.bytes && plan.offsets[j] < plan.offsets[i] + a.bytes;
    }
  }
  CHECK(clashes == 0);
  CHECK(end <= plan.bytes);
  CHECK(plan.lower_bound <= plan.bytes);
}

// Returns lifetimes of a chain of layers: activations live until the backward op of their reader, gradients until the
// next backward op.
std::vector<Lifetime> network(const std::vector<std::int64_t>& sizes) {
  std::vector<Lifetime> lifetimes;
  const int layers = static_cast<int>(sizes.size());
  for (int i = 0; i < layers; ++i) lifetimes.push_back({sizes[static_cast<std::size_t>(i)], i, 2 * layers - i, -1});
  for (int i = 0; i < layers; ++i) {
    lifetimes.push_back({sizes[static_cast<std::size_t>(i)], 2 * layers - i - 1, 2 * layers - i, -1});
  }
  return lifetimes;
}

}  // namespace

TEST_CASE("random lifetimes never share memory while they live") {
  std::mt19937 random(7);
  for (int round = 0; round < 60; ++round) {
    const std::int64_t alignment = round % 2 ? 64 : 1;
    std::vector<Lifetime> lifetimes;
    const int count = 1 + static_cast<int>(random() % 90);
    for (int i = 0; i < count; ++i) {
      const int first = static_cast<int>(random() % 50);
      lifetimes.push_back(
          {static_cast<std::int64_t>(random() % 5000), first, first + static_cast<int>(random() % 12), -1});
      if (random() % 4 == 0) {
        Lifetime next = lifetimes.back();
        next.first = next.last;
        next.last += static_cast<int>(random() % 9);
        next.continues = static_cast<int>(lifetimes.size()) - 1;
        lifetimes.push_back(next);
      }
    }
    const ArenaPlan plan = plan_arena(lifetimes, alignment);
    check_plan(lifetimes, plan, alignment);
    CHECK(plan.offsets == plan_arena(lifetimes, alignment).offsets);
    CHECK(static_cast<double>(plan.bytes) <= 1.25 * static_cast<double>(plan.lower_bound) + 64);
  }
}

TEST_CASE("the lower bound is the largest number of bytes that are alive together") {
  const std::vector<Lifetime> lifetimes{{100, 0, 1, -1}, {200, 1, 2, -1}, {50, 2, 3, -1}, {200, 2, 5, 1}};
  const ArenaPlan plan = plan_arena(lifetimes, 1);
  check_plan(lifetimes, plan, 1);
  CHECK(plan.lower_bound == 300);  // at op 1: the first two; later 200 and 50
  CHECK(plan.bytes == 300);
}

TEST_CASE("arenas of networks are close to the lower bound") {
  std::vector<std::int64_t> chain;
  for (int i = 0; i < 40; ++i) chain.push_back(64 * (1000 >> (i / 10)));
  std::vector<std::int64_t> bottlenecks;  // as in ResNet-50: narrow, narrow, wide, the wide ones crossed by shortcuts
  for (int i = 0; i < 48; ++i) bottlenecks.push_back((i % 3 == 2 ? 4096 : 1024) * (256 >> (2 * (i / 12))));
  for (const auto& sizes : {chain, bottlenecks}) {
    auto lifetimes = network(sizes);
    for (std::size_t i = 2; i + 3 < sizes.size(); i += 3) {
      const int backward = lifetimes[sizes.size() + i].first;
      lifetimes.push_back({sizes[i], backward - 3, backward + 1, -1});  // the shortcut's gradient waits for its sum
    }
    for (int op = 0; op < 2 * static_cast<int>(sizes.size()); op += 2) lifetimes.push_back({10000, op, op, -1});
    const ArenaPlan plan = plan_arena(lifetimes, 64);
    check_plan(lifetimes, plan, 64);
    CHECK(static_cast<double>(plan.bytes) <= 1.03 * static_cast<double>(plan.lower_bound));
  }
}

TEST_CASE("an empty arena has no bytes") {
  CHECK(plan_arena({}).bytes == 0);
  const std::vector<Lifetime> nothing{{0, 0, 3, -1}};
  CHECK(plan_arena(nothing).bytes == 0);
}

}  // namespace trainctl::arena_test
