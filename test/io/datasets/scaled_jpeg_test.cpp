// Compares JPEG files that are decoded to a fraction of their size before a resize with the resize of the whole image.
#include <cmath>
#include <random>

#include "io/datasets/images/image_codec.h"
#include "io/datasets/images/image_folder.h"
#include "io/loader/data.h"
#include "io/loader/images/resize.h"
#include "test/catch.h"
#include "test/support/images.h"

namespace trainctl::test::scaled_jpeg_test {
namespace {

// Pixels like those of a photograph: waves of many lengths, the short ones faint.
std::string waves(std::uint32_t height, std::uint32_t width, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> uniform(0, 1);
  std::vector<double> values(std::size_t{height} * width * 3);
  for (int wave = 0; wave < 24; ++wave) {
    const double length = 4 * std::pow(1.25, wave), angle = 6.28 * uniform(random), phase = 6.28 * uniform(random);
    const double y_step = 6.28 * std::sin(angle) / length, x_step = 6.28 * std::cos(angle) / length;
    const double amplitudes[] = {uniform(random), uniform(random), uniform(random)};
    std::size_t i = 0;
    for (std::uint32_t y = 0; y < height; ++y) {
      for (std::uint32_t x = 0; x < width; ++x) {
        const double value = std::sin(y * y_step + x * x_step + phase) * length / 8;
        for (const double amplitude : amplitudes) values[i++] += amplitude * value;
      }
    }
  }
  std::string pixels;
  for (const double value : values) pixels += static_cast<char>(std::lround(127.5 + 127.5 * std::tanh(value / 60)));
  return pixels;
}

struct ImageSize {
  std::uint32_t height, width;
};

// Writes images of these sizes into one class folder.
void write_images(const TempFolder& folder, const std::vector<ImageSize>& sizes) {
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const auto [height, width] = sizes[i];
    write_file(folder / format("a/{:03}.jpg", i),
               jpeg(height, width, 3, waves(height, width, static_cast<unsigned>(i))));
  }
}

struct Difference {
  double mean = 0, largest = 0;
};

Difference difference(const float* a, const float* b, std::int64_t count) {
  Difference found;
  for (std::int64_t i = 0; i < count; ++i) {
    const double one = std::abs(double{a[i]} - b[i]);
    found.mean += one / static_cast<double>(count);
    found.largest = std::max(found.largest, one);
  }
  return found;
}

// All samples of one epoch, without shuffling.
std::vector<float> epoch_of(const std::string& yaml, std::int64_t samples, int epoch = 0) {
  const Data data(data_options(yaml), 1);
  const auto source = data.training(samples, {}, {1, 0, 0});
  for (int i = 0; i < epoch; ++i) source->next();
  const Batch& batch = source->next();
  const auto* values = batch.inputs[0].as<float>();
  return {values, values + batch.inputs[0].count};
}

}  // namespace

TEST_CASE("a JPEG is decoded to the smallest of 1/1, 1/2, 1/4 and 1/8 of its size that is not below the resize") {
  std::mt19937 random(5);
  std::size_t smaller = 0;
  for (int i = 0; i < 60; ++i) {
    const ImageSize size{1 + static_cast<std::uint32_t>(random() % 120),
                         1 + static_cast<std::uint32_t>(random() % 120)};
    const std::string file = jpeg(size.height, size.width, 1, random_bytes(std::size_t{size.height} * size.width, 1));
    const auto read = [&](Sample& sample) {
      decode_sample(reinterpret_cast<const std::byte*>(file.data()), std::ssize(file), 1, "x.jpg", sample);
    };
    Sample sample;
    const std::int64_t height = 1 + static_cast<std::int64_t>(random() % 40),
                       width = 1 + static_cast<std::int64_t>(random() % 40);
    sample.resize = ResizeTarget{height, width, i % 2 == 0};
    const Shape target = sample.resize->of({size.height, size.width, 1});
    read(sample);
    CHECK(sample.whole == Shape{size.height, size.width, 1});
    // Pillow's rule for Image.draft().
    const std::int64_t scale = std::min(size.height / target[0], size.width / target[1]);
    const std::int64_t by = scale >= 8 ? 8 : scale >= 4 ? 4 : scale >= 2 ? 2 : 1;
    CHECK(sample.shape == Shape{(size.height + by - 1) / by, (size.width + by - 1) / by, 1});
    CHECK((by == 1 || (sample.shape[0] >= target[0] && sample.shape[1] >= target[1])));
    smaller += by > 1 ? 1 : 0;
    // The same sample object reads whole images again.
    sample.resize.reset();
    read(sample);
    CHECK(sample.shape == sample.whole);
  }
  CHECK(smaller > 20);
}

TEST_CASE("images that are decoded to a fraction are almost equal to resized whole images") {
  const TempFolder folder;
  const std::vector<ImageSize> sizes = {{180, 131}, {131, 180}, {200, 200}, {97, 400}, {64, 64}, {63, 90}, {530, 300}};
  write_images(folder, sizes);
  const auto dataset = image_folder_dataset({folder.text()}, {});
  const auto count = std::ssize(sizes);
  const std::string base = format("dataset: image_folder, path: {}, shuffle: false", folder.text());
  for (const bool square : {true, false}) {
    const std::vector<float> found = epoch_of(
        "{" + base +
            (square ? ", transform: [{resize: [32, 30]}]}" : ", transform: [{resize: 32}, {center_crop: [32, 30]}]}"),
        count);
    const std::int64_t each = 32 * 30 * 3;
    REQUIRE(std::ssize(found) == each * count);
    for (std::int64_t i = 0; i < count; ++i) {
      Sample sample;
      dataset->read(i, sample);
      REQUIRE(sample.shape ==
              Shape{sizes[static_cast<std::size_t>(i)].height, sizes[static_cast<std::size_t>(i)].width, 3});
      const ImageView whole = as_image(sample.values, sample.dtype, sample.shape);
      // The shorter side becomes 32, the other in proportion, rounded half away from zero.
      const double factor = 32.0 / static_cast<double>(std::min(whole.height, whole.width));
      const auto scaled = [&](std::int64_t side) { return std::lround(factor * static_cast<double>(side)); };
      ResizeScratch scratch;
      ImageView expected =
          square ? resize(whole, 32, 30, scratch) : resize(whole, scaled(whole.height), scaled(whole.width), scratch);
      if (!square) expected = expected.crop((expected.height - 32) / 2, (expected.width - 30) / 2, 32, 30);
      std::vector<float> rows;
      for (std::int64_t y = 0; y < 32; ++y) {
        const float* row = static_cast<const float*>(expected.data) + y * expected.stride;
        rows.insert(rows.end(), row, row + 90);
      }
      const Difference off = difference(found.data() + i * each, rows.data(), each);
      INFO("image " << i << ": " << off.mean << " on average, " << off.largest << " at most");
      CHECK(off.mean < 5);
      CHECK(off.largest < 40);
      if (whole.height < 64) CHECK(off.largest == 0);  // too small to be decoded to a fraction
    }
  }
}

TEST_CASE("images are decoded at full size if another transform precedes the resize") {
  const TempFolder folder;
  write_images(folder, {{160, 170}, {190, 160}});
  const auto dataset = image_folder_dataset({folder.text()}, {});
  const std::string base = format("dataset: image_folder, path: {}, shuffle: false", folder.text());
  const std::vector<float> found = epoch_of("{" + base + ", transform: [{center_crop: 128}, {resize: [32, 32]}]}", 2);
  for (std::int64_t i = 0; i < 2; ++i) {
    Sample sample;
    dataset->read(i, sample);
    const ImageView whole = as_image(sample.values, sample.dtype, sample.shape);
    ResizeScratch scratch;
    const ImageView expected =
        resize(whole.crop((whole.height - 128) / 2, (whole.width - 128) / 2, 128, 128), 32, 32, scratch);
    const std::int64_t each = 32 * 32 * 3;
    CHECK(difference(found.data() + i * each, static_cast<const float*>(expected.data), each).largest == 0);
  }
}

TEST_CASE("caches and measured statistics use the images that are decoded to a fraction") {
  const TempFolder folder, caches;
  write_images(folder, {{180, 131}, {131, 180}, {200, 200}});
  const std::string base = format(
      "dataset: image_folder, path: {}, shuffle: false, transform: [{{resize: [24, 24]}}, {{normalize: measured}}]",
      folder.text());
  const std::vector<float> plain = epoch_of("{" + base + "}", 3);
  const std::string disk = format("{}, cache: disk, cache_path: {}", base, caches.text());
  for (const std::string& cached : {base + ", cache: memory", disk, disk}) {
    for (const int epoch : {0, 1}) CHECK(epoch_of("{" + cached + "}", 3, epoch) == plain);
  }
  double sum = 0, squares = 0;
  for (const float value : plain) {
    sum += value;
    squares += double{value} * value;
  }
  const auto count = static_cast<double>(plain.size());
  CHECK(std::abs(sum / count) < 1e-4);
  CHECK(std::abs(squares / count - 1) < 1e-3);
}

}  // namespace trainctl::test::scaled_jpeg_test
