// Tests that errors for NaN and infinity in samples and targets name the file and the sample, for every data set and
// split.
#include <limits>

#include "io/datasets/arrays/array.h"
#include "io/datasets/arrays/npy.h"
#include "io/loader/data.h"
#include "io/loader/inputs/finite_read.h"
#include "io/loader/prediction_data.h"
#include "test/catch.h"
#include "test/support/files.h"
#include "test/support/records.h"

namespace trainctl::test::finite_test {
namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr float infinity = std::numeric_limits<float>::infinity();

DataUse use_of_values() {
  DataUse use;
  use.targets[0].values = true;
  return use;
}

// Returns the error of reading two epochs of a split, or "no error".
std::string error_of(const std::string& yaml, SplitKind split = SplitKind::training) {
  try {
    const Data data(data_options(yaml), 1, use_of_values());
    const auto source = split == SplitKind::training ? data.training(4, {}, {1, 0, 0}) : data.evaluation(split, 4, {});
    for (std::int64_t i = 0; i < 2 * (data.samples(split) + 3) / 4; ++i) source->next();
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::data);
    return error.what();
  }
  return "no error";
}

// `count` values of 8, except for `value` at index `wrong`.
std::vector<float> eights(std::size_t count, std::size_t wrong, float value) {
  std::vector<float> values(count, 8);
  if (wrong < count) values[wrong] = value;
  return values;
}

}  // namespace

TEST_CASE("not finite: errors name the file, the sample and the index of a value, and the file of a target") {
  using Catch::Contains;
  const TempFolder folder;
  const std::string x = folder / "x.npy", y = folder / "y.npy";
  const auto write = [&](const std::vector<float>& samples, const std::vector<float>& targets) {
    write_file(x, npy("<f4", "(7, 3)", raw(samples)));
    write_file(y, npy("<f4", "(7, 1)", raw(targets)));
  };
  const std::string yaml = format("{{dataset: npy, x: {}, y: {}, workers: 0}}", x, y);
  write(eights(21, 21, 0), eights(7, 7, 0));
  CHECK(error_of(yaml) == "no error");
  write(eights(21, 16, nan), eights(7, 7, 0));
  CHECK_THAT(error_of(yaml), Contains("x.npy, sample 5: holds NaN at index 1 of 3 values"));
  write(eights(21, 0, -infinity), eights(7, 7, 0));
  CHECK_THAT(error_of(yaml), Contains("x.npy, sample 0: holds -infinity at index 0 of 3 values"));
  write(eights(21, 21, 0), eights(7, 6, infinity));
  CHECK_THAT(error_of(yaml), Contains("y.npy, sample 6: has the target infinity"));
  // float64 values that float32 cannot represent, and big-endian values.
  write_file(y, npy("<f8", "(7, 1)", raw(std::vector<double>{1, 2, 1e300, 4, 5, 6, 7})));
  CHECK_THAT(error_of(yaml),
             Contains("y.npy, sample 2: holds 1e+300 at index [2, 0], which is beyond the range of float32") &&
                 Contains("on_error: skip"));
  write(eights(21, 21, 0), eights(7, 7, 0));
  std::string swapped = raw(eights(21, 4, nan));
  for (std::size_t i = 0; i < swapped.size(); i += 4) std::reverse(&swapped[i], &swapped[i] + 4);
  write_file(x, npy(">f4", "(7, 3)", swapped));
  CHECK_THAT(error_of(yaml), Contains("x.npy, sample 1: holds NaN"));
}

TEST_CASE("not finite: numbers beyond float32 are skipped with the name of the sample, and refused as weights") {
  using Catch::Contains;
  const TempFolder folder;
  const auto write = [&](const std::string& name, double value) {
    write_file(folder / name, npy("<f8", "(4, 1)", raw(std::vector<double>{1, 2, value, 4})));
  };
  write("x.npy", 1e300);
  write("y.npy", 3);
  const std::string base = format("{{dataset: npy, x: {0}/x.npy, y: {0}/y.npy, workers: 0", folder.text());
  CHECK(error_of(base + ", on_error: skip}") == "no error");
  const auto dataset = array_inputs(read_npy(folder / "x.npy"), {});
  Sample sample;
  CHECK_THROWS_WITH(read_finite(*dataset, 2, true, sample),
                    (folder / "x.npy, sample 2: holds 1e+300 at index [2, 0], which is ") + beyond_float32);
  CHECK_THROWS_WITH(read_finite(*dataset, 2, false, sample), Contains("leave out such samples with `on_error: skip`"));
  write("x.npy", 3);
  write("w.npy", 1e300);
  const std::string refused = error_of(base + format(", weights: {}/w.npy, on_error: skip}}", folder.text()));
  CHECK_THAT(refused, Contains("w.npy: holds 1e+300 at index [2, 0], which is beyond the range of float32"));
  CHECK_THAT(refused, Contains("weights must be finite and at least 0") && !Contains("on_error"));
}

TEST_CASE("not finite: values are found with normalize: measured, in a cache and in validation data") {
  using Catch::Contains;
  const TempFolder folder;
  write_file(folder / "x.npy", npy("<f4", "(7, 3)", raw(eights(21, 16, nan))));
  write_file(folder / "good.npy", npy("<f4", "(7, 3)", raw(eights(21, 21, 0))));
  write_file(folder / "y.npy", npy("<f4", "(7, 1)", raw(eights(7, 7, 0))));
  const std::string base = format("{{dataset: npy, x: {0}/x.npy, y: {0}/y.npy, workers: 0", folder.text());
  CHECK_THAT(error_of(base + ", transform: [{normalize: measured}]}"), Contains("x.npy, sample 5: holds NaN"));
  CHECK_THAT(error_of(base + ", cache: memory}"), Contains("x.npy, sample 5: holds NaN"));
  const std::string held_out =
      format("{{dataset: npy, x: {0}/good.npy, y: {0}/y.npy, workers: 0, validation: {{x: {0}/x.npy, y: {0}/y.npy}}}}",
             folder.text());
  CHECK(error_of(held_out) == "no error");
  CHECK_THAT(error_of(held_out, SplitKind::validation), Contains("x.npy, sample 5: holds NaN"));
}

TEST_CASE("not finite: errors name the record of a TFRecord file") {
  using Catch::Contains;
  const TempFolder folder;
  const auto write = [&](float value, float target) {
    std::string file;
    for (int i = 0; i < 4; ++i) {
      file += tf_record(
          example({{"a", floats_feature({1, i == 2 ? value : 2})}, {"y", floats_feature({i == 3 ? target : 4})}}));
    }
    write_file(folder / "t.tfrecord", file);
  };
  const std::string yaml =
      format("{{dataset: tfrecord, path: {}/t.tfrecord, features: [a], workers: 0}}", folder.text());
  write(3, 4);
  CHECK(error_of(yaml) == "no error");
  write(nan, 4);
  CHECK_THAT(error_of(yaml), Contains("t.tfrecord, record 2: holds NaN at index 1 of 2 values"));
  write(3, -infinity);
  CHECK_THAT(error_of(yaml), Contains("t.tfrecord, record 3: has the target -infinity"));
}

TEST_CASE("not finite: a sample with such a value has weight 0 if on_error is skip, and in predictions") {
  const TempFolder folder;
  write_file(folder / "x.npy", npy("<f4", "(4, 3)", raw(eights(12, 7, nan))));
  write_file(folder / "y.npy", npy("<f4", "(4, 1)", raw(eights(4, 4, 0))));
  const std::string base =
      format("{{dataset: npy, x: {0}/x.npy, y: {0}/y.npy, workers: 0, shuffle: false", folder.text());
  const std::vector<float> without_third{1, 1, 0, 1};
  {
    const Data data(data_options(base + ", on_error: skip, transform: [{normalize: measured}]}"), 1, use_of_values());
    CHECK(data.measured().at(0).mean == std::vector<double>{8, 8, 8});
    const auto source = data.training(4, {}, {1, 0, 0});
    const Batch& batch = source->next();
    CHECK(std::vector<float>(batch.weights.as<float>(), batch.weights.as<float>() + 4) == without_third);
    CHECK(batch.inputs[0].as<float>()[7] == 0);
  }
  write_file(folder / "x.npy", npy("<f4", "(4, 3)", raw(eights(12, 12, 0))));
  const DataOptions options = data_options(base + "}");
  const Data data(options, 1, use_of_values());
  write_file(folder / "asked.npy", npy("<f4", "(4, 3)", raw(eights(12, 7, infinity))));
  const PredictionData asked(options, data.kept_inputs(), {DataUse::Input{}}, {folder / "asked.npy"});
  const auto source = asked.batches(4, {}, 1, {});
  const Batch& batch = source->next();
  CHECK(std::vector<float>(batch.weights.as<float>(), batch.weights.as<float>() + 4) == without_third);
}

}  // namespace trainctl::test::finite_test
