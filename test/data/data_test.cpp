// Whole data sections: the embedded digits, splits, label modes, what a config states, and MNIST and CIFAR-10 where
// they are.
#include "io/loader/data.h"

#include <chrono>
#include <cmath>
#include <cstdio>
#include <set>

#include "test/catch.h"
#include "test/data/files.h"

using namespace trainctl;
using namespace trainctl::test;

namespace {

const std::string digits = std::string(TRAINCTL_SOURCE_DIR) + "/configs/data/digits.npz";

// The inputs of a batch as a network sees them.
std::vector<double> inputs_of(const Batch& batch, const SampleFormat& format) {
  REQUIRE(batch.inputs.dtype == format.dtype);
  std::vector<double> values;
  for (std::int64_t i = 0; i < batch.inputs.count; ++i) {
    const auto channel = format.scale.empty() ? 0 : static_cast<std::size_t>(i) % format.scale.size();
    values.push_back(format.scale.empty() ? double{batch.inputs.as<float>()[i]}
                                          : batch.inputs.as<std::uint8_t>()[i] * double{format.scale[channel]} +
                                                double{format.offset[channel]});
  }
  return values;
}

}  // namespace

TEST_CASE("the embedded digits") {
  const Data data(
      data_options(
          format("{{dataset: npy, path: {0}, validation: {{path: {0}}}, transform: [{{rescale: 1/16}}]}}", digits)),
      1);
  CHECK(data.info().sample == Shape{8, 8, 1});
  CHECK(data.info().classes == 10);
  CHECK(data.info().training_samples == 1500);
  CHECK(data.info().validation_samples == 297);
  const auto source = data.evaluation(PartKind::validation, 297, {});
  const Batch& batch = source->next();
  CHECK(batch.inputs.dtype == DType::uint8);
  double sum = 0, largest = 0;
  for (const double value : inputs_of(batch, data.info().format)) {
    sum += value;
    largest = std::max(largest, value);
  }
  CHECK(largest == 1);
  CHECK(sum / static_cast<double>(batch.inputs.count) ==
        Approx(0.305).margin(0.01));  // the mean of the whole set is 4.884 / 16
}

TEST_CASE("a split leaves no sample in both parts, also stratified") {
  for (const char* more : {"", ", stratify: true"}) {
    const Data data(data_options(format("{{dataset: npy, path: {}, validation: {{split: 0.2{}}}}}", digits, more)), 5);
    CHECK(data.info().training_samples == 1200);
    CHECK(data.info().validation_samples == 300);
    std::set<std::int64_t> seen;
    for (const auto& source : {data.training(100, {}, {5, 0, 0}), data.evaluation(PartKind::validation, 100, {})}) {
      for (bool last = false; !last;) {
        const Batch& batch = source->next();
        last = batch.last_of_epoch;
        for (std::int64_t i = 0; i < batch.count; ++i) seen.insert(batch.samples.as<std::int64_t>()[i]);
      }
    }
    CHECK(seen.size() == 1500);
  }
}

TEST_CASE("label modes") {
  const auto targets = [](const char* mode, int classes) {
    const Data data(data_options(format(
                        "{{dataset: synthetic, shape: [3], classes: {}, samples: 8, shuffle: false, label_mode: {}}}",
                        classes, mode)),
                    1);
    const auto source = data.training(8, {}, {1, 0, 0});
    const View view = source->next().targets;
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

TEST_CASE("what the config states is known without data") {
  const DataOptions options = data_options("{dataset: idx, path: nowhere, shape: [28, 28, 1], classes: 10}");
  const DataInfo info = describe(options, 1);
  CHECK(info.sample == Shape{28, 28, 1});
  CHECK(info.classes == 10);
  CHECK(info.target == Shape{});
  CHECK_THROWS_AS(describe(data_options("{dataset: idx, path: nowhere, shape: [28, 28, 1]}"), 1), Error);
}

TEST_CASE("measured normalisation gives mean 0 and deviation 1 over the training part") {
  const Data data(
      data_options(format(
          "{{dataset: npy, path: {}, validation: {{split: 0.5}}, transform: [{{normalize: measured}}]}}", digits)),
      2);
  const auto source = data.training(750, {}, {2, 0, 0});
  const Batch& batch = source->next();
  double sum = 0, squares = 0;
  for (const double x : inputs_of(batch, data.info().format)) sum += x, squares += x * x;
  CHECK(sum / static_cast<double>(batch.inputs.count) == Approx(0).margin(1e-6));
  CHECK(squares / static_cast<double>(batch.inputs.count) == Approx(1).margin(1e-5));
  CHECK(data.measured().size() == 1);
}

TEST_CASE("a cache changes nothing but how often files are read") {
  const std::string base =
      "dataset: synthetic, shape: [9, 9, 3], classes: 4, samples: 50, transform: [{resize: [6, 6]}, {normalize: {mean: "
      "1, "
      "std: 2}}], augment: [{random_crop: {size: 6, padding: 2}}, random_flip]";
  // `shape` is that of the samples made and of what the model sees: synthetic data is not resized.
  CHECK_THROWS_AS(Data(data_options("{" + base + "}"), 1), Error);
  const std::string fitting =
      "dataset: synthetic, shape: [9, 9, 3], classes: 4, samples: 50, transform: [{normalize: {mean: 1, std: 2}}], "
      "augment: [{random_crop: {size: 9, padding: 2}}, random_flip]";
  const Data plain(data_options("{" + fitting + "}"), 1), cached(data_options("{" + fitting + ", cache: memory}"), 1);
  const auto a = plain.training(16, {}, {1, 0, 0}), b = cached.training(16, {}, {1, 0, 0});
  for (int k = 0; k < 12; ++k) {
    const Batch &x = a->next(), &y = b->next();
    REQUIRE(x.inputs.count == y.inputs.count);
    CHECK(std::equal(x.inputs.as<float>(), x.inputs.as<float>() + x.inputs.count, y.inputs.as<float>()));
    CHECK(
        std::equal(x.targets.as<std::int32_t>(), x.targets.as<std::int32_t>() + x.count, y.targets.as<std::int32_t>()));
  }
}

TEST_CASE("a cache that cannot fit is refused with numbers") {
  try {
    SampleCache(1'000'000'000, 1'000'000'000, 150528);
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::resource);
    CHECK(std::string(error.what()).find("150528.0 GB") != std::string::npos);
  }
}

TEST_CASE("MNIST") {
  const std::string path = real_data("mnist");
  if (path.empty()) return;
  const Data data(data_options(format("{{dataset: idx, path: {0}, validation: {{path: {0}}}, transform: [{{rescale: "
                                      "1/255}}, {{normalize: measured}}]}}",
                                      path)),
                  1);
  CHECK(data.info().sample == Shape{28, 28, 1});
  CHECK(data.info().classes == 10);
  CHECK(data.info().training_samples == 60000);
  CHECK(data.info().validation_samples == 10000);
  // As published everywhere.
  CHECK(data.measured()[0].mean[0] == Approx(0.1307).margin(5e-5));
  CHECK(data.measured()[0].stddev[0] == Approx(0.3081).margin(5e-5));
  const auto source = data.evaluation(PartKind::validation, 8, {});
  const Batch& batch = source->next();
  const std::int32_t first[] = {7, 2, 1, 0, 4, 1, 4, 9};
  CHECK(std::equal(first, first + 8, batch.targets.as<std::int32_t>()));
}

TEST_CASE("CIFAR-10") {
  const std::string path = real_data("cifar10");
  if (path.empty()) return;
  const Data data(
      data_options(format("{{dataset: image_folder, path: {0}/train, validation: {{path: {0}/test}}, transform: "
                          "[{{normalize: imagenet}}], "
                          "augment: [{{random_crop: {{size: 32, padding: 4}}}}, {{random_flip: horizontal}}]}}",
                          path)),
      1);
  CHECK(data.info().sample == Shape{32, 32, 3});
  CHECK(data.info().class_names.front() == "airplane");
  CHECK(data.info().class_names.back() == "truck");
  CHECK(data.info().training_samples == 50000);
  CHECK(data.info().validation_samples == 10000);
  const auto source = data.training(500, {}, {1, 0, 0});
  const auto start = std::chrono::steady_clock::now();
  std::vector<int> classes(10);
  for (int k = 0; k < 8; ++k) {
    const Batch& batch = source->next();
    for (std::int64_t i = 0; i < batch.count; ++i)
      ++classes[static_cast<std::size_t>(batch.targets.as<std::int32_t>()[i])];
    double sum = 0;
    for (const double value : inputs_of(batch, data.info().format)) sum += value;
    CHECK(std::abs(sum / static_cast<double>(batch.inputs.count)) < 0.3);
  }
  for (int count : classes) CHECK(std::abs(count - 400) < 100);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::fprintf(stderr, "CIFAR-10: %.0f samples/s\n", 4000 / seconds);
}
