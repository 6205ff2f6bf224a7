// Tests which names of classes are the same number.
#include "io/datasets/class_numbers.h"
#include "core/base/format.h"
#include "test/catch.h"

namespace trainctl::test::class_numbers_test {
namespace {

std::int64_t classes_of(const std::vector<std::string>& names, bool folders = false) {
  const NamedSamples samples{std::ssize(names), [&](std::int64_t i) { return names[static_cast<std::size_t>(i)]; },
                             [](std::int64_t i) { return format("t.csv, line {}", i + 2); }, !folders};
  return number_classes(samples, "t.csv", {}).classes;
}

}  // namespace

TEST_CASE("two spellings of a whole number are not two classes, unless they are folders") {
  CHECK_THROWS_WITH(classes_of({"1", "a", "1.0"}), Catch::Contains("t.csv, line 4") &&
                                                       Catch::Contains("'1.0' and '1' (t.csv, line 2)") &&
                                                       Catch::Contains("are the same number"));
  CHECK(classes_of({"1", "a", "1.0"}, true) == 3);
  CHECK(classes_of({"1.1", "1.10", "1.2"}) == 3);
  CHECK(classes_of({"1", "01", "a"}) == 3);
}

}  // namespace trainctl::test::class_numbers_test
