// Tests eval as a check in scripts: bounds on metrics, and the values of each class.
#include "core/base/format.h"
#include "test/catch.h"
#include "test/support/command.h"
#include "test/support/configs.h"

namespace trainctl::test::eval_test {

TEST_CASE("eval fails if a metric misses its bound, on any number of ranks") {
  const Folder folder;
  const std::string config =
      folder.write("bounds.yaml", uneven_data + mlp_model +
                                      train_section("batch_size: 20, epochs: 3, optimizer: {name: sgd, "
                                                    "learning_rate: 0.05}"));
  REQUIRE(trainctl(folder, {"run", config, "--ranks", "1"}).code == 0);
  const auto eval = [&](std::vector<std::string> more, const std::string& ranks = "1") {
    more.insert(more.begin(), {"eval", config, "--ranks", ranks});
    return trainctl(folder, more);
  };
  const Json found = Json::parse(eval({"--json"}).out);
  const double accuracy = found["accuracy"], loss = found["loss"];
  const std::string exactly = format("accuracy={:.17g}", accuracy), more = format("accuracy={}", accuracy + 0.01),
                    below = format("loss={}", loss * 0.99), above = format("loss={}", loss * 1.01);
  for (const char* ranks : {"1", "2"}) {
    CAPTURE(ranks);
    CHECK(eval({"--threshold", exactly, "--threshold", above}, ranks).code == 0);
    const Finished missed = eval({"--threshold", more, "--threshold", below}, ranks);
    INFO(missed.errors);
    CHECK(missed.code == 1);
    CHECK(contains(missed.errors, format("accuracy {:.6g} is not at least", accuracy)));
    CHECK(contains(missed.errors, format("loss {:.6g} is not at most", loss)));
    CHECK(contains(missed.out, "accuracy"));
    const Finished answer = eval({"--json", "--threshold", exactly, "--threshold", below}, ranks);
    CHECK(answer.code == 1);
    const Json thresholds = Json::parse(answer.out)["thresholds"];
    CHECK(thresholds["accuracy"]["met"] == true);
    CHECK(thresholds["loss"]["met"] == false);
    CHECK(thresholds["loss"]["bound"] == Approx(loss * 0.99));
  }
  const Finished wrong = eval({"--threshold", "acc=0.9", "--threshold", "accuracy=high"});
  CHECK(wrong.code == 2);
  CHECK(contains(wrong.errors, "'acc' is no metric of this config; use loss or accuracy"));
  CHECK(contains(wrong.errors, "--threshold accuracy=high: a threshold is METRIC=VALUE"));
}

TEST_CASE("eval --confusion reports the values of each class that follow from the confusion matrix") {
  const Folder folder;
  const std::string config = folder.write(
      "classes.yaml", uneven_data + mlp_model + train_section("batch_size: 20, epochs: 2, optimizer: adam"));
  REQUIRE(trainctl(folder, {"run", config, "--ranks", "1"}).code == 0);
  const Finished run = trainctl(folder, {"eval", config, "--ranks", "2", "--confusion", "--json"});
  INFO(run.errors);
  REQUIRE(run.code == 0);
  CHECK_FALSE(contains(run.errors, "differs"));
  const Json found = Json::parse(run.out);
  const Json& classes = found["classes"]["confusion_matrix"];
  REQUIRE(classes.size() == 5);
  double right = 0, samples = 0;
  for (std::size_t k = 0; k < classes.size(); ++k) {
    CHECK(classes[k]["class"] == std::to_string(k));
    double row = 0, column = 0;
    for (std::size_t other = 0; other < classes.size(); ++other) {
      row += found["confusion_matrix"][k][other].get<double>();
      column += found["confusion_matrix"][other][k].get<double>();
    }
    const double hits = found["confusion_matrix"][k][k];
    CHECK(classes[k]["samples"] == row);
    CHECK(classes[k]["precision"].get<double>() * column == Approx(hits));
    CHECK(classes[k]["recall"].get<double>() * row == Approx(hits));
    right += hits;
    samples += row;
  }
  CHECK(samples == 37);
  CHECK(right / samples == Approx(found["accuracy"].get<double>()));
  CHECK(contains(trainctl(folder, {"eval", config, "--confusion"}).out, "precision"));
  const Finished values = trainctl(
      folder, {"eval", config, "--confusion", "--set", "train.loss=mean_squared_error", "--set", "train.metrics=[]"});
  CHECK(values.code == 2);
  CHECK(contains(values.errors, "--confusion requires an output with classes"));
}

}  // namespace trainctl::test::eval_test
