// Tests the reader of CIFAR's binary files, which are written here byte by byte.
#include "io/datasets/arrays/cifar10.h"

#include <fcntl.h>
#include <unistd.h>

#include "io/loader/data.h"
#include "test/catch.h"
#include "test/support/files.h"

namespace trainctl::test::cifar10_test {
namespace {

constexpr int image_bytes = 32 * 32 * 3;

// A file of records: label bytes of each sample, then pixels by channel, row and column.
std::string records(const std::vector<std::string>& labels, unsigned seed) {
  std::string bytes;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    bytes += labels[i] + random_bytes(image_bytes, seed + static_cast<unsigned>(i));
  }
  return bytes;
}

std::string ten_names() {
  return "airplane\nautomobile\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n\n";  // as distributed
}

// CIFAR-10's files with three samples each; sample i of file f has label (f + 3 i) % 10.
void write_cifar10(const std::string& folder) {
  for (int f = 0; f < 6; ++f) {
    std::vector<std::string> labels;
    for (int i = 0; i < 3; ++i) labels.emplace_back(1, static_cast<char>((f + 3 * i) % 10));
    const std::string name = f < 5 ? format("data_batch_{}.bin", f + 1) : "test_batch.bin";
    write_file(folder + "/" + name, records(labels, static_cast<unsigned>(100 * f)));
  }
}

void check_pixels(const Dataset& dataset, std::int64_t index, unsigned seed) {
  const std::string planes = random_bytes(image_bytes, seed);
  Sample sample;
  dataset.read(index, sample);
  CHECK(sample.shape == Shape{32, 32, 3});
  CHECK(sample.dtype == DType::uint8);
  int wrong = 0;
  for (std::size_t y = 0; y < 32; ++y) {
    for (std::size_t x = 0; x < 32; ++x) {
      for (std::size_t c = 0; c < 3; ++c) {
        const auto expected = static_cast<std::uint8_t>(planes[c * 1024 + y * 32 + x]);
        wrong += static_cast<const std::uint8_t*>(sample.values)[(y * 32 + x) * 3 + c] != expected;
      }
    }
  }
  CHECK(wrong == 0);
}

// Returns the error for a folder that is refused.
std::string error_of(const std::string& folder, CifarVariant variant = CifarVariant::cifar10, bool training = true,
                     const DeclaredInfo& declared = {}) {
  try {
    cifar_dataset(folder, variant, training, declared);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::data);
    return error.what();
  }
  FAIL_CHECK("it was read");
  return "";
}

}  // namespace

TEST_CASE("cifar10: all samples of all files are read, channels last") {
  for (const char* below : {"", "/cifar-10-batches-bin"}) {
    const TempFolder folder;
    write_cifar10(folder.text() + below);
    const auto training = cifar_dataset(folder.text(), CifarVariant::cifar10, true, {});
    const auto test = cifar_dataset(folder.text(), CifarVariant::cifar10, false, {});
    REQUIRE(training->size() == 15);
    REQUIRE(test->size() == 3);
    CHECK(training->info().sample == Shape{32, 32, 3});
    CHECK(training->info().classes == 10);
    CHECK(training->info().class_names.empty());
    CHECK(training->info().target == Shape{});
    for (std::int64_t i = 0; i < 15; ++i) {
      CHECK(training->label(i) == (i / 3 + 3 * (i % 3)) % 10);
      check_pixels(*training, i, static_cast<unsigned>(100 * (i / 3) + i % 3));
    }
    CHECK(test->label(2) == 1);
    check_pixels(*test, 2, 502);
    CHECK(training->name_of(7) == folder.text() + below + "/data_batch_3.bin, sample 1");
  }
}

TEST_CASE("cifar10: the data of a config has class names and a validation split") {
  const TempFolder folder;
  write_cifar10(folder.text());
  write_file(folder / "batches.meta.txt", ten_names());
  const Data data(
      data_options(format("{{dataset: cifar10, path: {0}, workers: 0, validation: {{path: {0}}}}}", folder.text())), 1);
  CHECK(data.info().targets[0].classes == 10);
  CHECK(data.info().targets[0].class_names[3] == "cat");
  CHECK(data.info().targets[0].class_names[9] == "truck");
  CHECK(data.info().validation_samples == 3);
  const auto source = data.evaluation(SplitKind::validation, 3, {});
  const Batch& batch = source->next();
  CHECK(batch.targets[0].as<std::int32_t>()[1] == 8);
}

TEST_CASE("cifar10: CIFAR-100's fine and coarse labels are read") {
  const TempFolder folder;
  write_file(folder / "cifar-100-binary/train.bin", records({"\x02\x0b", "\x13\x63"}, 1));
  write_file(folder / "cifar-100-binary/test.bin", records({std::string("\0\1", 2)}, 9));
  std::string coarse;
  for (int i = 0; i < 20; ++i) coarse += format("super_{}\r\n", i);
  write_file(folder / "cifar-100-binary/coarse_label_names.txt", coarse);
  const auto fine = cifar_dataset(folder.text(), CifarVariant::cifar100, true, {});
  CHECK(fine->info().classes == 100);
  CHECK(fine->label(0) == 11);
  CHECK(fine->label(1) == 99);
  CHECK(fine->info().class_names.empty());
  const auto twenty = cifar_dataset(folder.text(), CifarVariant::cifar100_coarse, true, {});
  CHECK(twenty->info().classes == 20);
  CHECK(twenty->label(0) == 2);
  CHECK(twenty->label(1) == 19);
  CHECK(twenty->info().class_names[19] == "super_19");
  check_pixels(*twenty, 1, 2);
  CHECK(cifar_dataset(folder.text(), CifarVariant::cifar100, false, {})->label(0) == 1);
}

TEST_CASE("cifar10: files too large for memory give the same samples") {
  const TempFolder folder;
  constexpr std::int64_t samples = 22000;  // 67.6 MB, sparse
  const std::string file = folder / "train.bin", record = records({"\x05\x2a"}, 77);
  write_file(file, "");
  REQUIRE(truncate(file.c_str(), samples * 3074) == 0);
  const int descriptor = open(file.c_str(), O_WRONLY | O_CLOEXEC);
  REQUIRE(pwrite(descriptor, record.data(), record.size(), (samples - 1) * 3074) == 3074);
  close(descriptor);
  const auto dataset = cifar_dataset(folder.text(), CifarVariant::cifar100, true, {});
  CHECK_FALSE(dataset->in_memory());
  CHECK(dataset->size() == samples);
  CHECK(dataset->label(samples - 1) == 42);
  CHECK(dataset->label(samples - 2) == 0);
  check_pixels(*dataset, samples - 1, 77);
}

TEST_CASE("cifar10: invalid folders and files are refused") {
  using Catch::Contains;
  const TempFolder folder;
  CHECK_THAT(error_of(folder / "nowhere"), Contains("nowhere") && Contains("TRAINCTL_DATA"));
  write_file(folder / "python/data_batch_1", "pickle");
  CHECK_THAT(error_of(folder / "python"), Contains("files for Python"));
  write_file(folder / "hundred/train.bin", records({"\1\2"}, 1));
  CHECK_THAT(error_of(folder / "hundred"), Contains("`variant`"));

  write_cifar10(folder / "ten");
  const std::string second = folder / "ten/data_batch_2.bin", good = read_whole(second);
  CHECK_THAT(error_of(folder / "ten", CifarVariant::cifar10, true, {.classes = 7}),
             Contains("has 10 classes, but the config sets 7"));
  write_file(second, good + "x");
  CHECK_THAT(error_of(folder / "ten"), Contains("data_batch_2.bin") && Contains("9220 bytes") && Contains("3073"));
  write_file(second, "");
  CHECK_THAT(error_of(folder / "ten"), Contains("data_batch_2.bin") && Contains("empty"));
  std::string bad = good;
  bad[3073] = 10;
  write_file(second, bad);
  CHECK_THAT(error_of(folder / "ten"), Contains("data_batch_2.bin: sample 1 has label 10, which is not in 0 to 9"));
  std::filesystem::remove(second);
  CHECK_THAT(error_of(folder / "ten"), Contains("data_batch_2.bin") && Contains("No such file"));
  write_file(second, good);
  write_file(folder / "ten/batches.meta.txt", "cat\ndog\n");
  CHECK_THAT(error_of(folder / "ten"), Contains("batches.meta.txt: names 2 classes, not 10"));
  CHECK_THROWS_AS(Data(data_options("{dataset: cifar10}"), 1), Error);
  CHECK_THROWS_AS(data_options("{dataset: cifar10, path: a, variant: cifar20}"), ConfigError);
}

}  // namespace trainctl::test::cifar10_test
