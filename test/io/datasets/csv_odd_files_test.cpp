// Tests tables as other programs write them: comments and missing names before the lines, unusual signs and blanks,
// marks for missing values, and numbers that float32 does not tell apart.
#include "io/datasets/tables/csv.h"
#include "io/datasets/tables/csv_column.h"
#include "io/loader/data.h"
#include "test/catch.h"
#include "test/support/files.h"

namespace trainctl::test::csv_odd_files_test {
using Catch::Contains;

namespace {

std::string error_of(const std::string& text, const CsvFormat& format = {}) {
  const TempFolder folder;
  write_file(folder / "t.csv", text);
  try {
    csv_dataset({folder / "t.csv"}, format, {});
  } catch (const Error& error) {
    return error.what();
  }
  return "it was read";
}

std::vector<std::string> warnings_of(const std::string& text, const std::string& keys, bool values = true) {
  const TempFolder folder;
  write_file(folder / "t.csv", text);
  const DataUse use{{{""}}, {{"", values}}, {}};
  return Data(data_options(format("{{dataset: csv, path: {}, {}}}", folder / "t.csv", keys)), 1, use).info().warnings;
}

}  // namespace

TEST_CASE("csv: lines of another length are explained by what the file shows") {
  CHECK_THAT(error_of("a,y\n1,2\n3\n"), Contains("line 3 has 1 field, not 2") && Contains("write all fields"));
  CHECK_THAT(error_of("# made by x\n# 2024\na,y\n1,2\n"), Contains("line 3 has 2 fields, not 1") &&
                                                              Contains("'# made by x', seems to be a comment") &&
                                                              Contains("sed '/^#/d'"));
  CHECK_THAT(error_of("sep=;\na;y\n1;2\n", {.delimiter = ";"}),
             Contains("meant for Excel") && Contains("sed 1d") && Contains("`delimiter`"));
  CHECK_THAT(error_of("a,y\nr1,1,2\nr2,3,4\n"),
             Contains("line 2 has 3 fields, not 2") && Contains("one name less") && Contains("row.names=FALSE"));
  const std::string mixed = error_of("a,y\nr1,1,2\n3,4\n");
  CHECK_THAT(mixed, Contains("line 2 has 3 fields, not 2") && !Contains("row.names"));
  CHECK_THAT(error_of("a,y\n1,2\n'x, z',4\n"), Contains("double quotation marks"));
  // All lines but the first one end in the delimiter.
  const std::string ends = error_of("a,b,y\n7,2,0,\n3,4,1,\n");
  CHECK_THAT(ends, Contains("line 2 has 4 fields, not 3") && Contains("sed 's/,$//'") && !Contains("row.names"));
  CHECK_THAT(error_of("a;y\n7;2;\n3;4;\n", {.delimiter = ";"}), Contains("sed 's/;$//'"));
  CHECK_THAT(error_of("a,y\nr1,1,\nr2,3,4\n"), Contains("row.names=FALSE"));
}

TEST_CASE("csv: only Excel's line `sep=;` is refused as such, and comments before a table with semicolons are named") {
  CHECK(error_of("sep=al,sep=,y\n1,2,0\n3,5,1\n") == "it was read");
  for (const char* first : {"sep=;", "sep=", "sep=,"}) {
    CAPTURE(first);
    CHECK_THAT(error_of(format("{}\na;y\n1;2\n", first)), Contains("meant for Excel"));
  }
  for (const char* delimiter : {";", "\t"}) {
    const std::string text = format("# made by x\na{0}y\n1{0}2\n", delimiter);
    const std::string of_default = error_of(text), of_right = error_of(text, {.delimiter = delimiter});
    CAPTURE(of_default, of_right);
    CHECK_THAT(of_default, Contains("line 2 is one field, but holds the delimiter") && Contains("sed '/^#/d'") &&
                               Contains("set `delimiter`"));
    CHECK_THAT(of_right, Contains("line 2 has 2 fields, not 1") && Contains("sed '/^#/d'"));
  }
}

TEST_CASE("csv: no-break spaces around numbers and Unicode's minus sign do not make words of them") {
  CHECK(number_in("5\xC2\xA0") == 5.0f);
  CHECK(number_in("\xC2\xA0 \xE2\x88\x92"
                  "2.5") == -2.5f);
  CHECK(number_in("\xE2\x88\x92"
                  "1e3") == -1000.0f);
  for (const char* text : {"\xE2\x88\x92", "\xE2\x88\x92-1", "1\xE2\x88\x92", "\xC2",
                           "\xA0"
                           "1"}) {
    CAPTURE(text);
    CHECK_FALSE(number_in(text));
  }
  CHECK(trimmed("\xC2\xA0 a\xC2\xA0"
                "b \xC2\xA0\t") ==
        "a\xC2\xA0"
        "b");
  CHECK(trimmed(" \xC2\xA0 ").empty());
}

TEST_CASE("csv: the marks of pandas for missing values are missing, and words that only resemble them are not") {
  for (const char* mark :
       {"NA", "N/A", "n/a", "NaN", "nan", "-NaN", "-nan", "NULL", "null", "?", "<NA>", "#N/A", "#NA"}) {
    CAPTURE(mark);
    const TempFolder folder;
    write_file(folder / "t.csv", format("a,y\n1,0\n{},1\n4,0\n", mark));
    const auto read = csv_dataset({folder / "t.csv"}, {.missing = MissingRule::mean}, {});
    Sample sample;
    read->read(1, sample);
    CHECK(*static_cast<const float*>(sample.values) == 2.5f);
  }
  for (const char* word : {"None", "Na", "n.a.", "-", ""}) CHECK_FALSE(is_mark(word));
}

TEST_CASE("csv: numbers that float32 does not tell apart are warned of, in samples and in targets") {
  // Seconds since 1970 within a minute: float32 keeps steps of 128.
  std::string times = "time,y\n", targets = "a,y\n", days = "time,y\n";
  for (int i = 0; i < 60; ++i) {
    times += format("{},{}.5\n", 1'700'000'000 + i, i);
    targets += format("{},{}\n", i, 1'000'000'000'000 + i);
    days += format("{},{}.5\n", 1'700'000'000 + 86'400 * i, i);
  }
  const std::vector<std::string> of_times = warnings_of(times, "standardize: true");
  REQUIRE(of_times.size() == 1);
  CHECK_THAT(
      of_times[0],
      Contains("column 'time' has numbers from 1700000000 to 1700000059, of which float32 keeps steps "
               "of 128 only, so that 1700000000 and 1700000001 are the same number: subtract a constant from the "
               "column"));
  const std::vector<std::string> of_targets = warnings_of(targets, "workers: 0");
  REQUIRE(of_targets.size() == 1);
  CHECK_THAT(of_targets[0], Contains("column 'y' has numbers from 1000000000000 to 1000000000059"));
  CHECK(warnings_of(days, "workers: 0").empty());
  CHECK(warnings_of("a,y\n1700000000,1.5\n1700000000,2.5\n", "workers: 0").empty());  // constant
}

TEST_CASE("csv: numbers in a short range that float32 tells apart are not warned of") {
  const auto column = [](double first, double step, int count) {
    std::string text = "a,y\n";
    for (int i = 0; i < 90; ++i) text += format("{:.10g},{}.5\n", first + step * (i * 7 % count), i);
    return warnings_of(text, "workers: 0");
  };
  CHECK(column(100'000, 1, 2).empty());
  CHECK(column(5'000'001, 2, 45).empty());
  CHECK(column(1000, 0.01, 2).empty());
  CHECK(column(-16'777'216, 1, 60).empty());
  CHECK(column(16'777'216, 2, 60).empty());
  CHECK(column(16'777'216, 1, 60).size() == 1);
  CHECK(column(1000, 0.00001, 9).size() == 1);
}

}  // namespace trainctl::test::csv_odd_files_test
