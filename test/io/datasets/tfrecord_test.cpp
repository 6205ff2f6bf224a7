// Tests the reader of TFRecord files, which are written here byte by byte.
#include "io/datasets/records/tfrecord.h"

#include "core/base/crc32c.h"
#include "io/loader/data.h"
#include "test/catch.h"
#include "test/support/files.h"
#include "test/support/images.h"
#include "test/support/records.h"

namespace trainctl::test::tfrecord_test {
using Catch::Contains;

namespace {

std::string png_of(unsigned seed) { return png(4, 5, 2, random_bytes(60, seed)); }

// A record of an image and its class, as TensorFlow's scripts for ImageNet write it.
std::string image_record(unsigned seed, std::int64_t label) {
  return tf_record(example({{"image/height", ints_feature({4})},
                            {"image/encoded", bytes_feature(png_of(seed))},
                            {"image/class/label", ints_feature({label})}}));
}

std::vector<float> values_of(const Dataset& dataset, std::int64_t index) {
  Sample sample;
  dataset.read(index, sample);
  REQUIRE(sample.dtype == DType::float32);
  const auto* values = static_cast<const float*>(sample.values);
  return {values, values + sample.shape.count()};
}

std::string bytes_of_sample(const Dataset& dataset, std::int64_t index) {
  Sample sample;
  dataset.read(index, sample);
  REQUIRE(sample.dtype == DType::uint8);
  return {static_cast<const char*>(sample.values), static_cast<std::size_t>(sample.shape.count())};
}

// Opens a file of these bytes and reads all samples. Returns the error's text, or "no error".
std::string error_of(const std::string& bytes, const TfRecordFormat& format = {}, const DeclaredInfo& declared = {}) {
  const TempFolder folder;
  write_file(folder / "a.tfrecord", bytes);
  try {
    const auto dataset = tfrecord_dataset(folder / "a.tfrecord", format, declared);
    Sample sample;
    for (std::int64_t i = 0; i < dataset->size(); ++i) dataset->read(i, sample);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::data);
    CHECK_THAT(error.what(), Contains("a.tfrecord"));
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("tfrecord: CRC-32C equals the published check value and a plain computation") {
  CHECK(crc32c("123456789", 9) == 0xE3069283);  // the check value of the algorithm's parameters
  for (std::size_t length = 0; length < 70; ++length) {
    const std::string bytes = random_bytes(length, static_cast<unsigned>(length));
    CHECK(crc32c(bytes.data(), length) == slow_crc32c(bytes));
  }
}

TEST_CASE("tfrecord: images and classes are read from several files, also from large records") {
  const TempFolder folder;
  const std::string big = random_bytes(100'000, 5);  // more than is buffered, before and after the label
  write_file(folder / "train-00000-of-00002", image_record(1, 2) + image_record(2, 0));
  write_file(folder / "train-00001-of-00002", tf_record(example({{"a", bytes_feature(big)},
                                                                 {"image/class/label", ints_feature({4}, false)},
                                                                 {"b", bytes_feature(big)},
                                                                 {"image/encoded", bytes_feature(png_of(3))}})) +
                                                  image_record(4, 1));
  write_file(folder / "info.json", "{}");
  for (const std::string& path : {folder.text(), folder / "train-*", folder / "train-{00000..00001}-of-00002",
                                  folder / "train-0000[01]-of-*", folder / "{train-00001-of-00002,train-00000-*}"}) {
    INFO(path);
    const auto dataset = tfrecord_dataset(path, {}, {});
    REQUIRE(dataset->size() == 4);
    CHECK(dataset->info().sample == Shape{4, 5, 3});
    CHECK(dataset->info().classes == 5);
    CHECK(dataset->info().target == Shape{});
    CHECK_FALSE(dataset->in_memory());
    const std::int32_t labels[] = {2, 0, 4, 1};
    for (std::int64_t i : {2, 0, 3, 1}) {
      CHECK(dataset->label(i) == labels[i]);
      CHECK(bytes_of_sample(*dataset, i) == random_bytes(60, static_cast<unsigned>(i) + 1));
    }
    CHECK(dataset->name_of(3) == folder / "train-00001-of-00002" + ", record 1");
  }
  CHECK(tfrecord_dataset(folder / "train-00001-of-00002", {}, {})->size() == 2);
  CHECK(tfrecord_dataset(folder.text(), {}, {.sample = Shape{4, 5, 1}})->info().sample == Shape{4, 5, 1});
}

TEST_CASE("tfrecord: raw images, features of numbers and targets of values are read") {
  const TempFolder folder;
  const std::string first = random_bytes(24, 1), second = random_bytes(24, 2);
  write_file(folder / "raw.tfrecord",
             tf_record(example({{"image_raw", bytes_feature(first)}, {"label", ints_feature({7})}})) +
                 tf_record(example({{"label", ints_feature({3})}, {"image_raw", bytes_feature(second)}})));
  const auto raw = tfrecord_dataset(folder / "raw.tfrecord", {.raw_shape = {{2, 4, 3}}}, {});
  CHECK(raw->info().sample == Shape{2, 4, 3});
  CHECK(raw->info().classes == 8);
  CHECK(bytes_of_sample(*raw, 0) == first);
  CHECK(bytes_of_sample(*raw, 1) == second);

  std::string records;
  for (int i = 0; i < 5; ++i) {
    const float f = static_cast<float>(i);
    records += tf_record(example({{"ints", ints_feature({i, -i, 1LL << 40}, i % 2 == 0)},
                                  {"y", floats_feature({f / 2, -f}, i % 2 == 1)},
                                  {"floats", floats_feature({1.5f * f, 1e-3f}, i % 2 == 0)}}));
  }
  write_file(folder / "numbers.tfrecord", records);
  const auto numbers = tfrecord_dataset(folder / "numbers.tfrecord", {.features = {"floats", "ints"}}, {});
  CHECK(numbers->info().sample == Shape{5});
  CHECK(numbers->info().dtype == DType::float32);
  CHECK(numbers->info().classes == 0);
  CHECK(numbers->info().target == Shape{2});
  for (std::int64_t i : {3, 0, 4}) {
    const auto f = static_cast<float>(i);
    CHECK(values_of(*numbers, i) == std::vector<float>{1.5f * f, 1e-3f, f, -f, 1099511627776.f});
    Sample sample;
    numbers->read(i, sample);
    CHECK(sample.target[0] == f / 2);
    CHECK(sample.target[1] == -f);
  }
  // A shape set in the config, a whole number as a value, and tokens.
  CHECK(tfrecord_dataset(folder / "numbers.tfrecord", {.features = {"ints"}}, {.sample = Shape{3, 1}})->info().sample ==
        Shape{3, 1});
  const auto value =
      tfrecord_dataset(folder / "raw.tfrecord", {.raw_shape = {{2, 4, 3}}}, {.use = {.target_values = true}});
  CHECK(value->info().classes == 0);
  CHECK(value->info().target == Shape{1});
  write_file(folder / "text.tfrecord",
             tf_record(example({{"tokens", ints_feature({5, 0, 9})}, {"label", ints_feature({0, 9, 1})}})));
  const DeclaredInfo use{.use = {.class_numbers = true, .tokens = 10}};
  const auto tokens = tfrecord_dataset(folder / "text.tfrecord", {.features = {"tokens"}}, use);
  CHECK(tokens->info().dtype == DType::int32);
  CHECK(tokens->info().target == Shape{3});
  CHECK(tokens->info().classes == 10);
  Sample sample;
  tokens->read(0, sample);
  CHECK(static_cast<const std::int32_t*>(sample.values)[2] == 9);
  std::int32_t labels[3];
  tokens->read_labels(0, labels);
  CHECK(labels[1] == 9);
  DeclaredInfo fewer = use;
  fewer.use.tokens = 9;
  CHECK_THROWS_WITH(tfrecord_dataset(folder / "text.tfrecord", {.features = {"tokens"}}, fewer),
                    Contains("record 0: holds token 9"));
}

TEST_CASE("tfrecord: errors name file and record") {
  const std::string good = image_record(1, 0), second = image_record(2, 1);
  CHECK(error_of(good + second) == "no error");
  CHECK_THAT(error_of(""), Contains("empty"));
  CHECK_THAT(error_of(gzip(good)), Contains("is compressed"));
  CHECK_THAT(error_of("no records in here, but text"), Contains("record 0: the checksum of its length is wrong"));
  CHECK_THAT(error_of(good + second.substr(0, 7)), Contains("record 1: is truncated within its header"));
  CHECK_THAT(error_of(good + second.substr(0, second.size() - 1)), Contains("record 1: is truncated"));
  const std::string long_length = little_endian(1ull << 62, 8);
  CHECK_THAT(error_of(good + long_length + masked_crc(long_length) + "abcd"),
             Contains("record 1: is truncated: it has 4611686018427387904 bytes, but only 0 are left"));
  std::string bad = good + second;
  bad[good.size() + 3] ^= 1;
  CHECK_THAT(error_of(bad), Contains("record 1: the checksum of its length is wrong"));
  bad = good + second;
  bad[bad.size() - 40] ^= 1;
  CHECK_THAT(error_of(bad), Contains("record 1") && Contains("on_error: skip"));
  std::string flipped = good + second;
  flipped[flipped.find("IDAT", good.size()) + 8] ^= 1;  // within the image
  CHECK_THAT(error_of(flipped), Contains("record 1: is damaged: its checksum is wrong"));
  CHECK_THAT(error_of(good + tf_record("\x0a\x05")), Contains("record 1: is not a tf.train.Example"));
  CHECK_THAT(error_of(tf_record(example({{"x", ints_feature({1})}, {"z", ints_feature({1})}}))),
             Contains("record 0: has no feature image/class/label, label or y") && Contains("x or z"));
  CHECK_THAT(error_of(tf_record(example({{"label", ints_feature({1})}}))),
             Contains("record 0: has no feature image/encoded, image or image_raw"));
  CHECK_THAT(error_of(good, {.label = "mark"}), Contains("has no feature 'mark'"));
  CHECK_THAT(error_of(good, {.image = "image/height"}), Contains("holds numbers"));
  CHECK_THAT(error_of(good, {.features = {"image/encoded"}}), Contains("holds no numbers"));
  CHECK_THAT(error_of(good, {.label = "image/encoded"}), Contains("holds bytes"));
  CHECK_THAT(error_of(good, {.raw_shape = {{1, 1, 1}}}), Contains("raw_shape needs 1"));
  CHECK_THAT(error_of(good + image_record(2, 9), {}, {.classes = 2}), Contains("label 9, which is not in 0 to 1"));
  const auto numbers = [](std::vector<std::int64_t> x, std::vector<std::int64_t> y) {
    return tf_record(example({{"x", ints_feature(x)}, {"y", ints_feature(y)}}));
  };
  CHECK_THAT(error_of(numbers({1, 2}, {0}) + numbers({1}, {0}), {.features = {"x"}}),
             Contains("record 1: feature 'x' has 1 value, but the first record has 2"));
  CHECK_THAT(error_of(numbers({1}, {0}) + numbers({1}, {0, 1}), {.features = {"x"}}),
             Contains("record 1: feature 'y' has 2 whole numbers, but the records before have 1 whole numbers"));
  CHECK_THAT(error_of(numbers({1}, {}), {.features = {"x"}}), Contains("feature 'y' is empty"));
  CHECK_THAT(error_of(tf_record(example({{"image", bytes_feature("GIF89a")}, {"label", ints_feature({1})}}))),
             Contains("record 0: cannot be decoded as GIF"));
  CHECK_THROWS_WITH(tfrecord_dataset("/nowhere/*.tfrecord", {}, {}), Contains("matches no file"));
  CHECK_THROWS_WITH(tfrecord_dataset("/nowhere/a.tfrecord", {}, {}), Contains("TRAINCTL_DATA"));
  CHECK_THROWS_WITH(tfrecord_dataset("/a-{0..9999999999}", {}, {}), Contains("more than 100000 files"));
  CHECK_THROWS_WITH(tfrecord_dataset("/{0..999}{0..999}", {}, {}), Contains("more than 100000 files"));
}

TEST_CASE("tfrecord: with on_error: skip damaged records are skipped") {
  const TempFolder folder;
  std::string damaged = image_record(2, 1);
  damaged[damaged.find("IDAT") + 8] ^= 1;
  write_file(folder / "a.tfrecord",
             tf_record("\x0a\x05") + damaged + image_record(3, 1) + tf_record(example({})) + image_record(4, 0));
  const std::string base = format("dataset: tfrecord, path: {}, shuffle: false, workers: 0", folder / "a.tfrecord");
  CHECK_THROWS_WITH(Data(data_options("{" + base + "}"), 1), Contains("record 0: is not a tf.train.Example"));
  const Data data(data_options("{" + base + ", on_error: skip}"), 1);
  REQUIRE(data.info().warnings.size() == 1);
  CHECK_THAT(data.info().warnings[0], Contains("2 records cannot be read and are left out"));
  const auto source = data.training(3, {}, {1, 0, 0});
  const Batch& batch = source->next();
  CHECK(batch.weights.as<float>()[0] == 0);
  CHECK(batch.weights.as<float>()[1] == 1);
  CHECK(batch.weights.as<float>()[2] == 1);
  CHECK(batch.targets[0].as<std::int32_t>()[2] == 0);
  write_file(folder / "a.tfrecord", tf_record("\x0a\x05"));
  CHECK_THROWS_WITH(Data(data_options("{" + base + ", on_error: skip}"), 1), Contains("none of its 1 records"));
}

TEST_CASE("tfrecord: a config reads the data, and reads the same data after it is written and read again") {
  const TempFolder folder;
  write_file(folder / "train/a.tfrecord", image_record(1, 0) + image_record(2, 1) + image_record(3, 2));
  write_file(folder / "valid/a.tfrecord", image_record(4, 2));
  const std::string text = format(
      "{{dataset: tfrecord, path: {0}/train, image: image/encoded, workers: 0, validation: {{path: '{0}/v*/*'}}}}",
      folder.text());
  const DataOptions options = data_options(text);
  const Data data(options, 1);
  CHECK(data.info().targets[0].classes == 3);
  CHECK(data.info().validation_samples == 1);
  DataOptions again;
  Reader reader;
  const Node written = section_of<DataOptions>().write(&options);
  CHECK(section_of<DataOptions>().read(written, reader, &again));
  CHECK(Data(again, 1).info().fingerprint == data.info().fingerprint);
  write_file(folder / "valid/a.tfrecord", image_record(4, 3));
  CHECK_THROWS_WITH(Data(options, 1), Contains("class 3; the training split has 3 classes"));
  CHECK_THROWS_AS(data_options("{dataset: tfrecord, path: a, image: b, features: [c]}"), ConfigError);
}

}  // namespace trainctl::test::tfrecord_test
