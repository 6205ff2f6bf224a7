// Tests init with arrays: its configs fit their shapes and values, and train without changes.
#include <array>
#include <cmath>
#include <random>

#include "core/base/format.h"
#include "test/catch.h"
#include "test/support/command.h"
#include "test/support/files.h"
#include "test/support/images.h"

namespace trainctl::test::init_arrays_test {
namespace {

double last_accuracy(const std::string& run) {
  return events(run, "epoch").back()["validation"]["accuracy"].get<double>();
}

}  // namespace

TEST_CASE("init scales bytes as pixels if they have height and width, and standardises those of tables") {
  const Folder folder;
  const auto draft = [&](const std::string& name, const std::string& shape, std::size_t count) {
    folder.write(name + "/x.npy", npy("|u1", shape, random_bytes(count, 9)));
    std::vector<std::int64_t> y;
    for (int i = 0; i < 60; ++i) y.push_back(i % 3);
    folder.write(name + "/y.npy", npy("<i8", "(60,)", raw(y)));
    const Finished made = trainctl(folder, {"init", name});
    INFO(tail(made.errors));
    REQUIRE(made.code == 0);
    const Finished run = trainctl(folder, {"run", name + ".yaml", "--ranks", "1", "--set", "train.epochs=1"});
    INFO(tail(run.errors));
    CHECK(run.code == 0);
    return read_file(folder / (name + ".yaml"));
  };
  const std::string table = draft("table", "(60, 12)", 60 * 12), pixels = draft("pixels", "(60, 9, 9)", 60 * 81);
  CHECK(contains(table, "- normalize: measured"));
  CHECK_FALSE(contains(table, "1/255"));
  CHECK(contains(pixels, "- rescale: 1/255"));
  CHECK(contains(draft("colours", "(60, 9, 9, 3)", 60 * 81 * 3), "- rescale: 1/255"));
}

TEST_CASE("init reads NumPy arrays and MNIST's files") {
  const Folder folder;
  const std::string digits = std::string(TRAINCTL_SOURCE_DIR) + "/configs/data/digits.npz";
  REQUIRE(trainctl(folder, {"init", digits}).code == 0);
  const Finished run = trainctl(folder, {"run", "digits.yaml", "--ranks", "1", "--set", "train.epochs=4"});
  INFO(tail(run.errors));
  REQUIRE(run.code == 0);
  CHECK(last_accuracy(folder / "runs/digits") > 0.9);

  folder.write("old/train-images-idx3-ubyte", idx(8, {40, 9, 9}, random_bytes(40 * 81, 3)));
  folder.write("old/train-labels-idx1-ubyte", idx(8, {40}, [] {
                 std::string labels;
                 for (int i = 0; i < 40; ++i) labels += static_cast<char>(i % 4);
                 return labels;
               }()));
  REQUIRE(trainctl(folder, {"init", "old"}).code == 0);
  const std::string text = read_file(folder / "old.yaml");
  CHECK(contains(text, "validation: {split: 0.2}"));
  CHECK(contains(text, "shape: [9, 9, 1]\n  classes: 4"));
  CHECK(trainctl(folder, {"run", "old.yaml", "--ranks", "1", "--set", "train.epochs=1"}).code == 0);

  auto floats = [random = std::mt19937(5)](int count) mutable {
    std::vector<float> values;
    for (int i = 0; i < count; ++i) values.push_back(static_cast<float>(random() % 1000) / 250.0f - 2);
    return raw(values);
  };
  folder.write("values/x.npy", npy("<f4", "(30, 5)", floats(30 * 5)));
  folder.write("values/y.npy", npy("<f4", "(30, 2)", floats(30 * 2)));
  const Finished values = trainctl(folder, {"init", "values"});
  INFO(tail(values.errors));
  REQUIRE(values.code == 0);
  CHECK(contains(read_file(folder / "values.yaml"), "dense: {units: 2}"));
  CHECK(trainctl(folder, {"run", "values.yaml", "--ranks", "1", "--set", "train.epochs=1"}).code == 0);
}

TEST_CASE("init tells which samples of arrays are skipped, and that a few whole numbers are taken for values") {
  const Folder folder;
  std::mt19937 random(29);
  std::vector<float> x;
  std::vector<std::int64_t> y;
  for (int i = 0; i < 60 * 5; ++i) x.push_back(static_cast<float>(random() % 1000) / 250.0f - 2);
  for (int i = 0; i < 60; ++i) y.push_back(std::array{3, 7, 100}[random() % 3]);
  x[12 * 5 + 1] = std::nanf("");
  x[40 * 5 + 4] = INFINITY;
  folder.write("holes/x.npy", npy("<f4", "(60, 5)", raw(x)));
  folder.write("holes/y.npy", npy("<i8", "(60,)", raw(y)));
  const Finished made = trainctl(folder, {"init", "holes"});
  INFO(made.out << tail(made.errors));
  REQUIRE(made.code == 0);
  CHECK(contains(made.out, "2 samples hold NaN, infinity or a number beyond float32, the first is sample 12"));
  CHECK(
      contains(made.out, "the targets are whole numbers from 3 to 100, and are taken for values; if they are classes"));
  CHECK(contains(read_file(folder / "holes.yaml"), "on_error: skip"));
  CHECK(trainctl(folder, {"run", "holes.yaml", "--ranks", "1", "--set", "train.epochs=1"}).code == 0);
  folder.write("none/x.npy", npy("<f4", "(2, 1)", raw(std::vector{std::nanf(""), INFINITY})));
  folder.write("none/y.npy", npy("<i8", "(2,)", raw(std::vector<std::int64_t>{0, 1})));
  CHECK(contains(trainctl(folder, {"init", "none"}).errors, "all samples hold NaN, infinity or numbers beyond"));
  // The headers say that there are many samples, none of which has values.
  folder.write("empty/x.npy", npy("<f4", "(1000000000000000, 0)", ""));
  folder.write("empty/y.npy", npy("<f4", "(1000000000000000, 0)", ""));
  CHECK(contains(trainctl(folder, {"init", "empty"}).errors, "empty/x.npy: holds no samples"));
  folder.write("empty/y.npy", npy("<i8", "(3,)", raw(std::vector<std::int64_t>{0, 1, 2})));
  CHECK(contains(trainctl(folder, {"init", "empty"}).errors, "empty/x.npy: holds no samples"));
  folder.write("alone.npy", npy("<f4", "(60, 5)", raw(x)));
  CHECK(contains(trainctl(folder, {"init", "alone.npy"}).errors, "alone.npy: is a single array without targets; put"));
}

TEST_CASE("every config that init writes for arrays passes check and trains, whatever the targets are") {
  std::mt19937 random(23);
  constexpr std::int64_t n = 60;
  const auto whole = [&](std::int64_t count, std::int64_t below) {
    std::vector<std::int64_t> values(static_cast<std::size_t>(count));
    for (std::int64_t& value : values) value = static_cast<std::int64_t>(random()) % below;
    values[0] = below - 1;
    return raw(values);
  };
  const auto numbers = [&](std::int64_t count) {
    std::vector<float> values(static_cast<std::size_t>(count));
    for (float& value : values) value = std::uniform_real_distribution<float>(-2, 2)(random);
    return raw(values);
  };
  std::vector<float> one_hot(n * 4), multi_hot(n * 5);
  for (std::int64_t i = 0; i < n; ++i) one_hot[static_cast<std::size_t>(4 * i + i % 4)] = 1;
  for (float& value : multi_hot) value = static_cast<float>(random() % 2);
  struct Case {
    std::string name, x_type, x_shape, x, y_type, y_shape, y;
    std::vector<std::string> lines;  // that the config must contain
  };
  const std::string f4 = "<f4", i8 = "<i8";
  const std::vector<Case> cases{
      {"classes", f4, "(60, 7)", numbers(n * 7), i8, "(60,)", whole(n, 3), {"batch_normalization", "units: 3"}},
      {"column", f4, "(60, 7)", numbers(n * 7), i8, "(60, 1)", whole(n, 3), {"sparse_categorical_crossentropy"}},
      {"regression", f4, "(60, 7)", numbers(n * 7), f4, "(60, 2)", numbers(n * 2), {"mean_squared_error", "units: 2"}},
      {"counts", f4, "(60, 7)", numbers(n * 7), i8, "(60, 3)", whole(n * 3, 90), {"mean_squared_error", "units: 3"}},
      {"onehot", f4, "(60, 7)", numbers(n * 7), f4, "(60, 4)", raw(one_hot), {"categorical_crossentropy", "units: 4"}},
      {"labels", f4, "(60, 7)", numbers(n * 7), f4, "(60, 5)", raw(multi_hot), {"binary_crossentropy", "sigmoid"}},
      {"flags", f4, "(60, 7)", numbers(n * 7), i8, "(60, 5)", whole(n * 5, 2), {"binary_crossentropy", "sigmoid"}},
      {"series", f4, "(60, 9, 2)", numbers(n * 18), i8, "(60, 9)", whole(n * 9, 4), {"return_sequences: true"}},
      {"masks", f4, "(60, 8, 6, 3)", numbers(n * 144), i8, "(60, 8, 6)", whole(n * 48, 3), {"conv2d", "units: 3"}},
      {"masks1", f4, "(60, 8, 6, 3)", numbers(n * 144), i8, "(60, 8, 6, 1)", whole(n * 48, 3), {"units: 3"}},
      {"scans", f4, "(60, 5, 4, 6, 2)", numbers(n * 240), i8, "(60,)", whole(n, 3), {"max_pooling3d", "units: 3"}},
      {"voxels", f4, "(60, 3, 4, 2, 2)", numbers(n * 48), i8, "(60, 3, 4, 2)", whole(n * 24, 3), {"conv3d"}},
      {"tokens", i8, "(60, 12)", whole(n * 12, 50), i8, "(60,)", whole(n, 2), {"embedding: {input_dim: 50", "lstm"}},
      {"tags", i8, "(60, 12)", whole(n * 12, 50), i8, "(60, 12)", whole(n * 12, 5), {"embedding", "units: 5"}},
  };
  const Folder folder;
  for (const Case& one : cases) {
    CAPTURE(one.name);
    folder.write(one.name + "/x.npy", npy(one.x_type, one.x_shape, one.x));
    folder.write(one.name + "/y.npy", npy(one.y_type, one.y_shape, one.y));
    const Finished made = trainctl(folder, {"init", one.name});
    INFO(tail(made.errors));
    REQUIRE(made.code == 0);
    const std::string config = one.name + ".yaml", text = read_file(folder / config);
    CAPTURE(text);
    for (const std::string& line : one.lines) CHECK(contains(text, line));
    const Finished checked = trainctl(folder, {"check", config, "--ranks", "1", "--quiet"});
    INFO(tail(checked.errors));
    CHECK(checked.code == 0);
    const Finished run = trainctl(folder, {"run", config, "--ranks", "1", "--quiet", "--set", "train.epochs=1"});
    INFO(tail(run.errors));
    CHECK(run.code == 0);
  }
}

}  // namespace trainctl::test::init_arrays_test
