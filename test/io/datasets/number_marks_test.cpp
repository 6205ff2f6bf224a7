// Tests which texts are numbers with marks, and that the commands for these marks remove them.
#include <cstdlib>

#include "core/base/file_names.h"
#include "io/datasets/tables/csv_column.h"
#include "io/datasets/tables/number_marks.h"
#include "test/catch.h"
#include "test/support/files.h"

namespace trainctl::test::number_marks_test {

TEST_CASE("marks of numbers are recognized, and other texts are not numbers") {
  const struct {
    const char *text, *marks;
  } cases[] = {{"$12", "a currency sign"},
               {"-$1.5", "a currency sign"},
               {"$-1.5", "a currency sign"},
               {"12 €", "a currency sign"},
               {"12.5\xC2\xA0€", "a currency sign"},
               {"EUR 7", "a currency sign"},
               {"12%", "a percent sign"},
               {"12.5 %", "a percent sign"},
               {"3,14", "a decimal comma"},
               {"0,125", "a decimal comma"},
               {"1040,5", "a decimal comma"},
               {"1,040", "a comma"},
               {"1,040.50", "commas between thousands"},
               {"1,040,500", "commas between thousands"},
               {"1.040,5", "points between thousands and a decimal comma"},
               {"1.040.500", "points between thousands"},
               {"1.500.000.000", "points between thousands"},
               {"1.000.000.000", "points between thousands"},
               {"1 040", "spaces or apostrophes between thousands"},
               {"1\xC2\xA0"
                "040 500",
                ""},  // two kinds of spaces
               {"1\xE2\x80\xAF"
                "040",
                "spaces or apostrophes between thousands"},
               {"1'040.5", "spaces or apostrophes between thousands"},
               {"1 040,5", "spaces or apostrophes between thousands and a decimal comma"},
               {"$1,040.50", "a currency sign and commas between thousands"},
               {"12,5 %", "a percent sign and a decimal comma"}};
  for (const auto& one : cases) {
    CAPTURE(one.text);
    const std::optional<NumberMarks> marks = number_marks(one.text);
    CHECK((marks ? text_of(*marks) : "") == one.marks);
  }
  for (const char* text : {"",
                           "12",
                           "-1.5",
                           "1e5",
                           "a",
                           "$",
                           "%",
                           "abc 12",
                           "2024-01-31",
                           "31.01.2024",
                           "12:30",
                           "1,2,3",
                           "12 34",
                           "1.2.3",
                           "3+",
                           "w1",
                           "10115-2",
                           "12,",
                           ",5",
                           "1,04,050",
                           "1 2 3",
                           "$x",
                           "192.168.100.100",
                           "000 111 222",
                           "0 500",
                           "012.345.678",
                           "0,125,000"}) {
    CAPTURE(text);
    CHECK_FALSE(number_marks(text));
  }
}

TEST_CASE("points before three digits are found in all texts that the command for points changes") {
  for (const char* text : {"1.040", "0.291", "-12.5.125", "1.040,5", "v1.250", "3.125%"}) {
    CAPTURE(text);
    CHECK(has_removable_point(text));
  }
  for (const char* text : {"", ".", "1.", ".125", "1.04", "1.0405", "31.01.2024", "a.125"}) {
    CAPTURE(text);
    CHECK_FALSE(has_removable_point(text));
  }
}

TEST_CASE("numbers have one shortest spelling") {
  for (const char* text : {"1", "1.0", "01", "+1", "1.", "1.00"}) CHECK(shortest_spelling(text) == "1");
  CHECK(shortest_spelling("-0.50") == "-0.5");
  CHECK(shortest_spelling(".5") == "0.5");
  CHECK(shortest_spelling("-0") == "0");
  CHECK(shortest_spelling("100") == "100");
  CHECK(shortest_spelling("16777217") != shortest_spelling("16777216"));  // equal as float32
  for (const char* text : {"", "-", ".", "a", "1a", "1,0", "1.0.0"}) CHECK(shortest_spelling(text).empty());
}

TEST_CASE("whole numbers have one spelling, and sections and numbers with leading zeros are kept apart") {
  for (const char* text : {"1", "1.0", "+1", "1.", "1.00"}) CHECK(whole_spelling(text) == "1");
  CHECK(whole_spelling("0.0") == "0");
  CHECK(whole_spelling("-2.0") == "-2");
  for (const char* text : {"", "+", "01", "00", "-01.0", "1.1", "1.10", "a", "1.0.0"}) {
    CAPTURE(text);
    CHECK(whole_spelling(text).empty());
  }
}

TEST_CASE("the commands for marked numbers write tables without the marks, and leave other fields alone") {
  const struct {
    const char *name, *value, *delimiter, *other, *wanted;
  } cases[] = {{"dollars.csv", "$1040.5", ",", "a-b c", "1040.5"},
               {"two words.csv", "12.5 €", ",", "x", "12.5"},
               {"it's.csv", "7 %", ",", "10 Main St", "7"},
               {"$HOME.csv", "1 040 500", ",", "12:30", "1040500"},
               {"quoted.csv", "\"1,040,500.5\"", ",", "\"Smith, John\"", "\"1040500.5\""},
               {"decimal.csv", "\"3,5\"", ",", "\"a, b\"", "\"3.5\""},
               {"german.csv", "1.040.500,25", ";", "31.01.2024", "1040500.25"},
               {"tabs.tsv", "-1.040,5", "\t", "x", "-1040.5"}};
  for (const auto& one : cases) {
    CAPTURE(one.name, one.value);
    const TempFolder folder;
    const auto table = [&](const std::string& value) {
      std::string text = std::string("a") + one.delimiter + "b\n";
      for (int i = 0; i < 3; ++i) text += value + one.delimiter + one.other + "\n";
      return text;
    };
    write_file(folder / one.name, table(one.value));
    std::string value = one.value;
    if (value.front() == '"') value = value.substr(1, value.size() - 2);
    const std::optional<NumberMarks> marks = number_marks(value);
    REQUIRE(marks);
    const std::string remedy = remedy_for(*marks, one.name, one.delimiter[0]);
    const std::string command = remedy.substr(remedy.find("sed -E"));
    CAPTURE(command);
    REQUIRE(std::system(("cd '" + folder.text() + "' && " + command).c_str()) == 0);
    CHECK(read_whole(folder / name_of_copy(one.name, "numbers")) == table(one.wanted));
  }
  const TempFolder folder;
  write_file(folder / "a b.csv", "1\n2\n3\n4\n");
  REQUIRE(std::system(("cd '" + folder.text() + "' && " + command_without_lines("a b.csv", {2, 4})).c_str()) == 0);
  CHECK(read_whole(folder / "a b-complete.csv") == "1\n3\n");
  REQUIRE(std::system(("cd '" + folder.text() + "' && " + command_without_lines("a b.csv", 2, 3)).c_str()) == 0);
  CHECK(read_whole(folder / "a b-complete.csv") == "1\n4\n");
  CHECK(command_without_lines("a.csv", std::vector<std::int64_t>(21, 5)).empty());
}

}  // namespace trainctl::test::number_marks_test
