// Tests sample weights from tables and records.
#include <random>

#include "io/datasets/records/tfrecord.h"
#include "io/datasets/tables/csv.h"
#include "io/loader/data.h"
#include "test/catch.h"
#include "test/support/files.h"
#include "test/support/records.h"

namespace trainctl::test::sample_weights_test {
using Catch::Contains;

namespace {

std::vector<float> random_weights(std::size_t count) {
  std::mt19937 random(11);
  std::vector<float> weights;
  for (std::size_t i = 0; i < count; ++i) weights.push_back(static_cast<float>(random() % 400) / 100);
  return weights;
}

// Returns the weights of an epoch's samples by their numbers. Sets `width` to the number of values of a sample.
std::vector<float> weights_of(const Data& data, std::int64_t samples, std::int64_t& width) {
  const auto source = data.training(7, {}, {1, 0, 0});
  std::vector<float> weights(static_cast<std::size_t>(samples), -1.0f);
  for (bool last = false; !last;) {
    const Batch& batch = source->next();
    last = batch.last_of_epoch;
    width = batch.inputs[0].count / batch.count;
    for (std::int64_t i = 0; i < batch.count; ++i) {
      weights[static_cast<std::size_t>(batch.samples.as<std::int64_t>()[i])] = batch.weights.as<float>()[i];
    }
  }
  return weights;
}

float validation_weight(const Data& data) {
  return data.evaluation(SplitKind::validation, 1, {})->next().weights.as<float>()[0];
}

// Returns the error of opening a data set, or "no error".
std::string problem(const std::string& yaml, ErrorKind kind = ErrorKind::data) {
  try {
    const Data data(data_options(yaml), 1);
  } catch (const Error& error) {
    CHECK(error.kind() == kind);
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("csv: a column of weights gives the samples' weights and is not an input") {
  const TempFolder folder;
  const std::vector<float> weights = random_weights(30);
  for (const bool last : {false, true}) {
    std::string text = last ? "a,b,y,w\n" : "a,w,b,y\n";
    for (std::size_t i = 0; i < weights.size(); ++i) {
      text += last ? format("{},{},{},{}\n", i, 2 * i, i % 3, weights[i])
                   : format("{},{},{},{}\n", i, weights[i], 2 * i, i % 3);
    }
    write_file(folder / "t.csv", text);
    write_file(folder / "v.csv", "a,b,y\n1,2,0\n");
    const Data data(data_options(format("{{dataset: csv, path: {0}/t.csv, weight: w, validation: {{path: {0}/v.csv}}}}",
                                        folder.text())),
                    1);
    std::int64_t width = 0;
    CHECK(weights_of(data, 30, width) == weights);
    CHECK(width == 2);
    CHECK(data.info().targets[0].classes == 3);
    CHECK(validation_weight(data) == 1);  // the validation table has no weights
  }
  write_file(folder / "v.csv", "y,w,b,a\n0,2.5,1,1\n");
  const Data data(data_options(format("{{dataset: csv, path: {0}/t.csv, target: y, weight: w, "
                                      "validation: {{path: {0}/v.csv}}}}",
                                      folder.text())),
                  1);
  CHECK(validation_weight(data) == 2.5f);
  const auto refused = [&](const std::string& text, const std::string& keys, ErrorKind kind = ErrorKind::data) {
    write_file(folder / "t.csv", text);
    return problem(format("{{dataset: csv, path: {}, {}}}", folder / "t.csv", keys), kind);
  };
  CHECK_THAT(refused("a,w,y\n1,1,0\n1,-2,1\n", "weight: w"), Contains("line 3, column 'w': the weight is -2"));
  CHECK_THAT(refused("a,w,y\n1,,0\n", "weight: w"), Contains("line 2, column 'w'"));
  CHECK_THAT(refused("a,w,y\n1,x,0\n", "weight: w"), Contains("line 2, column 'w': 'x' is not a number"));
  CHECK_THAT(refused("a,w,y\n1,1,0\n", "weight: ww", ErrorKind::config), Contains("has no column 'ww'"));
  CHECK_THAT(refused("a,w,y\n1,1,0\n", "weight: w, columns: [a, w]", ErrorKind::config),
             Contains("is the weight, but is also the target or in `columns`"));
}

TEST_CASE("tfrecord: a feature gives the samples' weights") {
  const TempFolder folder;
  const std::vector<float> weights = random_weights(20);
  std::string records;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const auto number = static_cast<std::int64_t>(i);
    records += tf_record(example({{"x", floats_feature({1, 2, 3})},
                                  {"y", ints_feature({number % 4})},
                                  {"w", i == 3 ? ints_feature({2}) : floats_feature({weights[i]})}}));
  }
  write_file(folder / "a.tfrecord", records);
  write_file(folder / "v.tfrecord", tf_record(example({{"x", floats_feature({1, 2, 3})}, {"y", ints_feature({1})}})));
  const Data data(data_options(format("{{dataset: tfrecord, path: {0}/a.tfrecord, features: [x], label: y, "
                                      "weight: w, validation: {{path: {0}/v.tfrecord}}}}",
                                      folder.text())),
                  1);
  std::int64_t width = 0;
  std::vector<float> expected = weights;
  expected[3] = 2;
  CHECK(weights_of(data, 20, width) == expected);
  CHECK(validation_weight(data) == 1);
  const auto refused = [&](const std::string& weight) {
    write_file(folder / "a.tfrecord",
               tf_record(example({{"x", floats_feature({1})}, {"y", ints_feature({1})}, {"w", weight}})));
    return problem(
        format("{{dataset: tfrecord, path: {}/a.tfrecord, features: [x], label: y, weight: w}}", folder.text()));
  };
  CHECK_THAT(refused(floats_feature({-1})), Contains("record 0") && Contains("has weight -1"));
  CHECK_THAT(refused(floats_feature({1, 2})), Contains("has more than 1 value"));
  CHECK_THAT(refused(bytes_feature("x")), Contains("holds bytes, but a weight is expected"));
}

}  // namespace trainctl::test::sample_weights_test
