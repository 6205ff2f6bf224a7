// Tests the warning about names of classes that differ in upper and lower case only.
#include "io/loader/splits/class_spelling.h"

#include "io/loader/data.h"
#include "test/catch.h"
#include "test/support/files.h"

namespace trainctl::test::class_spelling_test {

TEST_CASE("classes that differ in upper and lower case only are warned of") {
  CHECK(spelling_warning({"Cat", "cat", "dog"}) ==
        "the classes 'Cat' and 'cat' differ in upper and lower case only: if they are one class, write it in the same "
        "way everywhere");
  CHECK(spelling_warning({"FALSE", "False", "TRUE", "True", "true"}).find("'FALSE' and 'False'") != std::string::npos);
  CHECK(spelling_warning({"FALSE", "False", "TRUE", "True", "true"}).find("only (2 such pairs more)") !=
        std::string::npos);
  CHECK(spelling_warning({"A", "B", "a", "b"}).empty());  // letters, as in EMNIST
  CHECK(spelling_warning({"cat", "dog"}).empty());
  CHECK(spelling_warning({}).empty());
}

TEST_CASE("the data of a run warns of classes that differ in upper and lower case only") {
  const TempFolder folder;
  write_file(folder / "t.csv", "a,kind\n1,Yes\n2,yes\n3,No\n");
  const auto info = Data(data_options(format("{{dataset: csv, path: {}}}", folder / "t.csv")), 1).info();
  REQUIRE(info.warnings.size() == 1);
  CHECK(info.warnings[0].find("'Yes' and 'yes'") != std::string::npos);
}

}  // namespace trainctl::test::class_spelling_test
