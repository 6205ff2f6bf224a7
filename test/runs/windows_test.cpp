// Tests a network that forecasts a series from windows, as users write it.
#include <cmath>
#include <filesystem>
#include <random>
#include <sstream>

#include "core/base/format.h"
#include "test/catch.h"
#include "test/support/command.h"

namespace trainctl::test::windows_run_test {
namespace {

// Returns a noisy wave and writes it with a column of noise into series.csv.
std::vector<double> write_series(const Folder& folder) {
  std::mt19937 random(2);
  std::normal_distribution<double> noise(0, 0.05);
  std::string text = "time,level,load\n";
  std::vector<double> levels;
  for (int i = 0; i < 600; ++i) {
    levels.push_back(std::sin(i / 7.0) * 3 + 10 + noise(random));
    text += format("{},{:.5f},{:.3f}\n", i, levels.back(), noise(random));
  }
  folder.write("series.csv", text);
  return levels;
}

const std::string forecast = R"(
data:
  dataset: csv
  path: series.csv
  target: level
  columns: [level, load]
  standardize: true
  windows: {sequence_length: 20, horizon: 3}
  validation: {split: 0.25}
model:
  layers:
    - gru: {units: 16}
    - dense: {units: 1}
train:
  batch_size: 32
  epochs: 30
  loss: mean_squared_error
  metrics: [r2_score]
  optimizer: {name: adam, learning_rate: 0.01}
)";

}  // namespace

TEST_CASE("a network forecasts a series on two ranks, and predicts from every window of a table") {
  const Folder folder;
  const std::vector<double> levels = write_series(folder);
  const std::string config = folder.write("forecast.yaml", forecast);
  const Finished run = trainctl(folder, {"run", config, "--ranks", "2"});
  INFO(tail(run.errors));
  REQUIRE(run.code == 0);
  CHECK(events(folder / "runs/forecast", "epoch").back()["validation"]["r2_score"].get<double>() > 0.95);

  // Prediction needs no target, so that it has a forecast after the last window, too.
  const Finished predicted = trainctl(folder, {"predict", "runs/forecast", "series.csv", "--ranks", "2"});
  INFO(tail(predicted.errors));
  REQUIRE(predicted.code == 0);
  std::istringstream lines(predicted.out);
  std::string line;
  std::getline(lines, line);
  std::size_t windows = 0;
  double squares = 0;
  for (; std::getline(lines, line); ++windows) {
    const double forecast = std::stod(line.substr(line.rfind(',') + 1));
    if (windows + 22 < levels.size()) squares += std::pow(forecast - levels[windows + 22], 2);
  }
  CHECK(windows == 581);
  CHECK(squares / static_cast<double>(windows) < 0.2);  // the variance of the series is 4.5
}

}  // namespace trainctl::test::windows_run_test
