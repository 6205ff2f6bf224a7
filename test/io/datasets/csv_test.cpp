// Tests the reader of tables with files that the tests write.
#include <cstring>
#include <random>

#include "io/datasets/tables/csv.h"
#include "io/datasets/tables/csv_column.h"
#include "io/loader/data.h"
#include "test/catch.h"
#include "test/support/files.h"

namespace trainctl::test::csv_test {
namespace {

std::vector<float> sample_of(const Dataset& dataset, std::int64_t index, std::vector<float>* target = nullptr) {
  Sample sample;
  dataset.read(index, sample);
  REQUIRE(sample.dtype == DType::float32);
  const auto* values = static_cast<const float*>(sample.values);
  if (target) target->assign(sample.target, sample.target + dataset.info().target.count());
  return {values, values + sample.shape.count()};
}

// Returns the error for a table that is refused.
std::string error_of(const std::string& text, const CsvFormat& format = {}, ErrorKind kind = ErrorKind::data) {
  const TempFolder folder;
  write_file(folder / "t.csv", text);
  try {
    csv_dataset({folder / "t.csv"}, format, {});
  } catch (const Error& error) {
    CHECK(error.kind() == kind);
    return error.what();
  }
  FAIL_CHECK("it was read: " << text);
  return "";
}

}  // namespace

TEST_CASE("csv: random values are read back with any kind of line end") {
  const TempFolder folder;
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0, 1e3f);
  for (const char* end : {"\n", "\r\n", "\r"}) {
    std::vector<std::vector<float>> rows(41, std::vector<float>(5));
    std::string text = std::string("\xEF\xBB\xBF") + "a,b,c,d,y" + end;
    for (auto& row : rows) {
      for (std::size_t i = 0; i < row.size(); ++i) {
        row[i] = normal(random);
        text += format("{}{}", i > 0 ? "," : "", row[i]);
      }
      text += end;
    }
    write_file(folder / "t.csv", text + end);  // an empty line at the end
    const auto dataset = csv_dataset({folder / "t.csv"}, {}, {});
    REQUIRE(dataset->size() == 41);
    CHECK(dataset->info().sample == Shape{4});
    CHECK(dataset->info().classes == 0);
    for (std::int64_t i = 0; i < 41; ++i) {
      const auto& row = rows[static_cast<std::size_t>(i)];
      std::vector<float> target;
      CHECK(sample_of(*dataset, i, &target) == std::vector<float>(row.begin(), row.end() - 1));
      CHECK(target == std::vector<float>{row.back()});
    }
  }
}

TEST_CASE("csv: columns, delimiter, quotes and a table without a header are read") {
  const TempFolder folder;
  write_file(folder / "t.csv", "\"weight; net\";\"the \"\"class\"\"\n\";x\n1.5;cat;+2e3\n\"-1\"; dog ;0\n");
  const auto named = csv_dataset(
      {folder / "t.csv"}, {.delimiter = ";", .target = {"the \"class\"\n"}, .columns = {"x", "weight; net"}}, {});
  CHECK(sample_of(*named, 0) == std::vector<float>{2000, 1.5f});
  CHECK(sample_of(*named, 1) == std::vector<float>{0, -1});
  CHECK(named->info().class_names == std::vector<std::string>{"cat", "dog"});
  write_file(folder / "u.csv", "1\t2\t3\n4\t5\t6\n");
  const auto plain = csv_dataset({folder / "u.csv"}, {.delimiter = "\t", .header = {false}, .target = {"1", "2"}}, {});
  REQUIRE(plain->size() == 2);
  std::vector<float> target;
  CHECK(sample_of(*plain, 1, &target) == std::vector<float>{6});
  CHECK(target == std::vector<float>{4, 5});
}

TEST_CASE("csv: targets are words, class numbers or values") {
  const TempFolder folder;
  write_file(folder / "words.csv", "x,y\n1,pear\n2,apple\n3,pear\n4,Zebra\n");
  const auto words = csv_dataset({folder / "words.csv"}, {}, {});
  CHECK(words->info().class_names == std::vector<std::string>{"Zebra", "apple", "pear"});
  CHECK(words->label(0) == 2);
  CHECK(words->label(3) == 0);
  write_file(folder / "few.csv", "x,y\n1,pear\n");
  const DatasetInfo info = words->info();
  const DeclaredInfo held_out{{}, {}, &info};
  CHECK(csv_dataset({folder / "few.csv"}, {}, held_out)->label(0) == 2);
  write_file(folder / "more.csv", "x,y\n1,plum\n");
  CHECK_THROWS_WITH(csv_dataset({folder / "more.csv"}, {}, held_out), Catch::Contains("plum"));

  write_file(folder / "numbers.csv", "x,y\n1,0\n2,2\n");
  CHECK(csv_dataset({folder / "numbers.csv"}, {}, {})->info().classes == 3);
  CHECK(csv_dataset({folder / "numbers.csv"}, {}, {.use = {.target_values = true}})->info().classes == 0);
  write_file(folder / "values.csv", "x,y\n1,0.5\n2,2\n");
  CHECK(csv_dataset({folder / "values.csv"}, {}, {})->info().target == Shape{1});
}

TEST_CASE("csv: errors name line and column") {
  using Catch::Contains;
  CHECK_THAT(error_of("a,b\n1,2\n3\n"), Contains("line 3 has 1 field, not 2"));
  CHECK_THAT(error_of("a,b,y\n1,x,2\n"), Contains("line 2, column 'b': 'x' is not a number"));
  CHECK_THAT(error_of("a,b,y\n1,,2\n"), Contains("line 2, column 'b' is empty"));
  CHECK_THAT(error_of("a,y\n1,2\n\n\"\n\",1\n"), Contains("line 4, column 'a' is empty") || Contains("line 4"));
  CHECK_THAT(error_of("a,y\nnan,1\n"), Contains("'nan' is not a number"));
  // Decimal numbers that float32 cannot hold; too small ones are 0.
  for (const char* large : {"1e39", "-3.5e38", "+1e400", "1e999999"}) {
    const std::string text(large);
    for (const std::string& table : {"a,y\n" + text + ",1\n", "a,y\n" + text + ",1\n2,3\n"}) {
      CHECK_THAT(error_of(table), Contains("line 2, column 'a': '" + text + "' is beyond the range of float32"));
    }
    for (const std::string& table : {"a,y\n1," + text + "\n", "a,y\n1," + text + "\n2,x\n"}) {
      CHECK_THAT(error_of(table), Contains("line 2, column 'y': '" + text + "' is beyond the range of float32"));
    }
  }
  CHECK_THAT(error_of("a,y\ninf,1\n"), Contains("'inf' is not a number"));
  CHECK(number_in("1e-400") == 0.0f);
  CHECK(number_in("3.4e38") == 3.4e38f);
  CHECK_THAT(error_of("a,y\n\"1,1\n"), Contains("line 2: a quotation mark is not closed"));
  CHECK_THAT(error_of("a,y\n\"1\"2,1\n"), Contains("text follows a closing quotation mark"));
  CHECK_THAT(error_of("a,a\n1,1\n"), Contains("two columns 'a'"));
  CHECK_THAT(error_of("\xFF\xD8\xFF\xE0JFIF,a\n1,1\n"), Contains("is a JPEG image, not text"));
  CHECK_THAT(error_of("PK\x03\x04,a\n1,1\n"), Contains("is a zip archive or a file of Excel, not text; unpack"));
  CHECK_THAT(error_of("y\n1\n"), Contains("no column except its target"));
  CHECK_THAT(error_of("a,y\n"), Contains("no line of values"));
  CHECK_THAT(error_of("\n\n"), Contains("holds no lines"));
  CHECK_THAT(error_of("a,b\n1,2\n", {.target = {"b"}, .columns = {"a", "b"}}, ErrorKind::config),
             Contains("column 'b'") && Contains("is the target"));
  CHECK_THAT(error_of("a,b,c\n1,2,x\n", {.target = {"b", "c"}}), Contains("line 2, column 'c': 'x' is not a number"));
  CHECK_THAT(error_of("age,wage\n1,1\n", {.target = {"Wage"}}, ErrorKind::config),
             Contains("no column 'Wage'; did you mean 'wage'?"));
}

TEST_CASE("csv: the target of a regression loss must hold numbers only") {
  using Catch::Contains;
  const std::string begin = "sqft,price\n50,300\n60,340\n70,";
  const DeclaredInfo values{.use = {.target_values = true}};
  const auto error_with = [](const std::string& text, const CsvFormat& csv, const DeclaredInfo& declared) {
    const TempFolder folder;
    write_file(folder / "t.csv", text);
    try {
      csv_dataset({folder / "t.csv"}, csv, declared);
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::data);
      return std::string(error.what());
    }
    return std::string("no error");
  };
  for (const char* word :
       {"NA", "-", "620k", "\"1,040\"", "$740", "\"740,5\"", "?", "n/a", "null", "inf", "nan", "Total"}) {
    INFO(word);
    const std::string text = begin + word + "\n80,420\n";
    for (const CsvFormat& csv :
         {CsvFormat{}, CsvFormat{.missing = MissingRule::mean}, CsvFormat{.numeric = {"price"}}}) {
      CHECK_THAT(error_with(text, csv, values), Contains("t.csv: line 4, column 'price'"));
    }
    // The same holds if classes are numbers, and for the first line.
    CHECK_THAT(error_with(text, {}, {}), Contains("t.csv: line 4, column 'price'"));
    CHECK_THAT(error_with(std::string("x,price\n1,") + word + "\n2,1\n3,2\n", {}, {}),
               Contains("t.csv: line 2, column 'price'"));
    // The same holds for one of several targets.
    CHECK_THAT(error_with(std::string("x,a,b\n1,2,3\n1,") + word + ",3\n", {.target = {"a", "b"}}, {}),
               Contains("line 3, column 'a'"));
  }
  // A target that holds words only is refused as well, unless the config says that it holds classes.
  const std::string words = "x,y\n1,low\n2,high\n3,low\n";
  CHECK_THAT(error_with(words, {}, values), Contains("line 2, column 'y': 'low' is not a number"));
  CHECK(error_with(words, {.categorical = {"y"}}, values) == "no error");
  CHECK(error_with(words, {}, {.classes = 2, .use = {.target_values = true}}) == "no error");
  CHECK(error_with(begin + "350\n80,420\n", {}, values) == "no error");
  // A text for a missing value is not a class, unless the config lists the target as categorical.
  CHECK_THAT(error_with("x,y\n1,cat\n2,dog\n3,NA\n", {}, {}), Contains("line 4, column 'y': 'NA'"));
  CHECK(error_with("x,y\n1,cat\n2,dog\n3,NA\n", {.categorical = {"y"}}, {}) == "no error");
  CHECK(error_with("x,y\n1,3\n2,b\n3,3\n", {.categorical = {"y"}}, {}) == "no error");
}

TEST_CASE("csv: the error for a word in the validation target names line and column") {
  const TempFolder folder;
  write_file(folder / "t.csv", "x,price\n1,2.5\n2,3.5\n");
  write_file(folder / "v.csv", "x,price\n1,2.5\n2,NA\n");
  const DeclaredInfo values{.use = {.target_values = true}};
  const DatasetInfo info = csv_dataset({folder / "t.csv"}, {}, values)->info();
  CHECK_THROWS_WITH(csv_dataset({folder / "v.csv"}, {}, {.training = &info}),
                    Catch::Contains("v.csv: line 3, column 'price': 'NA'"));
}

TEST_CASE("csv: errors report a first line that is a sample, another delimiter and another encoding") {
  using Catch::Contains;
  const std::string iris = "5.1,3.5,setosa\n4.9,3.0,setosa\n7.0,3.2,versicolor\n";
  CHECK_THAT(error_of(iris), Contains("its first line, '5.1,3.5,...', looks like a sample"));
  CHECK_THAT(error_of("p,x\ne,x\np,y\ne,y\n"), Contains("looks like a sample"));
  CHECK_THAT(error_of("1,2,3\n4,5,6\n7,8,9\n"), Contains("looks like a sample"));
  const TempFolder folder;
  const auto lines_of = [&](const std::string& text, const CsvFormat& csv = {}) {
    write_file(folder / "t.csv", text);
    return csv_dataset({folder / "t.csv"}, csv, {})->size();
  };
  CHECK(lines_of(iris, {.header = {false}}) == 3);
  CHECK(lines_of("5.1,3.5,1\n4.9,3.0,0\n", {.header = {true}}) == 1);
  CHECK(lines_of("0,1,2\n5,6,0\n7,8,1\n") == 2);            // pandas' names for unnamed columns
  CHECK(lines_of("2019,2020,2021\n5,6,0\n7,8,1\n") == 2);   // years
  CHECK(lines_of("400.5,401.5,fat\n1,2,0\n3,4,1\n") == 2);  // wavelengths and a name
  CHECK(lines_of("no,yes\n1,no\n2,yes\n") == 2);

  CHECK_THAT(error_of("a;b;y\n1;2;3\n"), Contains("holds ';'") && Contains("set `delimiter: \";\"`"));
  CHECK_THAT(error_of("a\tb\ty\n1\t2\t3\n"), Contains("set `delimiter: \"\\t\"`"));
  CHECK_THAT(error_of("\"fixed acidity\";\"quality\"\n7.4;5\n"), Contains("set `delimiter: \";\"`"));
  CHECK_THAT(error_of("a,b,y\n1,2;3,4\n"), Contains("'2;3' is not a number") && Contains("delimiter"));

  const auto wide = [](const std::string& text, bool little, bool mark) {
    std::string bytes = !mark ? "" : little ? "\xFF\xFE" : "\xFE\xFF";
    for (const char c : text) bytes += little ? std::string{c, '\0'} : std::string{'\0', c};
    return bytes;
  };
  for (const bool little : {false, true}) {
    CHECK_THAT(error_of(wide("a,b\n1,2\n", little, true)), Contains("UTF-16") && Contains("iconv -f UTF-16 -t UTF-8 "));
    const char* name = little ? "iconv -f UTF-16LE -t UTF-8 " : "iconv -f UTF-16BE -t UTF-8 ";
    CHECK_THAT(error_of(wide("a,b\n1,2\n", little, false)), Contains(name));
  }
  // The commands work for any name.
  const TempFolder named;
  const std::string path = named / "it's wide.csv";
  write_file(path, wide("a,b\n1,2\n", true, true));
  const auto run = [&](const std::string& begin) {
    try {
      csv_dataset({path}, {}, {});
    } catch (const Error& error) {
      const std::string text = error.what();
      REQUIRE(text.find(begin) != std::string::npos);
      CAPTURE(text);
      REQUIRE(std::system(format("cd '{}' && {}", named.text(), text.substr(text.find(begin))).c_str()) == 0);
      return;
    }
    FAIL("it was read");
  };
  run("iconv -f UTF-16 ");
  CHECK(read_whole(named / "it's wide-utf8.csv") == "a,b\n1,2\n");
  write_file(path, gzip("a,b\n1,2\n"));
  run("gunzip -c ");
  CHECK(read_whole(named / "it's wide-unpacked.csv") == "a,b\n1,2\n");
}

TEST_CASE("csv: a config reads training and validation data from two tables") {
  const TempFolder folder;
  write_file(folder / "train.csv", "a,b,kind\n1,2,no\n3,4,yes\n5,6,no\n");
  write_file(folder / "valid.csv", "a,b,kind\n7,8,yes\n");
  const Data data(data_options(format("{{dataset: csv, path: {0}/train.csv, target: kind, workers: 0, "
                                      "validation: {{path: {0}/valid.csv}}}}",
                                      folder.text())),
                  1);
  CHECK(data.info().inputs[0].sample == Shape{2});
  CHECK(data.info().targets[0].classes == 2);
  CHECK(data.info().validation_samples == 1);
  const auto source = data.evaluation(SplitKind::validation, 1, {});
  const Batch& batch = source->next();
  CHECK(batch.inputs[0].as<float>()[0] == 7);
  CHECK(batch.targets[0].as<std::int32_t>()[0] == 1);
}

}  // namespace trainctl::test::csv_test
