// Tests that deferred receives run in their order when one of them is waited for.
#include "core/exec/deferred_receives.h"

#include <deque>

#include "core/backend/immediate_stream.h"
#include "test/catch.h"

namespace trainctl::deferred_receives_test {

TEST_CASE("deferred receives run in their order, as late as possible, with the slots that they were added with") {
  DeferredReceives receives;
  ImmediateStream compute;
  std::vector<std::pair<int, int>> ran;  // number and slot
  std::deque<DeferredReceives::Receive> all;
  const auto add = [&](int slot) {
    const int number = static_cast<int>(all.size());
    all.push_back([&ran, number](Stream&, const Slot& at) { ran.emplace_back(number, at.index); });
    return receives.add(all.back(), Slot{slot, nullptr});
  };
  std::vector<std::uint64_t> numbers;
  for (int i = 0; i < 40; ++i) numbers.push_back(add(i % 3));  // more than the queue holds at first
  CHECK(ran.empty());
  receives.run_until(numbers[1], compute);
  CHECK(ran == std::vector<std::pair<int, int>>{{0, 0}, {1, 1}});
  receives.run_until(numbers[0], compute);  // has run already
  CHECK(ran.size() == 2);
  numbers.push_back(add(7));
  receives.run_until(numbers.back(), compute);
  REQUIRE(ran.size() == 41);
  for (int i = 0; i < 40; ++i) CHECK(ran[static_cast<std::size_t>(i)] == std::pair(i, i % 3));
  CHECK(ran.back() == std::pair(40, 7));
}

}  // namespace trainctl::deferred_receives_test
