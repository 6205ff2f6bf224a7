// Tests the learning rate that is scaled with the global batch, in whole runs and on a resume with another number of
// ranks.
#include <cmath>

#include "core/base/format.h"
#include "test/catch.h"
#include "test/support/command.h"
#include "test/support/configs.h"

namespace trainctl::test::scaled_rate_test {
namespace {

std::string job(const std::string& keys) {
  return uneven_data + mlp_model + train_section("epochs: 2, optimizer: {name: sgd, learning_rate: 0.02}, " + keys);
}

std::vector<double> rates(const Folder& folder, const std::string& keys, const std::string& name,
                          const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments{
      "run", folder.write(name + ".yaml", job(keys)), "--run-dir", folder / name, "--progress", "none"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const Finished run = trainctl(folder, arguments);
  INFO(tail(run.errors));
  REQUIRE(run.code == 0);
  std::vector<double> found;
  for (const Json& step : events(folder / name, "step")) found.push_back(step.at("learning_rate"));
  return found;
}

std::vector<double> times(double factor, std::vector<double> values) {
  for (double& value : values) value *= factor;
  return values;
}

void compare(const std::vector<double>& found, const std::vector<double>& expected) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) CHECK(found[i] == Approx(expected[i]).epsilon(1e-9));
}

TEST_CASE("the learning rate is scaled by the ratio of the batch to the reference batch") {
  const Folder folder;
  const std::vector<double> plain = rates(folder, "batch_size: 20, schedule: cosine", "plain");
  CHECK(plain.front() == 0.02);
  compare(rates(folder, "batch_size: 20, schedule: cosine, scale_learning_rate: 50", "less"), times(0.4, plain));
  compare(
      rates(folder, "batch_size_per_rank: 10, schedule: cosine, scale_learning_rate: true", "ranks", {"--ranks", "2"}),
      times(2, plain));
  compare(
      rates(folder, "batch_size_per_rank: 20, schedule: cosine, scale_learning_rate: true", "alone", {"--ranks", "1"}),
      plain);
  // The batch stays the same when a run is resumed with other ranks, and so does the rate.
  const std::string keys = "batch_size_per_rank: 10, scale_learning_rate: true";
  rates(folder, keys, "pieces", {"--ranks", "2"});
  const auto all = rates(folder, keys, "pieces", {"--ranks", "1", "--set", "train.epochs=3"});
  CHECK(all.size() == 18);
  CHECK(all.back() == 0.04);
}

TEST_CASE("a rate that scales with the ranks is an error if the batch does not") {
  const Folder folder;
  const Finished check =
      trainctl(folder, {"check", folder.write("fixed.yaml", job("batch_size: 20, scale_learning_rate: true"))});
  CHECK(check.code == 2);
  CHECK(contains(check.errors, "scale_learning_rate: true scales with the ranks, but batch_size is the same"));
  CHECK(trainctl(folder, {"check", folder.write("zero.yaml", job("batch_size: 20, scale_learning_rate: 0"))}).code ==
        2);
}

}  // namespace
}  // namespace trainctl::test::scaled_rate_test
