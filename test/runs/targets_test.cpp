// Tests what users write for loss, labels and arrays: it trains as in Keras, or `check` and `run` report the same
// error.
#include "core/base/format.h"
#include "test/catch.h"
#include "test/support/command.h"
#include "test/support/files.h"

namespace trainctl::test::targets_test {
namespace {

struct Case {
  const char* description;
  const char* targets;  // a file of write_arrays()
  const char* data;     // more keys of data
  const char* loss;
  const char* metric;
  int outputs;
  const char* remedy;  // empty if it trains
};

const Case cases[] = {
    {"yes or no as numbers", "two", "", "binary_crossentropy", "accuracy", 1, ""},
    {"the same, an output for each", "two", "label_mode: int", "binary_crossentropy", "accuracy", 2, ""},
    {"class numbers for one-hot", "four", "", "categorical_crossentropy", "accuracy", 4, ""},
    {"class numbers as one-hot values", "four", "classes: 4", "mean_squared_error", "accuracy", 4, ""},
    {"whole numbers to be found", "whole", "", "mean_squared_error", "mean_absolute_error", 1, ""},
    {"one-hot for numbers", "four", "label_mode: categorical", "sparse_categorical_crossentropy", "accuracy", 4,
     "leave label_mode out"},
    {"0 or 1 for classes", "two", "label_mode: binary", "categorical_crossentropy", "accuracy", 2,
     "leave label_mode out"},
    {"one-hot for one output", "two", "label_mode: categorical", "binary_crossentropy", "accuracy", 1, "2 outputs"},
    {"whole numbers, four outputs", "four", "", "mean_squared_error", "accuracy", 4, "data.classes"},
    {"values for numbers", "whole", "classes: 0", "sparse_categorical_crossentropy", "accuracy", 4, "integers from 0"},
};

std::string config_of(const Folder& folder, const Case& c) {
  return folder.write("targets.yaml", format(R"(data: {{dataset: npy, x: x.npy, y: {}.npy{}{}}}
model: {{layers: [{{dense: {{units: 8, activation: relu}}}}, {{dense: {{units: {}}}}}]}}
train:
  batch_size: 16
  max_steps: 2
  loss: {}
  metrics: [{}]
  optimizer: {{name: sgd, learning_rate: 1e-4}}
)",
                                             c.targets, *c.data ? ", " : "", c.data, c.outputs, c.loss, c.metric));
}

void write_arrays(const Folder& folder) {
  std::vector<float> x(60 * 8);
  std::vector<std::int64_t> two(60), four(60), whole(60);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 7919 % 113) / 113.0f - 0.5f;
  for (std::size_t i = 0; i < two.size(); ++i) {
    two[i] = static_cast<std::int64_t>(i % 2);
    four[i] = static_cast<std::int64_t>(i % 4);
    whole[i] = static_cast<std::int64_t>(i * 37 % 150) - 40;
  }
  folder.write("x.npy", npy("<f4", "(60, 8)", raw(x)));
  folder.write("two.npy", npy("<i8", "(60,)", raw(two)));
  folder.write("four.npy", npy("<i8", "(60,)", raw(four)));
  folder.write("whole.npy", npy("<i8", "(60,)", raw(whole)));
}

TEST_CASE("loss, label mode and targets fit together, or check and run report the same error") {
  const Folder folder;
  write_arrays(folder);
  for (const Case& c : cases) {
    CAPTURE(c.description);
    const std::string config = config_of(folder, c);
    const Finished checked = trainctl(folder, {"check", config, "--quiet"});
    const Finished run = trainctl(folder, {"run", config, "--ranks", "1", "--resume", "never"});
    INFO(tail(checked.errors));
    INFO(tail(run.errors));
    CHECK(checked.code == (*c.remedy ? 2 : 0));
    CHECK(run.code == checked.code);
    if (*c.remedy == 0) continue;
    CHECK(contains(checked.errors, c.remedy));
    CHECK(contains(checked.errors, "targets.yaml:6:"));
    CHECK(contains(run.errors, c.remedy));
  }
}

TEST_CASE("whole numbers of a regression may be negative and beyond those of training, and are learnt as values") {
  const Folder folder;
  std::vector<float> x;
  std::vector<std::int64_t> y;
  for (std::int64_t i = 0; i < 60; ++i) {
    x.push_back(static_cast<float>(i) / 60);
    y.push_back(4 * i - 100);
  }
  folder.write("x.npy", npy("<f4", "(60, 1)", raw(x)));
  folder.write("y.npy", npy("<i8", "(60,)", raw(y)));
  x.assign(4, 1.5f);
  y.assign(4, 260);
  folder.write("more_x.npy", npy("<f4", "(4, 1)", raw(x)));
  folder.write("more_y.npy", npy("<i8", "(4,)", raw(y)));
  const std::string config = folder.write("line.yaml", R"(
data: {dataset: npy, x: x.npy, y: y.npy, validation: {x: more_x.npy, y: more_y.npy}}
model: {layers: [{dense: {units: 1}}]}
train: {batch_size: 60, epochs: 400, loss: mean_squared_error, metrics: [mean_absolute_error],
        optimizer: {name: sgd, learning_rate: 0.2, momentum: 0.9}}
log: {every: 1 epoch}
checkpoint: {every: 400 epochs}
)");
  const Finished run = trainctl(folder, {"run", config, "--ranks", "1", "--json"});
  INFO(tail(run.errors));
  REQUIRE(run.code == 0);
  CHECK(events(folder / "runs/line", "epoch").back()["validation"]["mean_absolute_error"].get<double>() < 1);
}

TEST_CASE("arrays may be named X and Y or have channels first, and unscaled bytes are reported") {
  const Folder folder;
  const std::string pixels = random_bytes(40 * 3 * 16 * 16, 1);
  std::vector<std::int64_t> y(40);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = static_cast<std::int64_t>(i % 4);
  folder.write("first/X.npy", npy("|u1", "(40, 3, 16, 16)", pixels));
  folder.write("first/Y.npy", npy("<i8", "(40,)", raw(y)));
  folder.write("last/x.npy", npy("|u1", "(40, 16, 16, 3)", pixels));
  folder.write("last/y.npy", npy("<i8", "(40,)", raw(y)));
  const auto config = [&](const char* where, const char* more) {
    return folder.write(format("{}.yaml", where), format(R"(
data: {{dataset: npy, path: {}{}}}
model: {{layers: [flatten, {{dense: {{units: 32, activation: relu}}}}, {{dense: {{units: 4}}}}]}}
train: {{batch_size: 20, max_steps: 2, loss: sparse_categorical_crossentropy, optimizer: adam}}
)",
                                                         where, more));
  };
  const std::string first = config("first", "");
  const Finished checked = trainctl(folder, {"check", first});
  CHECK(checked.code == 0);
  CHECK(count(checked.errors, "channels first") == 1);
  const Finished run = trainctl(folder, {"run", first, "--ranks", "2"});
  INFO(tail(run.errors));
  CHECK(run.code == 0);
  CHECK(count(run.errors, "channels first") == 1);
  CHECK(count(run.errors, "rescale: 1/255") == 1);

  const Finished scaled = trainctl(folder, {"run", config("last", ", transform: [{rescale: 1/255}]"), "--ranks", "1"});
  CHECK(scaled.code == 0);
  CHECK(count(scaled.errors, "warning") == 0);
}

}  // namespace
}  // namespace trainctl::test::targets_test
