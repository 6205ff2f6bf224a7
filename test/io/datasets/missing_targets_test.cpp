// Tests tables with lines that have no target: an error that names the remedy, or lines that are left out.
#include <algorithm>
#include <random>

#include "core/base/format.h"
#include "io/datasets/tables/csv.h"
#include "io/loader/data.h"
#include "io/loader/prediction_data.h"
#include "io/loader/splits/split.h"
#include "test/catch.h"
#include "test/support/files.h"

namespace trainctl::test::missing_targets_test {
using Catch::Contains;

namespace {

std::string error_of(const std::string& table, const std::string& keys, const DataUse& use = {}) {
  const TempFolder folder;
  write_file(folder / "t.csv", table);
  try {
    Data(data_options(format("{{dataset: csv, path: {}, {}}}", folder / "t.csv", keys)), 1, use);
  } catch (const Error& error) {
    return error.what();
  }
  return "it was read";
}

// A line of a table whose target is value 2 a + b, and whether its target is written.
struct Line {
  int a = 0, b = 0;
  bool complete = true;
};

std::vector<Line> random_lines(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<Line> lines(count);
  for (Line& line : lines)
    line = {static_cast<int>(random() % 1000), static_cast<int>(random() % 100), random() % 4 != 0};
  return lines;
}

std::string text_of(const std::vector<Line>& lines) {
  const char* marks[] = {"", "NA", " ", "NaN", "?", "null", "N/A"};
  std::string text = "a,b,y,w\n";
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto& [a, b, complete] = lines[i];
    // A line that is left out may hold anything in its other columns.
    text += complete ? format("{},{},{}.5,{}\n", a, b, 2 * a + b, 1 + a % 3)
                     : format("{},{},{},\n", i % 2 == 0 ? "word" : "", b, marks[i % 7]);
  }
  return text;
}

const DataUse values{{{""}}, {{"", true}}, {}};

}  // namespace

TEST_CASE("csv: a missing target is an error that names the key which leaves the lines out") {
  for (const char* field : {"", "NA", "?"}) {
    CAPTURE(field);
    const std::string message = error_of(format("a,y\n1,2.5\n3,{}\n", field), "missing: mean", values);
    CHECK_THAT(message, Contains("line 3, column 'y'"));
    CHECK_THAT(message, Contains("set `missing_targets: drop` to leave out all lines without a target"));
    CHECK(error_of(format("a,y\n1,2.5\n3,{}\n", field), "missing_targets: drop", values) == "it was read");
  }
  CHECK_THAT(error_of("a,y\n1,\n2,NA\n", "missing_targets: drop", values),
             Contains("no line has a target") && Contains("line 2, column 'y'"));
  CHECK_THAT(error_of("a,y\n1,1\n2,2\n", "missing_targets: drop, windows: {sequence_length: 1}", values),
             Contains("windows need all lines of a series"));
}

TEST_CASE("csv: lines without a target are left out, and the others keep their values, weights and names") {
  const TempFolder folder;
  const std::vector<Line> lines = random_lines(60, 3);
  write_file(folder / "t.csv", text_of(lines));
  const auto complete = std::count_if(lines.begin(), lines.end(), [](const Line& line) { return line.complete; });
  REQUIRE(complete < 55);
  const Data data(data_options(format("{{dataset: csv, path: {}, target: y, weight: w, missing_targets: drop, "
                                      "validation: {{split: 0.25}}, workers: 0}}",
                                      folder / "t.csv")),
                  1, values);
  CHECK(data.samples(SplitKind::training) + data.samples(SplitKind::validation) == complete);
  const auto first = std::find_if(lines.begin(), lines.end(), [](const Line& line) { return !line.complete; });
  CHECK(data.info().warnings ==
        std::vector<std::string>{format("{}: {} of 60 lines lack a target and are left out (the first: line {}, column "
                                        "'y')",
                                        folder / "t.csv", 60 - complete, first - lines.begin() + 2)});
  std::vector<bool> seen(60);
  for (const SplitKind kind : {SplitKind::training, SplitKind::validation}) {
    const std::int64_t count = data.samples(kind);
    const auto source = data.evaluation(kind, count, {});
    const Batch& batch = source->next();
    REQUIRE(batch.count == count);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::string name = data.split(kind)->name_of(i), before = folder / "t.csv" + ", line ";
      REQUIRE(name.starts_with(before));
      const auto number = static_cast<std::size_t>(std::stoi(name.substr(before.size())) - 2);
      const Line& line = lines.at(number);
      CHECK(line.complete);
      CHECK_FALSE(seen[number]);
      seen[number] = true;
      CHECK(batch.inputs[0].as<float>()[2 * i] == static_cast<float>(line.a));
      CHECK(batch.inputs[0].as<float>()[2 * i + 1] == static_cast<float>(line.b));
      CHECK(batch.targets[0].as<float>()[i] == static_cast<float>(2 * line.a + line.b) + 0.5f);
      CHECK(batch.weights.as<float>()[i] == static_cast<float>(1 + line.a % 3));
    }
  }
  CHECK(std::count(seen.begin(), seen.end(), true) == complete);
}

TEST_CASE("csv: a resumed epoch and other ranks see the complete lines exactly once") {
  const TempFolder folder;
  const std::vector<Line> lines = random_lines(61, 8);
  write_file(folder / "t.csv", text_of(lines));
  const Data data(data_options(format("{{dataset: csv, path: {}, target: y, weight: w, missing_targets: drop, "
                                      "workers: 0}}",
                                      folder / "t.csv")),
                  7, values);
  const std::int64_t count = data.samples(SplitKind::training), resumed = 16;
  std::vector<float> whole, parts;
  const auto add = [](const Batch& batch, std::vector<float>& to) {
    for (std::int64_t i = 0; i < batch.count; ++i) to.push_back(batch.targets[0].as<float>()[i]);
  };
  add(data.training(count, {}, {7, 2, 0})->next(), whole);
  add(data.training(resumed, {}, {7, 2, 0})->next(), parts);
  for (int rank = 0; rank < 2; ++rank) {
    add(data.training(count - resumed, {MeshRank(Mesh{.data = 2}, rank)}, {7, 2, resumed})->next(), parts);
  }
  std::ranges::sort(whole);
  std::ranges::sort(parts);
  CHECK(whole == parts);
}

TEST_CASE("csv: a line is left out if any of its targets is missing, and words are classes") {
  const DataUse two{{{""}}, {{"kind"}, {"price", true}}, {}};
  const TempFolder folder;
  write_file(folder / "t.csv", "a,kind,price\n1,,2\n2,cat,3\n3,NA,4\n4,dog,?\n5,dog,5\n");
  write_file(folder / "v.csv", "a,kind,price\n6,cat,\n7,dog,1\n");
  const Data data(data_options(format("{{dataset: csv, path: {}, validation: {{path: {}}}, missing_targets: drop, "
                                      "targets: {{kind: kind, price: price}}, workers: 0}}",
                                      folder / "t.csv", folder / "v.csv")),
                  1, two);
  CHECK(data.samples(SplitKind::training) == 2);
  CHECK(data.samples(SplitKind::validation) == 1);
  CHECK(data.info().targets[0].class_names == std::vector<std::string>{"cat", "dog"});
  REQUIRE(data.info().warnings.size() == 2);
  CHECK_THAT(data.info().warnings[1], Contains("v.csv: 1 of 2 lines lacks a target and is left out"));
  const auto source = data.evaluation(SplitKind::training, 2, {});
  const Batch& batch = source->next();
  CHECK(batch.inputs[0].as<float>()[1] == 5);
  CHECK(batch.targets[0].as<std::int32_t>()[1] == 1);
  CHECK(batch.targets[1].as<float>()[1] == 5);

  // With `drop`, marks are missing in a categorical column, too; without it, they are classes.
  write_file(folder / "c.csv", "a,kind\n1,NA\n2,cat\n3,\n4,dog\n");
  const Data words(
      data_options(format("{{dataset: csv, path: {}, categorical: kind, missing_targets: drop}}", folder / "c.csv")),
      1);
  CHECK(words.samples(SplitKind::training) == 2);
  CHECK(words.info().targets[0].class_names == std::vector<std::string>{"cat", "dog"});
  write_file(folder / "c.csv", "a,kind\n1,NA\n2,cat\n4,NA\n");
  const Data kept(data_options(format("{{dataset: csv, path: {}, categorical: kind}}", folder / "c.csv")), 1);
  CHECK(kept.info().targets[0].class_names == std::vector<std::string>{"NA", "cat"});
}

TEST_CASE("csv: prediction reads the lines without a target, too") {
  const TempFolder folder;
  write_file(folder / "t.csv", "a,b,y\n1,2,3.5\n4,5,\n7,8,9.5\n");
  const DataOptions options =
      data_options(format("{{dataset: csv, path: {}, missing_targets: drop}}", folder / "t.csv"));
  const Data data(options, 1, values);
  CHECK(data.samples(SplitKind::training) == 2);
  const PredictionData prediction(options, data.kept_inputs(), {{""}}, {folder / "t.csv"});
  REQUIRE(prediction.samples() == 3);
  CHECK(prediction.warnings().empty());
  const auto source = prediction.batches(3, {}, 1, {});
  CHECK(source->next().inputs[0].as<float>()[2] == 4);
}

TEST_CASE("csv: class numbers that cannot be classes are named with their line") {
  CHECK_THAT(error_of("a,y\n1,0\n\n2,1\n3,-1\n", "target: y"),
             Contains("t.csv: line 5, column 'y': the class -1 is negative") && Contains("categorical: [y]"));
  CHECK_THAT(error_of("a,y\n1,0\n2,7\n", "target: y, classes: 3"),
             Contains("t.csv: line 3, column 'y': the class 7 is not in 0 to 2") && Contains("`classes`"));
  const TempFolder folder;
  write_file(folder / "t.csv", "a,y\n1,0\n2,1\n");
  write_file(folder / "v.csv", "a,y\n1,0\n2,2\n");
  CHECK_THROWS_WITH(
      Data(data_options(
               format("{{dataset: csv, path: {}, validation: {{path: {}}}}}", folder / "t.csv", folder / "v.csv")),
           1),
      Contains("v.csv: line 3, column 'y': the class 2 is not in the training split, which has 2 classes"));
}

TEST_CASE("csv: words and classes of a network that was trained with them are no missing values") {
  const TempFolder folder;
  const auto open = [&](const std::string& text, const CsvFormat& format, const DeclaredInfo& declared) {
    write_file(folder / "t.csv", text);
    return csv_dataset({folder / "t.csv"}, format, declared);
  };
  const std::string listed = "k,y\nn/a,cat\nred,#N/A\nred,cat\n";
  const DatasetInfo info = open(listed, {.categorical = {"k", "y"}, .out_of_vocabulary = false}, {})->info();
  REQUIRE(info.class_names == std::vector<std::string>{"#N/A", "cat"});
  const CsvFormat other{
      .out_of_vocabulary = false, .missing = MissingRule::mean, .missing_targets = MissingTarget::drop};
  const auto read = open("k,y\nn/a,#N/A\nNA,cat\nred,NULL\n", other, {.sample = info.sample, .training = &info});
  REQUIRE(read->size() == 2);  // NULL is no class of the network
  CHECK(read->label(0) == 0);
  Sample sample;
  const auto values_of = [&](std::int64_t line) {
    read->read(line, sample);
    const auto* first = static_cast<const float*>(sample.values);
    return std::vector<float>(first, first + 2);
  };
  CHECK(values_of(0) == std::vector<float>{1, 0});
  CHECK(values_of(1) == std::vector<float>{0, 0});  // NA is no word of the network, and thus missing
}

TEST_CASE("csv: a mark among classes is refused with what makes it a class") {
  CHECK_THAT(error_of("a,y\n1,cat\n2,n/a\n", "target: y"),
             Contains("line 3, column 'y': 'n/a'") && Contains("if 'n/a' is a class, set `categorical: [y]`"));
  CHECK(error_of("a,y\n1,cat\n2,n/a\n", "target: y, categorical: [y]") == "it was read");
  CHECK_THAT(error_of("a,y\n1,3.5\n2,n/a\n", "target: y", values), !Contains("is a class"));
}

TEST_CASE("csv: a missing target of a series is refused without advice to remove its line") {
  for (const char* field : {"", "NA", "x"}) {
    CAPTURE(field);
    const std::string message = error_of(format("a,y,w\n1,2.5,1\n3,{},0\n4,1.5,1\n", field),
                                         "target: y, columns: a, weight: w, windows: {sequence_length: 1}", values);
    CHECK_THAT(message, Contains("line 3, column 'y'") && Contains("write any value") &&
                            Contains("the weight 0 by a column that `weight` names"));
    CHECK_THAT(message, !Contains("sed") && !Contains("leave out"));
  }
}

TEST_CASE("csv: lines of several files that are left out are counted for all files") {
  const TempFolder folder;
  write_file(folder / "1.csv", "a,y\n1,2.5\n3,4.5\n");
  write_file(folder / "2.csv", "a,y\n1,3.5\n2,\n5,NA\n");
  write_file(folder / "3.csv", "a,y\n6,\n7,1.5\n");
  const Data data(
      data_options(
          format("{{dataset: csv, path: [{0}/1.csv, {0}/2.csv, {0}/3.csv], missing_targets: drop}}", folder.text())),
      1, values);
  CHECK(data.info().warnings ==
        std::vector<std::string>{format("{0}/1.csv and 2 more files: 3 of 7 lines lack a target and are left out (the "
                                        "first: {0}/2.csv, line 3, column 'y')",
                                        folder.text())});
}

}  // namespace trainctl::test::missing_targets_test
