// Tests image folders with PNG files that are written chunk by chunk and JPEG files from libjpeg's compressor.
#include "test/support/images.h"

#include "io/datasets/images/image_folder.h"
#include "io/loader/data.h"
#include "test/catch.h"
#include "test/support/files.h"

namespace trainctl::test::images_test {
namespace {

int byte_of(const std::string& bytes, std::size_t i) { return static_cast<unsigned char>(bytes[i]); }

}  // namespace

TEST_CASE("image folders: PNG and JPEG files are read, classes and files in bytewise order") {
  const TempFolder folder;
  const std::string gray = random_bytes(12, 1), rgb = random_bytes(36, 2), rgba = random_bytes(48, 3),
                    smooth = slope(3, 4, 3);
  write_file(folder / "b/2.png", png(3, 4, 0, gray));
  write_file(folder / "b/10.PNG", png(3, 4, 2, rgb));
  write_file(folder / "a/x.jpeg", jpeg(3, 4, 3, smooth));
  write_file(folder / "a/notes.txt", "not read");
  write_file(folder / "B/deep/z.png", png(3, 4, 6, rgba));
  const auto dataset = image_folder_dataset({folder.text()}, {});
  CHECK(dataset->info().class_names == std::vector<std::string>{"B", "a", "b"});
  CHECK(dataset->info().sample == Shape{3, 4, 3});
  REQUIRE(dataset->size() == 4);
  const std::vector<std::int32_t> labels = {0, 1, 2, 2};
  for (std::int64_t i = 0; i < 4; ++i) CHECK(dataset->label(i) == labels[static_cast<std::size_t>(i)]);
  Sample sample;
  const auto pixel = [&](std::size_t i) {
    return static_cast<int>(static_cast<const std::uint8_t*>(sample.values)[i]);
  };
  dataset->read(0, sample);
  for (std::size_t i = 0; i < 36; ++i) CHECK(pixel(i) == byte_of(rgba, i / 3 * 4 + i % 3));
  dataset->read(1, sample);
  for (std::size_t i = 0; i < 36; ++i) CHECK(std::abs(pixel(i) - byte_of(smooth, i)) <= 3);
  dataset->read(2, sample);
  for (std::size_t i = 0; i < 36; ++i) CHECK(pixel(i) == byte_of(rgb, i));
  dataset->read(3, sample);
  for (std::size_t i = 0; i < 36; ++i) CHECK(pixel(i) == byte_of(gray, i / 3));
  // The images have one channel if the config sets it.
  const auto one = image_folder_dataset({folder.text()}, {Shape{3, 4, 1}, {}, nullptr});
  one->read(3, sample);
  CHECK(sample.shape == Shape{3, 4, 1});
  for (std::size_t i = 0; i < 12; ++i) CHECK(pixel(i) == byte_of(gray, i));
}

TEST_CASE("images of unequal size need a resize, and the error names the file") {
  const TempFolder folder;
  write_file(folder / "a/1.png", png(4, 4, 2, random_bytes(48, 1)));
  write_file(folder / "b/2.png", png(6, 5, 2, random_bytes(90, 2)));
  const std::string base = format("dataset: image_folder, path: {}", folder.text());
  const auto read_all = [](const std::string& yaml) {
    const Data data(data_options(yaml), 1);
    const auto source = data.training(2, {}, {1, 0, 0});
    source->next();
    return data.info().inputs[0].sample;
  };
  try {
    read_all("{" + base + "}");
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::data);
    CHECK(std::string(error.what()).find("b/2.png") != std::string::npos);
    CHECK(std::string(error.what()).find("resize") != std::string::npos);
  }
  CHECK(read_all("{" + base + ", transform: [{resize: [8, 7]}]}") == Shape{8, 7, 3});
  CHECK(read_all("{" + base + ", transform: [{center_crop: 4}]}") == Shape{4, 4, 3});
  CHECK(read_all("{" + base + ", transform: [{resize: 6}, {center_crop: 6}], shape: [6, 6, 3], classes: 2}") ==
        Shape{6, 6, 3});
  CHECK_THROWS_AS(read_all("{" + base + ", transform: [{resize: [8, 7]}], shape: [7, 7, 3]}"), Error);
  CHECK_THROWS_AS(read_all("{" + base + ", transform: [{resize: [8, 7]}], classes: 3}"), Error);
}

TEST_CASE("a damaged image stops the run, or is skipped with weight 0") {
  const TempFolder folder;
  const std::string good = jpeg(16, 16, 3, slope(16, 16, 3));
  write_file(folder / "a/1.jpg", good);
  write_file(folder / "a/2.jpg", good.substr(0, good.size() * 2 / 3));
  write_file(folder / "b/3.jpg", good);
  const std::string base = format("dataset: image_folder, path: {}, shuffle: false", folder.text());
  {
    const Data data(data_options("{" + base + "}"), 1);
    const auto source = data.training(3, {}, {1, 0, 0});
    try {
      source->next();
      FAIL("no error");
    } catch (const Error& error) {
      CHECK(std::string(error.what()).find("a/2.jpg") != std::string::npos);
    }
  }
  const Data data(data_options("{" + base + ", on_error: skip}"), 1);
  const auto source = data.training(3, {}, {1, 0, 0});
  const Batch& batch = source->next();
  CHECK(batch.weights.as<float>()[0] == 1);
  CHECK(batch.weights.as<float>()[1] == 0);
  CHECK(batch.weights.as<float>()[2] == 1);
}

TEST_CASE("validation folders: classes are numbered as in training, and unknown ones are refused") {
  const TempFolder folder;
  const std::string image = png(2, 2, 2, random_bytes(12, 1));
  for (const char* name : {"train/a/1.png", "train/b/1.png", "train/c/1.png", "good/c/1.png", "bad/d/1.png"})
    write_file(folder / name, image);
  const auto config = [&](const char* validation) {
    return data_options(
        format("{{dataset: image_folder, path: {}, validation: {{path: {}}}}}", folder / "train", folder / validation));
  };
  const Data data(config("good"), 1);
  CHECK(data.info().validation_samples == 1);
  CHECK(data.evaluation(SplitKind::validation, 1, {})->next().targets[0].as<std::int32_t>()[0] == 2);
  CHECK_THROWS_AS(Data(config("bad"), 1), Error);
}

TEST_CASE("CMYK and YCCK images are read as RGB, with Adobe's complements and without") {
  const TempFolder folder;
  constexpr std::size_t height = 8, width = 8;
  // Ink values with gentle slopes; the expected colours follow from the definition of CMYK.
  std::string inks, complements;
  std::vector<double> rgb, gray;
  for (std::size_t y = 0; y < height; ++y) {
    for (std::size_t x = 0; x < width; ++x) {
      const double values[4] = {10. + 8. * static_cast<double>(x), 200. - 9. * static_cast<double>(y), 120.,
                                30. + 4. * static_cast<double>(x + y)};
      for (double value : values) {
        inks += static_cast<char>(value);
        complements += static_cast<char>(255 - value);
      }
      for (int c = 0; c < 3; ++c) rgb.push_back(255 * (1 - values[c] / 255) * (1 - values[3] / 255));
      const double* pixel = &rgb[rgb.size() - 3];
      gray.push_back(0.299 * pixel[0] + 0.587 * pixel[1] + 0.114 * pixel[2]);
    }
  }
  write_file(folder / "a/adobe_cmyk.jpg", jpeg(height, width, 4, complements));
  write_file(folder / "a/adobe_ycck.jpg", jpeg(height, width, 4, complements, JCS_YCCK));
  write_file(folder / "a/plain_cmyk.jpg", jpeg(height, width, 4, inks, JCS_CMYK, false));
  for (std::int64_t channels : {3, 1}) {
    const std::vector<double>& expected = channels == 3 ? rgb : gray;
    const auto dataset = image_folder_dataset({folder.text()}, {Shape{8, 8, channels}, {}, nullptr});
    CHECK(dataset->info().sample == Shape{8, 8, channels});
    for (std::int64_t i = 0; i < dataset->size(); ++i) {
      INFO(dataset->name_of(i));
      Sample sample;
      dataset->read(i, sample);
      double worst = 0;
      for (std::size_t k = 0; k < expected.size(); ++k) {
        worst = std::max(worst, std::abs(static_cast<const std::uint8_t*>(sample.values)[k] - expected[k]));
      }
      CHECK(worst < 5);
    }
  }
  // The same decoder reads RGB images afterwards.
  write_file(folder / "a/x.jpg", jpeg(8, 8, 3, slope(8, 8, 3)));
  const auto dataset = image_folder_dataset({folder.text()}, {});
  Sample sample;
  dataset->read(3, sample);
  CHECK(std::abs(static_cast<const std::uint8_t*>(sample.values)[0] - 40) <= 3);
}

}  // namespace trainctl::test::images_test
