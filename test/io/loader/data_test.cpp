// Tests whole data sections: the embedded digits, splits, label modes, shapes set in the config, and MNIST and CIFAR-10
// if these are present.
#include "io/loader/data.h"

#include <chrono>
#include <cmath>
#include <cstdio>
#include <set>

#include "io/loader/cache/cache.h"
#include "test/catch.h"
#include "test/support/files.h"

namespace trainctl::test::data_test {
namespace {

const std::string digits = std::string(TRAINCTL_SOURCE_DIR) + "/configs/data/digits.npz";

// The inputs of a batch as a network sees them.
std::vector<double> inputs_of(const Batch& batch, const SampleFormat& format) {
  REQUIRE(batch.inputs[0].dtype == format.dtype);
  std::vector<double> values;
  for (std::int64_t i = 0; i < batch.inputs[0].count; ++i) {
    const auto channel = format.scale.empty() ? 0 : static_cast<std::size_t>(i) % format.scale.size();
    values.push_back(format.scale.empty() ? double{batch.inputs[0].as<float>()[i]}
                                          : batch.inputs[0].as<std::uint8_t>()[i] * double{format.scale[channel]} +
                                                double{format.offset[channel]});
  }
  return values;
}

}  // namespace

TEST_CASE("the embedded digits have their published size and mean") {
  const Data data(
      data_options(
          format("{{dataset: npy, path: {0}, validation: {{path: {0}}}, transform: [{{rescale: 1/16}}]}}", digits)),
      1);
  CHECK(data.info().inputs[0].sample == Shape{8, 8, 1});
  CHECK(data.info().targets[0].classes == 10);
  CHECK(data.info().training_samples == 1500);
  CHECK(data.info().validation_samples == 297);
  const auto source = data.evaluation(SplitKind::validation, 297, {});
  const Batch& batch = source->next();
  CHECK(batch.inputs[0].dtype == DType::uint8);
  double sum = 0, largest = 0;
  for (const double value : inputs_of(batch, data.info().inputs[0].format)) {
    sum += value;
    largest = std::max(largest, value);
  }
  CHECK(largest == 1);
  CHECK(sum / static_cast<double>(batch.inputs[0].count) ==
        Approx(0.305).margin(0.01));  // the mean of the whole set is 4.884 / 16
}

TEST_CASE("no sample is in both the training and the validation split, also if stratified") {
  for (const char* more : {"", ", stratify: true"}) {
    const Data data(data_options(format("{{dataset: npy, path: {}, validation: {{split: 0.2{}}}}}", digits, more)), 5);
    CHECK(data.info().training_samples == 1200);
    CHECK(data.info().validation_samples == 300);
    std::set<std::int64_t> seen;
    for (const auto& source : {data.training(100, {}, {5, 0, 0}), data.evaluation(SplitKind::validation, 100, {})}) {
      for (bool last = false; !last;) {
        const Batch& batch = source->next();
        last = batch.last_of_epoch;
        for (std::int64_t i = 0; i < batch.count; ++i) seen.insert(batch.samples.as<std::int64_t>()[i]);
      }
    }
    CHECK(seen.size() == 1500);
  }
}

TEST_CASE("label_mode sets the encoding of the targets") {
  const auto targets = [](const char* mode, int classes) {
    const Data data(data_options(format(
                        "{{dataset: synthetic, shape: [3], classes: {}, samples: 8, shuffle: false, label_mode: {}}}",
                        classes, mode)),
                    1);
    const auto source = data.training(8, {}, {1, 0, 0});
    const View view = source->next().targets[0];
    std::vector<float> values;
    for (std::int64_t i = 0; i < view.count; ++i) {
      values.push_back(view.dtype == DType::int32 ? static_cast<float>(view.as<std::int32_t>()[i])
                                                  : view.as<float>()[i]);
    }
    return values;
  };
  CHECK(targets("int", 3) == std::vector<float>{0, 1, 2, 0, 1, 2, 0, 1});
  CHECK(targets("binary", 2) == std::vector<float>{0, 1, 0, 1, 0, 1, 0, 1});
  CHECK(targets("categorical", 2) == std::vector<float>{1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1});
  CHECK_THROWS_AS(targets("binary", 3), Error);
}

TEST_CASE("shape and classes set in the config are known without data") {
  const DataOptions options = data_options("{dataset: idx, path: nowhere, shape: [28, 28, 1], classes: 10}");
  const DataInfo info = describe(options, 1);
  CHECK(info.inputs[0].sample == Shape{28, 28, 1});
  CHECK(info.targets[0].classes == 10);
  CHECK(info.targets[0].shape == Shape{});
  CHECK_THROWS_AS(describe(data_options("{dataset: idx, path: nowhere, shape: [28, 28, 1]}"), 1), Error);
}

TEST_CASE("a split that leaves no sample for training is refused with the counts") {
  for (const char* more : {"", ", stratify: true"}) {
    const DataOptions options =
        data_options(format("{{dataset: npy, path: {}, validation: {{split: 0.9999{}}}}}", digits, more));
    CHECK_THROWS_WITH(Data(options, 5),
                      Catch::Contains("`validation: {split: 0.9999}` splits off 1,500 samples, which leaves no sample "
                                      "of 1,500 for training") &&
                          Catch::Contains("set a smaller split"));
  }
  CHECK_NOTHROW(Data(data_options(format("{{dataset: npy, path: {}, validation: {{split: 0.999}}}}", digits)), 5));
}

TEST_CASE("measured normalisation gives mean 0 and deviation 1 over the training split") {
  const Data data(
      data_options(format(
          "{{dataset: npy, path: {}, validation: {{split: 0.5}}, transform: [{{normalize: measured}}]}}", digits)),
      2);
  const auto source = data.training(750, {}, {2, 0, 0});
  const Batch& batch = source->next();
  double sum = 0, squares = 0;
  for (const double x : inputs_of(batch, data.info().inputs[0].format)) sum += x, squares += x * x;
  CHECK(sum / static_cast<double>(batch.inputs[0].count) == Approx(0).margin(1e-6));
  CHECK(squares / static_cast<double>(batch.inputs[0].count) == Approx(1).margin(1e-5));
  CHECK(data.measured().size() == 1);
}

TEST_CASE("a cache does not change the batches") {
  const std::string base =
      "dataset: synthetic, shape: [9, 9, 3], classes: 4, samples: 50, transform: [{resize: [6, 6]}, {normalize: {mean: "
      "1, "
      "std: 2}}], augment: [{random_crop: {size: 6, padding: 2}}, random_flip]";
  // `shape` is the shape of both the generated samples and the model's input, so synthetic data cannot be resized.
  CHECK_THROWS_AS(Data(data_options("{" + base + "}"), 1), Error);
  const std::string fitting =
      "dataset: synthetic, shape: [9, 9, 3], classes: 4, samples: 50, transform: [{normalize: {mean: 1, std: 2}}], "
      "augment: [{random_crop: {size: 9, padding: 2}}, random_flip]";
  const Data plain(data_options("{" + fitting + "}"), 1), cached(data_options("{" + fitting + ", cache: memory}"), 1);
  const auto a = plain.training(16, {}, {1, 0, 0}), b = cached.training(16, {}, {1, 0, 0});
  for (int k = 0; k < 12; ++k) {
    const Batch &x = a->next(), &y = b->next();
    REQUIRE(x.inputs[0].count == y.inputs[0].count);
    CHECK(std::equal(x.inputs[0].as<float>(), x.inputs[0].as<float>() + x.inputs[0].count, y.inputs[0].as<float>()));
    CHECK(std::equal(x.targets[0].as<std::int32_t>(), x.targets[0].as<std::int32_t>() + x.count,
                     y.targets[0].as<std::int32_t>()));
  }
}

TEST_CASE("the error for a cache that does not fit in memory names its size") {
  try {
    memory_cache(1'000'000'000, 1'000'000'000, 150528);
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::resource);
    CHECK(std::string(error.what()).find("150528.0 GB") != std::string::npos);
  }
}

TEST_CASE("MNIST has the published statistics") {
  const std::string path = real_data("mnist");
  if (path.empty()) return;
  const Data data(data_options(format("{{dataset: idx, path: {0}, validation: {{path: {0}}}, transform: [{{rescale: "
                                      "1/255}}, {{normalize: measured}}]}}",
                                      path)),
                  1);
  CHECK(data.info().inputs[0].sample == Shape{28, 28, 1});
  CHECK(data.info().targets[0].classes == 10);
  CHECK(data.info().training_samples == 60000);
  CHECK(data.info().validation_samples == 10000);
  // The commonly published values.
  CHECK(data.measured()[0].mean[0] == Approx(0.1307).margin(5e-5));
  CHECK(data.measured()[0].stddev[0] == Approx(0.3081).margin(5e-5));
  const auto source = data.evaluation(SplitKind::validation, 8, {});
  const Batch& batch = source->next();
  const std::int32_t first[] = {7, 2, 1, 0, 4, 1, 4, 9};
  CHECK(std::equal(first, first + 8, batch.targets[0].as<std::int32_t>()));
}

TEST_CASE("CIFAR-10 is read in balanced, normalised batches") {
  const std::string path = real_data("cifar10");
  if (path.empty()) return;
  const Data data(
      data_options(format("{{dataset: image_folder, path: {0}/train, validation: {{path: {0}/test}}, transform: "
                          "[{{normalize: imagenet}}], "
                          "augment: [{{random_crop: {{size: 32, padding: 4}}}}, {{random_flip: horizontal}}]}}",
                          path)),
      1);
  CHECK(data.info().inputs[0].sample == Shape{32, 32, 3});
  CHECK(data.info().targets[0].class_names.front() == "airplane");
  CHECK(data.info().targets[0].class_names.back() == "truck");
  CHECK(data.info().training_samples == 50000);
  CHECK(data.info().validation_samples == 10000);
  const auto source = data.training(500, {}, {1, 0, 0});
  const auto start = std::chrono::steady_clock::now();
  std::vector<int> classes(10);
  for (int k = 0; k < 8; ++k) {
    const Batch& batch = source->next();
    for (std::int64_t i = 0; i < batch.count; ++i)
      ++classes[static_cast<std::size_t>(batch.targets[0].as<std::int32_t>()[i])];
    double sum = 0;
    for (const double value : inputs_of(batch, data.info().inputs[0].format)) sum += value;
    CHECK(std::abs(sum / static_cast<double>(batch.inputs[0].count)) < 0.3);
  }
  for (int count : classes) CHECK(std::abs(count - 400) < 100);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::fprintf(stderr, "CIFAR-10: %.0f samples/s\n", 4000 / seconds);
}

TEST_CASE("arrays named after inputs and outputs are read together, cached or not") {
  const TempFolder folder;
  std::vector<std::uint8_t> image(20 * 12);
  std::vector<float> table(20 * 3), size(20 * 2);
  std::vector<std::int64_t> kind(20);
  std::mt19937 random(9);
  for (auto& value : image) value = static_cast<std::uint8_t>(random() % 256);
  for (auto& value : table) value = static_cast<float>(random() % 1000);
  for (auto& value : size) value = static_cast<float>(random() % 1000);
  for (auto& value : kind) value = static_cast<std::int64_t>(random() % 4);
  kind[0] = 3;
  write_file(folder / "image.npy", npy("|u1", "(20, 2, 2, 3)", raw(image)));
  write_file(folder / "table.npy", npy("<f4", "(20, 3)", raw(table)));
  write_file(folder / "kind.npy", npy("<i8", "(20,)", raw(kind)));
  write_file(folder / "size.npy", npy("<f4", "(20, 2)", raw(size)));
  // Files with the split in their names are read if the first input has such a file; then all must have one.
  for (const char* name : {"image", "table", "kind", "size"}) {
    write_file(folder / format("parts/{}_train.npy", name), read_whole(folder / format("{}.npy", name)));
    write_file(folder / format("mixed/{}.npy", name), read_whole(folder / format("{}.npy", name)));
  }
  write_file(folder / "mixed/image_train.npy", read_whole(folder / "image.npy"));
  DataUse use;
  use.inputs = {{"image"}, {"table"}};
  use.targets = {{"kind"}, {"size", true}};
  const std::string by_folder = "path: " + folder.text();
  const std::string by_file = format(
      "x: {{image: {0}/image.npy, table: {0}/table.npy}}, y: {{kind: {0}/kind.npy, "
      "size: {0}/size.npy}}",
      folder.text());
  CHECK_THROWS_WITH(Data(data_options(format("{{dataset: npy, path: {}/mixed}}", folder.text())), 1, use),
                    Catch::Contains("has no file table_train.npy"));
  for (const std::string& keys : {by_folder, by_folder + "/parts", by_file}) {
    for (const char* cache : {"none", "memory"}) {
      const Data data(data_options(format("{{dataset: npy, {}, cache: {}, workers: 2, transform: {{table: [{{rescale: "
                                          "1/8}}]}}, augment: {{image: [{{random_flip: horizontal}}]}}}}",
                                          keys, cache)),
                      1, use);
      REQUIRE(data.info().inputs.size() == 2);
      CHECK(data.info().inputs[0].name == "image");
      CHECK(data.info().inputs[1].sample == Shape{3});
      CHECK(data.info().targets[0].classes == 4);
      CHECK(data.info().targets[1].shape == Shape{2});
      const auto source = data.training(7, {}, {1, 0, 0});
      for (int step = 0; step < 9; ++step) {  // three epochs
        const Batch& batch = source->next();
        REQUIRE(batch.inputs[1].count == 3 * batch.count);
        for (std::int64_t i = 0; i < batch.count; ++i) {
          const auto number = static_cast<std::size_t>(batch.samples.as<std::int64_t>()[i]);
          CHECK(batch.targets[0].as<std::int32_t>()[i] == kind[number]);
          std::int64_t sum = 0, expected = 0;  // sums, which a flip does not change
          for (std::int64_t k = 0; k < 12; ++k) {
            sum += batch.inputs[0].as<std::uint8_t>()[i * 12 + k];
            expected += image[number * 12 + static_cast<std::size_t>(k)];
          }
          CHECK(sum == expected);
          for (std::size_t k = 0; k < 3; ++k) {
            CHECK(batch.inputs[1].as<float>()[i * 3 + static_cast<std::int64_t>(k)] == table[number * 3 + k] / 8);
          }
          for (std::size_t k = 0; k < 2; ++k) {
            CHECK(batch.targets[1].as<float>()[i * 2 + static_cast<std::int64_t>(k)] == size[number * 2 + k]);
          }
        }
      }
    }
  }
}

}  // namespace trainctl::test::data_test
