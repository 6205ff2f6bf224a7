// Tests windows of a series in tables and arrays against windows that the test cuts itself.
#include <cmath>
#include <random>

#include "io/loader/data.h"
#include "test/catch.h"
#include "test/support/files.h"
#include "test/support/records.h"

namespace trainctl::test::windows_test {
using Catch::Contains;

namespace {

struct Series {
  std::vector<float> load, level, weight;
};

Series random_series(int count) {
  std::mt19937 random(6);
  std::normal_distribution<float> normal(5, 3);
  Series series;
  for (int i = 0; i < count; ++i) {
    series.load.push_back(normal(random));
    series.level.push_back(normal(random));
    series.weight.push_back(static_cast<float>(random() % 100) / 10);
  }
  return series;
}

std::string table_of(const Series& series) {
  std::string text = "load,level,w\n";
  for (std::size_t i = 0; i < series.load.size(); ++i) {
    text += format("{},{},{}\n", series.load[i], series.level[i], series.weight[i]);
  }
  return text;
}

struct Case {
  std::int64_t length, stride, rate, horizon;

  std::string text() const {
    return format("{{sequence_length: {}, sequence_stride: {}, sampling_rate: {}, horizon: {}}}", length, stride, rate,
                  horizon);
  }
  std::int64_t last() const { return (length - 1) * rate + horizon; }
};

// The first rows of the windows within the rows [begin, end), among those that begin at a multiple of the stride.
std::vector<std::size_t> starts_within(const Case& c, std::int64_t begin, std::int64_t end) {
  std::vector<std::size_t> found;
  for (std::int64_t start = 0; start + c.last() < end; start += c.stride) {
    if (start >= begin) found.push_back(static_cast<std::size_t>(start));
  }
  return found;
}

const DataUse values{{DataUse::Input{}}, {{"", true}}, {}};

// Compares all windows of a split with those that begin at `starts`. The rows have both columns, or the load alone.
void check_windows(const Data& data, SplitKind split, const Series& series, const Case& c,
                   const std::vector<std::size_t>& starts, bool both, bool weighted) {
  REQUIRE(data.samples(split) == std::ssize(starts));
  const std::size_t width = both ? 2 : 1;
  CHECK(data.info().inputs[0].sample == Shape{c.length, static_cast<std::int64_t>(width)});
  const auto source = data.evaluation(split, std::ssize(starts), {});
  const Batch& batch = source->next();
  const float* read = batch.inputs[0].as<float>();
  for (std::size_t i = 0; i < starts.size(); ++i) {
    for (std::int64_t k = 0; k < c.length; ++k) {
      const std::size_t row = starts[i] + static_cast<std::size_t>(k * c.rate);
      CHECK(*read++ == series.load[row]);
      if (both) CHECK(*read++ == series.level[row]);
    }
    const std::size_t last = starts[i] + static_cast<std::size_t>(c.last());
    CHECK(batch.targets[0].as<float>()[i] == series.level[last]);
    CHECK(batch.weights.as<float>()[i] == (weighted ? series.weight[last] : 1));
  }
}

std::string raw_floats(const std::vector<float>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(float)};
}

std::string error_of(const std::string& yaml) {
  try {
    const Data data(data_options(yaml), 1, values);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("windows of tables and arrays hold the rows and targets of a series, and are split by time") {
  const TempFolder folder;
  constexpr int rows = 60;
  const Series series = random_series(rows);
  std::vector<float> x;
  for (int i = 0; i < rows; ++i) {
    x.push_back(series.load[static_cast<std::size_t>(i)]);
    x.push_back(series.level[static_cast<std::size_t>(i)]);
  }
  write_file(folder / "t.csv", table_of(series));
  write_file(folder / "x.npy", npy("<f4", format("({}, 2)", rows), raw_floats(x)));
  write_file(folder / "y.npy", npy("<f4", format("({}, 1)", rows), raw_floats(series.level)));
  write_file(folder / "w.npy", npy("<f4", format("({},)", rows), raw_floats(series.weight)));
  const std::string table = format("dataset: csv, path: {}, target: level, weight: w", folder / "t.csv");
  const std::string arrays = format("dataset: npy, x: {0}/x.npy, y: {0}/y.npy, weights: {0}/w.npy", folder.text());
  for (const Case c : {Case{5, 1, 1, 1}, Case{4, 3, 2, 5}, Case{1, 2, 7, 0}, Case{7, 4, 3, 2}, Case{6, 1, 2, 24}}) {
    INFO(c.text());
    for (const std::string& set : {table, arrays}) {
      const bool both = set == arrays || c.horizon > 0;  // a target in the window's last row is not a column of samples
      const Data whole(data_options(format("{{{}, workers: 0, windows: {}}}", set, c.text())), 1, values);
      check_windows(whole, SplitKind::training, series, c, starts_within(c, 0, rows), both, true);
      if (c.horizon == 24) continue;
      const Data split(
          data_options(format("{{{}, workers: 0, windows: {}, validation: {{split: 0.4}}}}", set, c.text())), 1,
          values);
      constexpr std::int64_t cut = rows - 24;
      check_windows(split, SplitKind::training, series, c, starts_within(c, 0, cut), both, true);
      check_windows(split, SplitKind::validation, series, c, starts_within(c, cut, rows), both, true);
    }
  }
}

TEST_CASE("columns are standardised by the rows of the training windows alone") {
  const TempFolder folder;
  const Series series = random_series(50);
  write_file(folder / "t.csv", table_of(series));
  const Data data(data_options(format("{{dataset: csv, path: {}, columns: load, target: level, standardize: true, "
                                      "workers: 0, windows: {{sequence_length: 3, horizon: 2}}, validation: {{split: "
                                      "0.3}}}}",
                                      folder / "t.csv")),
                  1, values);
  double sum = 0, squares = 0;
  for (std::size_t i = 0; i < 35; ++i) sum += series.load[i];
  for (std::size_t i = 0; i < 35; ++i) squares += (series.load[i] - sum / 35) * (series.load[i] - sum / 35);
  const double mean = sum / 35, deviation = std::sqrt(squares / 35);
  const auto source = data.evaluation(SplitKind::validation, 1, {});
  const float* window = source->next().inputs[0].as<float>();
  for (std::size_t k = 0; k < 3; ++k) CHECK(window[k] == Approx((series.load[35 + k] - mean) / deviation).margin(1e-5));
}

TEST_CASE("empty fields of a series are replaced as `missing` says, or are an error with their line and column") {
  const TempFolder folder;
  const Series series = random_series(40);
  std::string text = "load,level\n";
  double sum = 0;
  constexpr std::size_t empty = 6;  // among the training rows
  for (std::size_t i = 0; i < series.load.size(); ++i) {
    text += format("{},{}\n", i == empty ? "" : format("{}", series.load[i]), series.level[i]);
    if (i != empty && i < 30) sum += double{series.load[i]};
  }
  write_file(folder / "s.csv", text);
  const auto windows = [&](const std::string& more) {
    const std::string yaml = format(
        "{{dataset: csv, path: {}, columns: [load], target: level, windows: "
        "{{sequence_length: 3}}, validation: {{split: 0.25}}{}}}",
        folder / "s.csv", more);
    const Data data(data_options(yaml), 1, values);
    const auto source = data.training(data.samples(SplitKind::training), {}, {1, 0, 0});
    const Batch& batch = source->next();
    std::vector<float> found;
    for (std::int64_t i = 0; i < batch.count; ++i) {
      const auto first = static_cast<std::size_t>(batch.samples.as<std::int64_t>()[i]);
      if (first <= empty && first + 3 > empty) {
        found.push_back(batch.inputs[0].as<float>()[static_cast<std::size_t>(3 * i) + empty - first]);
      }
    }
    return found;
  };
  CHECK_THROWS_WITH(windows(""), Contains("s.csv: line 8, column 'load' is empty") && Contains("unless the lines are a "
                                                                                               "series"));
  CHECK(windows(", missing: 2.5") == std::vector<float>{2.5f, 2.5f, 2.5f});
  const std::vector<float> means = windows(", missing: mean");
  REQUIRE(means.size() == 3);
  for (const float mean : means) CHECK(mean == Approx(sum / 29));
}

TEST_CASE("a series of tokens gives windows of tokens, with the class of a later row") {
  const TempFolder folder;
  std::string x, y;
  for (int i = 0; i < 12; ++i) {
    x += static_cast<char>(i * 5 % 9);
    y += static_cast<char>(i % 3);
  }
  write_file(folder / "x.npy", npy("|u1", "(12,)", x));
  write_file(folder / "y.npy", npy("|u1", "(12,)", y));
  const Data data(data_options(format("{{dataset: npy, path: {}, workers: 0, windows: {{sequence_length: 4, horizon: "
                                      "0}}}}",
                                      folder.text())),
                  1, {{{"", 9}}, {DataUse::Target{}}, {}});
  CHECK(data.info().inputs[0].sample == Shape{4});
  CHECK(data.info().targets[0].classes == 3);
  REQUIRE(data.samples(SplitKind::training) == 9);
  const auto source = data.evaluation(SplitKind::training, 9, {});
  const Batch& batch = source->next();
  for (int i = 0; i < 9; ++i) {
    for (int k = 0; k < 4; ++k) CHECK(batch.inputs[0].as<std::int32_t>()[i * 4 + k] == (i + k) * 5 % 9);
    CHECK(batch.targets[0].as<std::int32_t>()[i] == (i + 3) % 3);
  }
}

TEST_CASE("each input of a network has windows of its own columns, with the same rows") {
  const TempFolder folder;
  const Series series = random_series(40);
  std::string text = "day,load,level\n";
  for (std::size_t i = 0; i < 40; ++i) text += format("d{},{},{}\n", i % 7, series.load[i], series.level[i]);
  write_file(folder / "t.csv", text);
  const Data data(
      data_options(format("{{dataset: csv, path: {}, target: level, workers: 0, windows: {{sequence_length: "
                          "5, horizon: 2}}, inputs: {{past: [level, load], day: day}}}}",
                          folder / "t.csv")),
      1, {{{"past"}, {"day", 8}}, {{"", true}}, {}});
  CHECK(data.info().inputs[0].sample == Shape{5, 2});
  CHECK(data.info().inputs[1].sample == Shape{5});
  REQUIRE(data.samples(SplitKind::training) == 34);
  const auto source = data.evaluation(SplitKind::training, 34, {});
  const Batch& batch = source->next();
  for (std::size_t i = 0; i < 34; ++i) {
    for (std::size_t k = 0; k < 5; ++k) {
      CHECK(batch.inputs[0].as<float>()[i * 10 + k * 2] == series.level[i + k]);
      CHECK(batch.inputs[0].as<float>()[i * 10 + k * 2 + 1] == series.load[i + k]);
      CHECK(batch.inputs[1].as<std::int32_t>()[i * 5 + k] == static_cast<std::int32_t>(1 + (i + k) % 7));
    }
    CHECK(batch.targets[0].as<float>()[i] == series.level[i + 6]);
  }
}

TEST_CASE("a series that is too short for its windows, or in several files, is refused") {
  const TempFolder folder;
  write_file(folder / "t.csv", table_of(random_series(20)));
  const std::string table = format("dataset: csv, path: {}, target: level", folder / "t.csv");
  const auto problem = [&](const std::string& windows, const std::string& more = "") {
    return error_of(format("{{{}, windows: {{{}}}{}}}", table, windows, more));
  };
  CHECK(problem("sequence_length: 20, horizon: 0") == "no error");
  CHECK_THAT(problem("sequence_length: 20"), Contains("has 20 rows, and a window with its target needs 21"));
  CHECK_THAT(problem("sequence_length: 5", ", validation: {split: 0.2}"),
             Contains("of the first 16 and the last 4, one part is too short for a window, which needs 6 rows"));
  CHECK_THAT(problem("sequence_length: 3", ", validation: {split: 0.4, stratify: true}"),
             Contains("leave out `stratify`"));
  CHECK_THAT(error_of(format("{{dataset: csv, path: [{0}/t.csv, {0}/t.csv], windows: {{sequence_length: 3}}}}",
                             folder.text())),
             Contains("2 files are given"));
  CHECK_THROWS_WITH(data_options(format("{{{}, windows: {{}}}}", table)), Contains("sequence_length"));
  CHECK_THROWS_AS(data_options(format("{{{}, windows: {{sequence_length: 3, horizon: -1}}}}", table)), ConfigError);
}

}  // namespace trainctl::test::windows_test
