// Tests the comparison of lists of kernel choices.
#include "core/backend/choice_changes.h"

#include "test/catch.h"

namespace trainctl::choice_changes_test {

TEST_CASE("the choices that differ between two lists are found") {
  const auto changed = changed_choices("a\t1\nb\t2\nc\t3\n", "b\t2\nc\t4\nd\t5\n");
  REQUIRE(changed.size() == 1);
  CHECK(changed[0].key == "c");
  CHECK(changed[0].before == "3");
  CHECK(changed[0].now == "4");
  CHECK(changed_choices("", "a\t1\n").empty());
  CHECK(changed_choices("a\t1\nno tab\n", "a\t1\nno tab\n").empty());
}

TEST_CASE("the kernel hash differs for different devices and choices") {
  const std::string hash = kernel_hash("cpu, avx2", "a\t1\n");
  CHECK(hash.size() == 16);
  CHECK(kernel_hash("cpu, avx2", "a\t1\n") == hash);
  CHECK(kernel_hash("cpu, avx512", "a\t1\n") != hash);
  CHECK(kernel_hash("cpu, avx2", "a\t2\n") != hash);
}

}  // namespace trainctl::choice_changes_test
