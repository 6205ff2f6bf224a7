// Tests init on tables with marks for missing values, with numbers that may be codes, and with comments.
#include "core/base/format.h"
#include "test/catch.h"
#include "test/cmd/init_cases.h"
#include "test/support/command.h"

namespace trainctl::test::init_table_codes_test {
using namespace init_cases;

TEST_CASE("init takes marks for missing values for no classes, and looks for gaps in held-out tables, too") {
  const auto kinds = [](std::vector<std::string> names) {
    return
        [names](int i) { return format("{},{}", i * 13 % 97, names[static_cast<std::size_t>(i % 7) % names.size()]); };
  };
  check_cases({
      {"words.csv",
       table("words.csv", "age,kind", kinds({"yes", "no", "NA"})),
       true,
       {"2 classes (no, yes)", "missing_targets: drop", "lack a target"}},
      {"pandas.csv",
       table("pandas.csv", "age,kind", kinds({"yes", "no", "<NA>", "nan"})),
       true,
       {"2 classes (no, yes)"}},
      {"numbers.csv", table("numbers.csv", "age,kind", kinds({"1", "NA", "2", "3"})), true, {"3 classes (1, 2, 3)"}},
      {"codes.csv",
       table("codes.csv", "age,kind", kinds({"00", "01", "?", "02"})),
       true,
       {"3 classes (00, 01, 02)", "the target 'kind' is taken for classes: '00' in line 2 has a leading zero",
        "--targets values"}},
      {"folder",
       [](const Folder& folder) {
         table("folder/train.csv", "age,size,price",
               [](int i) { return format("{},{},{}.5", i * 13 % 97, i % 5, i); })(folder);
         table("folder/val.csv", "age,size,price", [](int i) {
           return format("{},{},{}", i, i == 3 ? "" : "2", i == 4 ? "NA" : format("{}.5", i));
         })(folder);
       },
       true,
       {"missing_targets: drop", "missing: mean", "val.csv: 1 of 60 lines lacks a target"}},
  });
}

TEST_CASE("init takes numbers for codes if their width or the share of leading zeros shows it") {
  const auto numbers = [](const std::string& path, const std::string& head,
                          const std::function<std::string(int)>& line) {
    return [=](const Folder& folder) {
      std::string text = head + "\n";
      for (int i = 0; i < 600; ++i) text += line(i) + "\n";
      folder.write(path, text);
    };
  };
  const auto padded = [](int i) { return format("{},{:03}", i * 13 % 97, i * 7 % 500); };
  check_cases({
      {"one.csv",
       numbers("one.csv", "t,price",
               [](int i) { return format("{},{}.5", i == 7 ? "07" : std::to_string(i % 500), i); }),
       true,
       {"1 value", "target 'price'"}},
      {"times.csv",
       numbers("times.csv", "t,price", [](int i) { return format("{:02}{:02},{}.5", i % 24, i % 60, i); }),
       true,
       {"1 value", "target 'price'"}},
      {"padded.csv",
       numbers("padded.csv", "age,y", padded),
       false,
       {"holds more than 100 different codes such as", "--targets values", "--targets classes"}},
      {"padded.csv", numbers("padded.csv", "age,y", padded), true, {"mean_squared_error"}, {"--targets", "values"}},
      {"many.csv",
       numbers("many.csv", "age,y", [](int i) { return format("{},{:03}", i * 13 % 97, i % 150); }),
       true,
       {"150 classes", "units: 150"},
       {"--targets", "classes"}},
      {"comment.csv",
       numbers("comment.csv", "# made, by, x\nage;size;y", [](int i) { return format("{};{};{}", i, i % 7, i % 2); }),
       false,
       {"line 2 has 3 fields, not 1", "'# made, by, x', seems to be a comment", "sed '/^#/d'"}},
      {"tabs.csv",
       numbers("tabs.csv", "% made, by, x\nage\tsize\ty", [](int i) { return format("{}\t{}\t{}", i, i % 7, i % 2); }),
       false,
       {"line 2 has 3 fields, not 1", "sed '/^%/d'"}},
  });
}

}  // namespace trainctl::test::init_table_codes_test
