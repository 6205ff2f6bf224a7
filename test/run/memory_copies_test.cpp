// Tests which rank keeps the copies on a second host.
#include "run/training/memory_copies.h"

#include "test/catch.h"

namespace trainctl::test::memory_copies_test {

TEST_CASE("the lowest rank on another host than rank 0 keeps the second copy") {
  using Hosts = std::vector<std::string>;
  CHECK(peer_of(Hosts{"a", "a", "b", "b", "c"}) == 2);
  CHECK(peer_of(Hosts{"b", "a", "b"}) == 1);
  CHECK_FALSE(peer_of(Hosts{"a", "a"}));
  CHECK_FALSE(peer_of(Hosts{"a"}));
}

}  // namespace trainctl::test::memory_copies_test
