// Tests tables with words, missing values, dates and standardised columns.
#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <set>
#include <span>

#include "io/datasets/tables/csv.h"
#include "io/loader/data.h"
#include "io/loader/inputs/kept_input.h"
#include "test/catch.h"
#include "test/support/files.h"

namespace trainctl::test::csv_columns_test {
using Catch::Contains;

namespace {

std::vector<float> sample_of(const Dataset& dataset, std::int64_t index) {
  Sample sample;
  dataset.read(index, sample);
  const auto* values = static_cast<const float*>(sample.values);
  return {values, values + sample.shape.count()};
}

// A table opened from its text.
struct Opened {
  Opened(const std::string& text, const CsvFormat& format = {}, const DeclaredInfo& declared = {}) {
    write_file(folder / "t.csv", text);
    dataset = csv_dataset({folder / "t.csv"}, format, declared);
  }
  std::vector<float> operator[](std::int64_t index) const { return sample_of(*dataset, index); }
  const DatasetInfo& info() const { return dataset->info(); }

  TempFolder folder;
  std::shared_ptr<const Dataset> dataset;
};

std::string error_of(const std::string& text, const CsvFormat& format = {}, const DeclaredInfo& declared = {},
                     ErrorKind kind = ErrorKind::data) {
  try {
    const Opened opened(text, format, declared);
  } catch (const Error& error) {
    CHECK(error.kind() == kind);
    return error.what();
  }
  FAIL_CHECK("it was read: " << text);
  return "";
}

using Row = std::vector<float>;

}  // namespace

TEST_CASE("csv: words become one-hot values in bytewise order, at the position of their column") {
  const Opened table("a,kind,b,y\n1,pear,2,0\n3,Zebra,4,1\n5,\"app\nle, \"\"red\"\"\",6,1\n7,pear,8,0\n");
  CHECK(table.info().sample == Shape{6});
  CHECK(table[0] == Row{1, 0, 0, 0, 1, 2});
  CHECK(table[1] == Row{3, 0, 1, 0, 0, 4});
  CHECK(table[2] == Row{5, 0, 0, 1, 0, 6});
  CHECK(table[3] == Row{7, 0, 0, 0, 1, 8});
  CHECK(table.dataset->label(2) == 1);
  CHECK(table.info().classes == 2);
  // A column of numbers that the config makes categorical, and a shape set in the config.
  const Opened codes("zip,y\n10115,0\n20095,1\n10115,1\n80331,0\n",
                     {.categorical = {"zip"}, .out_of_vocabulary = false}, {.sample = Shape{1, 3}});
  CHECK(codes.info().sample == Shape{1, 3});
  CHECK(codes[1] == Row{0, 1, 0});
  CHECK(codes[2] == Row{1, 0, 0});
  // A column whose words all differ is categorical only if the config lists it.
  CHECK_THAT(error_of("name,a,y\nAnn,1,0\nBob,2,1\n"),
             Contains("line 2, column 'name': 'Ann' is not a number") && Contains("categorical"));
  CHECK(Opened("name,a,y\nAnn,1,0\nBob,2,1\n", {.categorical = {"name"}})[1] == Row{0, 0, 1, 2});
  // Chosen columns keep the declared order.
  CHECK(Opened("a,k,y\n1,u,0\n2,v,1\n3,u,1\n", {.columns = {"k", "a"}})[1] == Row{0, 0, 1, 2});
}

TEST_CASE("csv: a word in a column of numbers is an error that names line and column") {
  CHECK_THAT(error_of("a,y\n1,0\n2,0\nx,1\n"), Contains("line 4, column 'a': 'x' is not a number"));
  CHECK_THAT(error_of("a,y\nx,0\nx,0\n3,1\n"), Contains("line 2, column 'a': 'x' is not a number"));
  CHECK_THAT(error_of("a,y\nx,0\nx,1\n", {.numeric = {"a"}}), Contains("line 2, column 'a': 'x' is not a number"));
  CHECK_THAT(error_of("a,y\n\"1\n\",0\n2,0\n", {.numeric = {"a"}}), Contains("line 2"));
  CHECK_THAT(error_of("a,k,y\n1,\"u\nv\",0\n1,\"u\nv\",0\nx,u,1\n"), Contains("line 6, column 'a': 'x'"));
  CHECK_THAT(error_of("a,y\n1,cat\n2,dog\n", {.numeric = {"y"}}),
             Contains("line 2, column 'y': 'cat' is not a number"));
  CHECK_THAT(error_of("a,y\n1,0\n", {.categorical = {"b"}}, {}, ErrorKind::config), Contains("no column 'b'"));
  std::string many = "w,y\n";
  for (int i = 0; i < 1002; ++i) many += format("w{},0\nw{},1\n", i, i);
  CHECK_THAT(error_of(many), Contains("line 2002, column 'w'") && Contains("more than 1000 different words"));
  CHECK(Opened(many, {.categorical = {"w"}}).info().sample == Shape{1003});
}

TEST_CASE("csv: numbers with marks are no words unless the config says so") {
  CHECK_THAT(error_of("a,y\n10%,0\n20%,1\n10%,1\n"),
             Contains("line 2, column 'a': '10%' is not a number: it has a percent sign") && Contains("sed -E") &&
                 Contains("`categorical`"));
  CHECK_THAT(error_of("a;y\n1;0\n1.040,5;1\n", {.delimiter = ";"}),
             Contains("line 3, column 'a': '1.040,5'") && Contains("points between thousands and a decimal comma") &&
                 Contains("write the numbers of this column with a decimal point and without other marks") &&
                 !Contains("sed"));
  CHECK(Opened("a,y\n10%,0\n20%,1\n10%,1\n", {.categorical = {"a"}})[1] == Row{0, 0, 1});
  for (const char* id : {"601 234 567", "000 111 222", "192.168.100.100"}) {
    CAPTURE(id);
    CHECK(Opened(format("a,y\n{0},0\n{0},1\n", id))[1] == Row{0, 1});
    CHECK_THAT(error_of(format("a,y\n5,0\n{},1\n", id)), Contains("line 3, column 'a'"));
  }
  CHECK_THAT(error_of("a,y\n1 040,0\n1 040,1\n5,1\n"),
             Contains("line 2, column 'a': '1 040' is not a number: it has spaces"));
}

TEST_CASE("csv: two spellings of a number are not two classes, and missing targets are not filled") {
  CHECK_THAT(error_of("a,y\n1,1\n2,0\n3,1.0\n", {.categorical = {"y"}}),
             Contains("line 4, column 'y': the classes '1.0' and '1' (line 2) are the same number"));
  CHECK(Opened("a,y\n1,16777216\n2,16777217\n", {.categorical = {"y"}}).info().classes == 2);
  CHECK(Opened("a,y\n1,1.1\n2,1.10\n", {.categorical = {"y"}}).info().classes == 2);
  CHECK(Opened("a,y\n1,1\n2,01\n", {.categorical = {"y"}}).info().classes == 2);
  // The classes of a run that was trained before this was an error.
  DatasetInfo training;
  training.class_names = {"0", "1", "1.0"};
  training.classes = 3;
  CHECK(Opened("a,y\n1,1\n2,1.0\n", {.categorical = {"y"}}, {.training = &training}).dataset->label(1) == 2);
  CHECK_THAT(error_of("a,y\n1,NA\n", {}),
             Contains("line 2, column 'y'") && Contains("`missing` does not fill targets") && Contains("sed 2d "));
  CHECK_THAT(error_of("a,k,y\n1,u,1\n2,\"u\nv\",NA\n3,u,1\n"), Contains("line 3, column 'y'") && Contains("sed 3,4d "));
  CHECK_THAT(error_of("a,k,y\n1,u,1\n2,\"u\nv\",NA"), Contains("sed 3,4d "));
  CHECK_THAT(error_of("a,y\n1,2\n3,\n", {.missing = MissingRule::mean}),
             Contains("line 3, column 'y' is empty") && Contains("`missing` does not fill targets"));
}

TEST_CASE("csv: categorical numbers in the target are classes, and dates are refused") {
  const Opened quality("a,quality\n1,7\n2,3\n3,7\n4,5\n", {.categorical = {"quality"}});
  CHECK(quality.info().class_names == std::vector<std::string>{"3", "5", "7"});
  CHECK(quality.dataset->label(0) == 2);
  CHECK(quality.dataset->label(1) == 0);
  for (const char* date : {"2024-01-31", "2024-01-31T10:00:00Z", "2024-1-31 10:00", "31.01.2024", "1/31/2024"}) {
    INFO(date);
    const std::string twice = format("day,y\n{0},1\n{0},2\n", date);
    CHECK_THAT(error_of(twice),
               Contains(format("line 2, column 'day': '{}' is a date", date)) && Contains("days since the first"));
    CHECK_THAT(error_of(format("a,y\n1,{}\n", date)), Contains("line 2, column 'y'") && Contains("is a date"));
    CHECK(Opened(twice, {.categorical = {"day"}})[0] == Row{0, 1});
  }
  for (const char* other : {"2024-01-31x", "1-2-3", "192.168.0.1", "20240-01-01", "a-b-c"}) {
    INFO(other);
    CHECK(Opened(format("a,y\n{0},1\n{0},2\n", other))[0] == Row{0, 1});
  }
}

TEST_CASE("csv: missing values are replaced as configured, or are errors") {
  const std::string text = "a,b,k,y\n1,10,u,0\n,20,v,1\nNA,?,,0\n5,30,v,1\n";
  CHECK_THAT(error_of(text), Contains("line 3, column 'a' is empty") && Contains("missing"));
  CHECK_THAT(error_of("a,y\n1,0\nNA,1\n"),
             Contains("line 3, column 'a': 'NA' is not a number") && Contains("`missing`"));
  const Opened mean(text, {.missing = MissingRule::mean});
  CHECK(mean[0] == Row{1, 10, 0, 1, 0});
  CHECK(mean[1] == Row{3, 20, 0, 0, 1});
  CHECK(mean[2] == Row{3, 20, 0, 0, 0});
  CHECK(Opened(text, {.missing = MissingRule::zero})[2] == Row{0, 0, 0, 0, 0});
  CHECK(Opened(text, {.missing = -7.5})[2] == Row{-7.5, -7.5, 0, 0, 0});
  // NA (Namibia) is not a missing value in a column listed as categorical.
  CHECK(Opened("c,y\nNA,0\nDE,1\n,1\n", {.categorical = {"c"}, .missing = MissingRule::zero}).info().sample ==
        Shape{3});
  CHECK_THAT(error_of("a,b,y\n1,,0\n2,,1\n", {.missing = MissingRule::zero}), Contains("column 'b' holds no value"));
  CHECK_THAT(error_of("a,b,y\n1,,0\n2,,1\n", {.numeric = {"b"}, .missing = MissingRule::mean}),
             Contains("column 'b' holds no value"));
  CHECK_THAT(error_of("a,y\n1,0\n2,\n", {.missing = MissingRule::mean}), Contains("line 3, column 'y' is empty"));
}

TEST_CASE("csv: columns are standardised by mean and variance of a direct sum, constant ones become 0") {
  std::mt19937 random(11);
  std::normal_distribution<double> normal(50, 1e3);
  constexpr int rows = 200;
  std::vector<double> values(rows);
  std::string text = "a,constant,k,y\n";
  for (int i = 0; i < rows; ++i) {
    values[static_cast<std::size_t>(i)] = static_cast<float>(normal(random));
    text += format("{},0.1,{},0.5\n", values[static_cast<std::size_t>(i)], i % 2 ? "u" : "v");
  }
  const auto check = [&](const DeclaredInfo& declared, int used) {
    double mean = 0, variance = 0;
    for (int i = 0; i < used; ++i) mean += values[static_cast<std::size_t>(i)] / used;
    for (int i = 0; i < used; ++i) variance += std::pow(values[static_cast<std::size_t>(i)] - mean, 2) / used;
    const Opened table(text, {.standardize = true}, declared);
    for (const int i : {0, 1, 77, 199}) {
      const Row row = table[i];
      REQUIRE(row.size() == 5);
      CHECK(row[0] == Approx((values[static_cast<std::size_t>(i)] - mean) / std::sqrt(variance)).epsilon(1e-5));
      CHECK(row[1] == 0);
      CHECK(row[2] == 0);
      CHECK(row[3] == (i % 2 ? 1.0f : 0.0f));
    }
  };
  check({}, rows);
  // Only the training samples of a split count.
  DeclaredInfo split;
  split.trained_on = [&](const Dataset& dataset) {
    CHECK(dataset.size() == rows);
    std::vector<std::int64_t> first(120);
    for (std::size_t i = 0; i < first.size(); ++i) first[i] = static_cast<std::int64_t>(i);
    return first;
  };
  check(split, 120);
}

TEST_CASE("csv: validation data is read with the columns, words and statistics of the training data") {
  const Opened training("a,k,y\n1,u,cat\n3,w,dog\n,u,cat\n8,w,cat\n",
                        {.missing = MissingRule::mean, .standardize = true});
  const DatasetInfo info = training.info();
  const CsvFormat same{.missing = MissingRule::mean, .standardize = true};
  const DeclaredInfo held_out{.sample = info.sample, .training = &info};
  const double mean = 4, deviation = std::sqrt((9. + 1 + 0 + 16) / 4);
  // The columns are in another order, there is one more, and the training data's word 'u' does not occur.
  const Opened other("y,extra,k,a\ndog,zzz,w,10\ncat,zzz,w,\n", same, held_out);
  CHECK(other.info().sample == Shape{4});
  CHECK(other[0] == Row{static_cast<float>((10 - mean) / deviation), 0, 0, 1});
  CHECK(other[1] == Row{0, 0, 0, 1});
  CHECK(other.dataset->label(0) == 1);
  CHECK_THAT(error_of("a,k,y\n1,u,cat\n1,u,emu\n", same, held_out),
             Contains("line 3, column 'y'") && Contains("the class 'emu', which is not in the training split"));
  CHECK_THAT(error_of("a,y\n1,cat\n", same, held_out), Contains("has no column 'k', which the training split has"));
  CHECK_THAT(error_of("a,K,y\n1,u,cat\n", same, held_out),
             Contains("has no column 'k', which the training split has; 'K' differs from it in upper and lower case"));
  CHECK_THAT(error_of("a,k,y\nu,u,cat\n", same, held_out), Contains("line 2, column 'a': 'u' is not a number"));
}

TEST_CASE("csv: unknown words set the first value of their column, as in Keras' StringLookup") {
  const CsvFormat csv{.missing = MissingRule::zero}, closed{.out_of_vocabulary = false, .missing = MissingRule::zero};
  const std::string train = "a,k,y\n1,u,cat\n3,w,dog\n,u,cat\n8,w,cat\n";
  // keras.layers.StringLookup(vocabulary=["u", "w"], output_mode="one_hot") of "w", "u", "other" and "2"
  const Opened training(train, csv);
  const DatasetInfo info = training.info();
  const DeclaredInfo held_out{.sample = info.sample, .training = &info};
  const Opened other("a,k,y\n1,w,cat\n2,u,cat\n3,other,cat\n4,2,cat\n5,,dog\n", csv, held_out);
  CHECK(other[0] == Row{1, 0, 0, 1});
  CHECK(other[1] == Row{2, 0, 1, 0});
  CHECK(other[2] == Row{3, 1, 0, 0});
  CHECK(other[3] == Row{4, 1, 0, 0});
  CHECK(other[4] == Row{5, 0, 0, 0});  // a missing word is not an unknown word
  CHECK_THAT(other.info().warning,
             Contains("column 'k' has words in 2 of 5 lines that are not in the training split (the "
                      "first: 'other' in line 4)"));
  CHECK(training.info().warning.empty());
  // A class that the training data does not have is always an error.
  CHECK_THAT(error_of("a,k,y\n1,u,emu\n", csv, held_out),
             Contains("the class 'emu', which is not in the training split"));

  const Opened without(train, closed);
  const DatasetInfo closed_info = without.info();
  CHECK(closed_info.sample == Shape{3});
  const DeclaredInfo closed_out{.sample = closed_info.sample, .training = &closed_info};
  CHECK_THAT(error_of("a,k,y\n1,u,cat\n2,\"x\ny\",cat\n1,v,cat\n", closed, closed_out),
             Contains("line 3, column 'k': 'x\ny' is not a word of the training split"));
  // Numbers in a column of words are unknown words.
  CHECK_THAT(error_of("a,k,y\n1,2,cat\n", closed, closed_out), Contains("line 2, column 'k': '2'"));
  // Columns from older checkpoints, which do not have this key, have no value for unknown words.
  KeptInput kept;
  kept.info = closed_info;
  std::string text = write_kept_inputs({kept});
  const std::string key = "\"out_of_vocabulary\":false,";
  REQUIRE(text.find(key) != std::string::npos);
  while (text.find(key) != std::string::npos) text.erase(text.find(key), key.size());
  CHECK(read_kept_inputs(text)[0].info.table->columns[1].width() == 2);
  kept.info = info;
  CHECK(read_kept_inputs(write_kept_inputs({kept}))[0].info.table->columns[1].width() == 3);
}

TEST_CASE("csv: a config sets how words, missing values and standardised columns are read") {
  const TempFolder folder;
  write_file(folder / "train.csv", "a,k,y\n1,u,0.5\n3,w,1.5\n,u,2\n");
  write_file(folder / "valid.csv", "k,a,y\nw,4,7\n");
  const std::string base =
      format("dataset: csv, path: {0}/train.csv, workers: 0, validation: {{path: {0}/valid.csv}}", folder.text());
  const Data data(data_options("{" + base + ", missing: mean, standardize: true, categorical: k, numeric: [a]}"), 1);
  CHECK(data.info().inputs[0].sample == Shape{4});
  const auto source = data.evaluation(SplitKind::validation, 1, {});
  const Batch& batch = source->next();
  CHECK(batch.inputs[0].as<float>()[0] == Approx(2 / std::sqrt(2. / 3)));
  CHECK(batch.inputs[0].as<float>()[1] == 0);
  CHECK(batch.inputs[0].as<float>()[2] == 0);
  CHECK(batch.inputs[0].as<float>()[3] == 1);
  CHECK_NOTHROW(Data(data_options("{" + base + ", missing: -1}"), 1));
  CHECK_THROWS_AS(data_options("{" + base + ", missing: median}"), ConfigError);
  CHECK_THROWS_AS(data_options("{" + base + ", missing: 1e50}"), ConfigError);
  CHECK_THROWS_AS(data_options("{" + base + ", categorical: [a, k], numeric: k}"), ConfigError);
  // Another vocabulary changes the fingerprint, although the numbers are the same.
  const std::string before = data.info().fingerprint;
  write_file(folder / "train.csv", "a,k,y\n1,u,0.5\n3,x,1.5\n,u,2\n");
  write_file(folder / "valid.csv", "k,a,y\nx,4,7\n");
  CHECK(Data(data_options("{" + base + ", missing: mean, standardize: true, categorical: k}"), 1).info().fingerprint !=
        before);
}

TEST_CASE("csv: with a validation split, columns are standardised by the training samples") {
  const TempFolder folder;
  std::mt19937 random(5);
  std::normal_distribution<float> normal(-20, 7);
  for (const char* stratify : {"false", "true"}) {
    std::string text = "a,y\n";
    for (int i = 0; i < 40; ++i) text += format("{},{}\n", normal(random), i % 3);
    write_file(folder / "t.csv", text);
    const Data data(data_options(format("{{dataset: csv, path: {}, standardize: true, workers: 0, "
                                        "validation: {{split: 0.4, stratify: {}}}}}",
                                        folder / "t.csv", stratify)),
                    1);
    const std::int64_t samples = data.samples(SplitKind::training);
    const auto source = data.training(samples, {}, {1, 0, 0});
    const auto* values = source->next().inputs[0].as<float>();
    double mean = 0, square = 0;
    for (std::int64_t i = 0; i < samples; ++i) {
      mean += values[i] / static_cast<double>(samples);
      square += double{values[i]} * values[i] / static_cast<double>(samples);
    }
    CHECK(std::abs(mean) < 1e-5);
    CHECK(square == Approx(1).epsilon(1e-4));
  }
}

TEST_CASE("csv: with a validation split, the words are those of the training lines") {
  const TempFolder folder;
  std::string text = "k,y\n";
  for (int i = 0; i < 40; ++i) text += format("{},{}\n", i % 2 == 0 ? format("w{}", i) : "often", i);
  write_file(folder / "t.csv", text);
  const auto with = [&](const std::string& more) {
    return Data(data_options(format("{{dataset: csv, path: {}, categorical: k, workers: 0, classes: 0, "
                                    "validation: {{split: 0.4}}{}}}",
                                    folder / "t.csv", more)),
                1);
  };
  const Data data = with("");
  const auto count_words = [&](SplitKind split) {
    const std::int64_t samples = data.samples(split);
    const auto source = split == SplitKind::training ? data.training(samples, {}, {1, 0, 0})
                                                     : data.evaluation(split, samples, {}, 1, {}, {}, {});
    const Batch& batch = source->next();
    const std::int64_t width = data.info().inputs[0].sample.count();
    std::set<std::string> words;
    std::int64_t unknown = 0;
    for (std::int64_t i = 0; i < samples; ++i) {
      const auto line = static_cast<std::int64_t>(batch.targets[0].as<float>()[i]);
      const std::span<const float> values(batch.inputs[0].as<float>() + i * width, static_cast<std::size_t>(width));
      CHECK(std::ranges::count(values, 1.0f) == 1);
      unknown += values[0] == 1 ? 1 : 0;
      words.insert(line % 2 == 0 ? format("w{}", line) : "often");
    }
    return std::pair{std::ssize(words), unknown};
  };
  const auto [trained, unknown_in_training] = count_words(SplitKind::training);
  const auto [held_out, unknown] = count_words(SplitKind::validation);
  CHECK(data.info().inputs[0].sample == Shape{trained + 1});
  CHECK(unknown_in_training == 0);
  CHECK(unknown == held_out - 1);  // all words except "often"
  CHECK(unknown > 2);
  CHECK(with(", out_of_vocabulary: false").info().inputs[0].sample == Shape{21});
}

TEST_CASE("csv: words are hashed like those of Keras' Hashing, and numbers are divided into bins") {
  const TempFolder folder;
  write_file(folder / "t.csv", "k,a,b,y\nA,-1.5,0,1\nB,1,7,2\nC,3.4,1,3\nD,0.5,2,4\nE,0,8,5\n");
  const std::string base = format(
      "dataset: csv, path: {}, target: y, classes: 0, workers: 0, shuffle: false, hash: {{k: 3}}, "
      "discretize: {{a: {{bin_boundaries: [0, 1, 2]}}, b: {{num_bins: 2}}}}",
      folder / "t.csv");
  const Data data(data_options("{" + base + ", standardize: true}"), 1);
  REQUIRE(data.info().inputs[0].sample == Shape{3 + 4 + 2});
  // The values of the examples in Keras' documentation of Hashing(num_bins=3) and Discretization([0, 1, 2]).
  const int words[] = {1, 0, 1, 1, 2}, numbers[] = {0, 2, 3, 1, 1}, halves[] = {0, 1, 0, 1, 1};
  const auto source = data.training(5, {}, {1, 0, 0});
  const auto* values = source->next().inputs[0].as<float>();
  for (int i = 0; i < 5; ++i) {
    CAPTURE(i);
    for (int k = 0; k < 9; ++k) {
      const bool is_set = k < 3 ? k == words[i] : k < 7 ? k - 3 == numbers[i] : k - 7 == halves[i];
      CHECK(values[i * 9 + k] == (is_set ? 1.0f : 0.0f));
    }
  }
  // An embedding reads the numbers of the bins, and a checkpoint keeps what the columns need.
  const DataUse tokens{{{"k", 3}, {"a", 4}}, {{"y", true}}, {}};
  const Data numbered(data_options("{" + base + ", inputs: {k: k, a: a}}"), 1, tokens);
  const auto batches = numbered.training(5, {}, {1, 0, 0});
  const Batch& batch = batches->next();
  for (int i = 0; i < 5; ++i) {
    CHECK(batch.inputs[0].as<std::int32_t>()[i] == words[i]);
    CHECK(batch.inputs[1].as<std::int32_t>()[i] == numbers[i]);
  }
  const std::vector<KeptInput> kept = read_kept_inputs(write_kept_inputs(data.kept_inputs()));
  CHECK(kept[0].info.table->columns[0].hash_bins == 3);
  CHECK(kept[0].info.table->columns[1].boundaries == std::vector<float>{0, 1, 2});
  CHECK(kept[0].info.table->columns[2].is_binned);
  CHECK_THROWS_WITH(data_options("{" + base + ", categorical: k}"), Contains("named in `hash` and in `categorical`"));
  CHECK_THROWS_WITH(
      Data(data_options("{" + base + ", inputs: {k: k, a: a}}"), 1, {{{"k", 2}, {"a", 4}}, {{"y", true}}, {}}),
      Contains("the column has 3 bins") && Contains("input_dim to 3 or more"));
}

TEST_CASE("csv: crosses are those of Keras' HashedCrossing") {
  const TempFolder folder;
  write_file(folder / "t.csv", "k,n,y\nA,101,1\nB,101,2\nA,101,3\nB,102,4\nA,102,5\n");
  write_file(folder / "reordered.csv", "y,n,k\n1,102,A\n2,101,B\n");
  const std::string base = format(
      "dataset: csv, path: {0}/t.csv, validation: {{path: {0}/reordered.csv}}, target: y, classes: 0, workers: 0, "
      "shuffle: false, crosses: {{both: {{columns: [k, n], num_bins: 5}}}}",
      folder.text());
  const DataUse tokens{{{"", 5}}, {{"", true}}, {}};
  const Data data(data_options("{" + base + ", columns: both}"), 1, tokens);
  const auto source = data.training(5, {}, {1, 0, 0});
  const auto* bins = source->next().inputs[0].as<std::int32_t>();
  const int expected[] = {1, 4, 1, 1, 3};  // the example in Keras' documentation
  for (int i = 0; i < 5; ++i) CHECK(bins[i] == expected[i]);
  const auto held_out = data.evaluation(SplitKind::validation, 2, {}, 1, {}, {}, {});
  CHECK(held_out->next().inputs[0].as<std::int32_t>()[0] == 3);
  CHECK(held_out->next().inputs[0].as<std::int32_t>()[1] == 4);
  // By default a sample has the crosses, too: 3 values for two words, a number, and 5 bins.
  CHECK(Data(data_options("{" + base + ", categorical: k}"), 1).info().inputs[0].sample == Shape{3 + 1 + 5});
  CHECK(cross_bin({{0, true, {}}, {1, false, {1, 2}}}, std::array<std::string_view, 2>{"A", "1.5"}, 1000) ==
        cross_bin({{0, true, {}}, {1, false, {}}}, std::array<std::string_view, 2>{"A", "1"}, 1000));
  CHECK_THROWS_WITH(Data(data_options("{" + base + ", discretize: {n: {num_bins: 2}}}"), 1),
                    Contains("give the column in `discretize` its bin_boundaries"));
  CHECK_THROWS_WITH(data_options("{dataset: csv, path: t.csv, crosses: {c: {columns: [a], num_bins: 5}}}"),
                    Contains("at least two columns"));
  CHECK_THROWS_WITH(data_options("{dataset: csv, path: t.csv, target: }"),
                    Contains("target must be a string or a list, not nothing"));
}

TEST_CASE("csv: the target and the weight are no crosses, and are not encoded") {
  const TempFolder folder;
  write_file(folder / "t.csv", "k,n,y,w\n7,101,1,1\n8,101,2,1\n");
  const auto error = [&](const std::string& keys) {
    try {
      const Data data(data_options("{dataset: csv, classes: 0, path: " + folder.text() + "/t.csv, " + keys + "}"), 1);
    } catch (const Error& mistake) {
      return std::string(mistake.what());
    }
    return std::string();
  };
  const std::string cross = ", crosses: {both: {columns: [k, n], num_bins: 5}}";
  CHECK(error("target: y, weight: w" + cross).empty());
  CHECK_THAT(error("target: both" + cross), Contains("has no column 'both'"));
  CHECK_THAT(error("target: y, weight: both" + cross), Contains("has no column 'both'"));
  CHECK_THAT(error("target: y, discretize: {both: {bin_boundaries: [1]}}" + cross), Contains("has no column 'both'"));
  CHECK_THAT(error("target: y, columns: [k, n], crosses: {c: {columns: [k, y], num_bins: 5}}"),
             Contains("crosses: column 'y'") && Contains("is the target"));
  CHECK_THAT(error("target: y, weight: w, crosses: {c: {columns: [k, w], num_bins: 5}}"), Contains("is the weight"));
  CHECK_THAT(error("target: y, hash: {y: 5}"), Contains("hash: column 'y'") && Contains("is the target"));
  CHECK_THAT(error("target: y, discretize: {y: {bin_boundaries: [1]}}"), Contains("discretize: column 'y'"));
  CHECK_THROWS_WITH(data_options("{dataset: csv, path: t.csv, crosses: {c: {columns: [k, k], num_bins: 5}}}"),
                    Contains("each of them once"));
  CHECK_THROWS_WITH(data_options("{dataset: csv, path: t.csv, discretize: {n: {bin_boundaries: [2, 1]}}}"),
                    Contains("1 comes after 2: sort them"));
}

TEST_CASE("csv: mistakes about series have a line of the config") {
  const TempFolder folder;
  write_file(folder / "a.csv", "a,y\n1,2\n2,3\n3,4\n4,5\n5,6\n6,7\n");
  write_file(folder / "b.csv", "a,y\n1,2\n");
  const auto error = [&](const std::string& keys) {
    try {
      const Data data(data_options("{dataset: csv, windows: {sequence_length: 2}, " + keys + "}"), 1);
    } catch (const Error& mistake) {
      return std::string(mistake.what());
    }
    return std::string();
  };
  CHECK_THAT(error(format("path: [{0}/a.csv, {0}/b.csv]", folder.text())), Contains(":1:") && Contains("one series"));
  CHECK_THAT(error(format("path: {}/a.csv, validation: {{split: 0.5, stratify: true}}", folder.text())),
             Contains(":1:") && Contains("leave out `stratify`"));
  const std::string input = "{dataset: csv, path: t.csv, label_mode: input, windows: {sequence_length: 2, horizon: ";
  CHECK_THROWS_WITH(data_options(input + "3}}"), Contains(":1:") && Contains("leave `horizon` out"));
  CHECK_NOTHROW(data_options(input + "1}}"));
}

}  // namespace trainctl::test::csv_columns_test
