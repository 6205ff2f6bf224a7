// Tables against files that the tests write themselves.
#include <cstring>
#include <random>

#include "io/datasets/tables/csv.h"
#include "io/loader/data.h"
#include "test/catch.h"
#include "test/data/files.h"

namespace trainctl::test::csv_test {
namespace {

std::vector<float> sample_of(const Dataset& dataset, std::int64_t index, std::vector<float>* target = nullptr) {
  Sample sample;
  dataset.read(index, sample);
  REQUIRE(sample.dtype == DType::float32);
  const auto* values = static_cast<const float*>(sample.values);
  if (target) target->assign(sample.target, sample.target + dataset.facts().target.count());
  return {values, values + sample.shape.count()};
}

// What a table is refused with.
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

TEST_CASE("csv: random values come back, whatever the line ends") {
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
    CHECK(dataset->facts().sample == Shape{4});
    CHECK(dataset->facts().classes == 0);
    for (std::int64_t i = 0; i < 41; ++i) {
      const auto& row = rows[static_cast<std::size_t>(i)];
      std::vector<float> target;
      CHECK(sample_of(*dataset, i, &target) == std::vector<float>(row.begin(), row.end() - 1));
      CHECK(target == std::vector<float>{row.back()});
    }
  }
}

TEST_CASE("csv: columns, delimiter, quotes and a table without a header") {
  const TempFolder folder;
  write_file(folder / "t.csv", "\"weight; net\";\"the \"\"class\"\"\n\";x\n1.5;cat;+2e3\n\"-1\"; dog ;0\n");
  const auto named = csv_dataset(
      {folder / "t.csv"}, {.delimiter = ";", .target = {"the \"class\"\n"}, .columns = {"x", "weight; net"}}, {});
  CHECK(sample_of(*named, 0) == std::vector<float>{2000, 1.5f});
  CHECK(sample_of(*named, 1) == std::vector<float>{0, -1});
  CHECK(named->facts().class_names == std::vector<std::string>{"cat", "dog"});
  write_file(folder / "u.csv", "1\t2\t3\n4\t5\t6\n");
  const auto plain = csv_dataset({folder / "u.csv"}, {.delimiter = "\t", .header = false, .target = {"1", "2"}}, {});
  REQUIRE(plain->size() == 2);
  std::vector<float> target;
  CHECK(sample_of(*plain, 1, &target) == std::vector<float>{6});
  CHECK(target == std::vector<float>{4, 5});
}

TEST_CASE("csv: targets are words, class numbers or values") {
  const TempFolder folder;
  write_file(folder / "words.csv", "x,y\n1,pear\n2,apple\n3,pear\n4,Zebra\n");
  const auto words = csv_dataset({folder / "words.csv"}, {}, {});
  CHECK(words->facts().class_names == std::vector<std::string>{"Zebra", "apple", "pear"});
  CHECK(words->label(0) == 2);
  CHECK(words->label(3) == 0);
  write_file(folder / "few.csv", "x,y\n1,pear\n");
  const DatasetFacts facts = words->facts();
  const StatedFacts held_out{{}, {}, &facts};
  CHECK(csv_dataset({folder / "few.csv"}, {}, held_out)->label(0) == 2);
  write_file(folder / "more.csv", "x,y\n1,plum\n");
  CHECK_THROWS_WITH(csv_dataset({folder / "more.csv"}, {}, held_out), Catch::Contains("plum"));

  write_file(folder / "numbers.csv", "x,y\n1,0\n2,2\n");
  CHECK(csv_dataset({folder / "numbers.csv"}, {}, {})->facts().classes == 3);
  CHECK(csv_dataset({folder / "numbers.csv"}, {}, {.use = {.target_values = true}})->facts().classes == 0);
  write_file(folder / "values.csv", "x,y\n1,0.5\n2,2\n");
  CHECK(csv_dataset({folder / "values.csv"}, {}, {})->facts().target == Shape{1});
}

TEST_CASE("csv: what is wrong is told with line and column") {
  using Catch::Contains;
  CHECK_THAT(error_of("a,b\n1,2\n3\n"), Contains("line 3 has 1 fields, not 2"));
  CHECK_THAT(error_of("a,b,y\n1,x,2\n"), Contains("line 2, column 'b': 'x' is no number"));
  CHECK_THAT(error_of("a,b,y\n1,,2\n"), Contains("line 2, column 'b' is empty"));
  CHECK_THAT(error_of("a,y\n1,2\n\n\"\n\",1\n"), Contains("line 4, column 'a' is empty") || Contains("line 4"));
  CHECK_THAT(error_of("a,y\nnan,1\n"), Contains("'nan' is no number"));
  CHECK_THAT(error_of("a,y\n1e39,1\n"), Contains("'1e39' is no number"));
  CHECK_THAT(error_of("a,y\n\"1,1\n"), Contains("line 2: a quotation mark is not closed"));
  CHECK_THAT(error_of("a,y\n\"1\"2,1\n"), Contains("text follows a closing quotation mark"));
  CHECK_THAT(error_of("a,a\n1,1\n"), Contains("two columns 'a'"));
  CHECK_THAT(error_of("y\n1\n"), Contains("no column beside its target"));
  CHECK_THAT(error_of("a,y\n"), Contains("no line of values"));
  CHECK_THAT(error_of("\n\n"), Contains("holds no lines"));
  CHECK_THAT(error_of("a,b\n1,2\n", {.target = {"b"}, .columns = {"a", "b"}}, ErrorKind::config),
             Contains("column 'b'") && Contains("is the target"));
  CHECK_THAT(error_of("a,b,c\n1,2,x\n", {.target = {"b", "c"}}), Contains("line 2, column 'c': 'x' is no number"));
  CHECK_THAT(error_of("age,wage\n1,1\n", {.target = {"Wage"}}, ErrorKind::config),
             Contains("no column 'Wage'; did you mean 'wage'?"));
}

TEST_CASE("csv: a table as the data of a config, its validation apart") {
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
  const auto source = data.evaluation(PartKind::validation, 1, {});
  const Batch& batch = source->next();
  CHECK(batch.inputs[0].as<float>()[0] == 7);
  CHECK(batch.targets[0].as<std::int32_t>()[0] == 1);
}

}  // namespace trainctl::test::csv_test
