// JPEG files of which only the rows are transformed that a crop shows, against those that are decoded whole.
#include <random>

#include "io/datasets/image_codec.h"
#include "io/loader/data.h"
#include "test/catch.h"
#include "test/data/images.h"

using namespace trainctl;
using namespace trainctl::test;

namespace {

Sample decoded(const std::string& file, std::int64_t channels, const std::optional<PixelRows>& rows) {
  Sample sample;
  sample.rows = rows;
  decode_sample(reinterpret_cast<const std::byte*>(file.data()), std::ssize(file), channels, "x.jpg", sample);
  return sample;
}

std::string random_jpeg(std::uint32_t height, std::uint32_t width, int channels, const JpegForm& form, unsigned seed) {
  return jpeg(height, width, channels,
              random_bytes(std::size_t{height} * width * static_cast<unsigned>(channels), seed), form);
}

// Three epochs of a folder's samples.
std::vector<float> epochs(const std::string& yaml, std::int64_t samples) {
  const Data data(data_options(yaml), 1);
  const auto source = data.training(samples, {}, {1, 0, 0});
  std::vector<float> values;
  for (int epoch = 0; epoch < 3; ++epoch) {
    const View& inputs = source->next().inputs[0];
    if (inputs.dtype == DType::uint8) {
      values.insert(values.end(), inputs.as<std::uint8_t>(), inputs.as<std::uint8_t>() + inputs.count);
    } else {
      values.insert(values.end(), inputs.as<float>(), inputs.as<float>() + inputs.count);
    }
  }
  return values;
}

}  // namespace

TEST_CASE("the rows that are needed of a JPEG are those of the whole image, however it was written") {
  std::mt19937 random(3);
  const std::vector<JpegForm> forms = {{},
                                       {.down = 2, .across = 2},
                                       {.across = 2},
                                       {.down = 2},
                                       {.down = 2, .across = 2, .progressive = true},
                                       {.down = 2, .across = 2, .restart = 3},
                                       {.across = 4}};
  for (const JpegForm& form : forms) {
    for (int i = 0; i < 40; ++i) {
      const auto height = static_cast<std::uint32_t>(1 + random() % 70),
                 width = 1 + static_cast<std::uint32_t>(random() % 70);
      const int channels = form.across == 1 && i % 4 == 0 ? 4 : i % 4 == 1 ? 1 : 3, kept = i % 4 == 1 ? 1 : 3;
      const std::string file = random_jpeg(height, width, channels, form, random());
      const auto begin = static_cast<std::int64_t>(random() % height);
      const auto end = begin + static_cast<std::int64_t>(random() % (height - begin + 1));
      CAPTURE(form.down, form.across, form.progressive, form.restart, height, width, channels, begin, end);
      const Sample whole = decoded(file, kept, {}), part = decoded(file, kept, PixelRows{begin, end});
      REQUIRE(part.shape == whole.shape);
      const auto row = static_cast<std::ptrdiff_t>(width) * kept;
      CHECK(std::equal(part.buffer.begin() + begin * row, part.buffer.begin() + end * row,
                       whole.buffer.begin() + begin * row));
    }
  }
}

TEST_CASE("rows of another image than the one that is read are no reason not to decode it") {
  const std::string file = random_jpeg(20, 30, 3, {}, 1);
  CHECK(decoded(file, 3, PixelRows{4, 28}).buffer == decoded(file, 3, {}).buffer);
}

TEST_CASE("a JPEG is damaged wherever the damage lies, whichever rows are needed") {
  const std::string file = random_jpeg(96, 64, 3, {.down = 2, .across = 2}, 7);
  const std::string truncated = file.substr(0, file.size() * 19 / 20);
  for (const PixelRows rows : {PixelRows{0, 96}, PixelRows{0, 10}, PixelRows{40, 50}}) {
    CHECK(decoded(file, 3, rows).shape == Shape{96, 64, 3});
    CHECK_THROWS_AS(decoded(truncated, 3, rows), Error);
  }
}

TEST_CASE("cropped images are those that a cache keeps whole, with every other augmentation") {
  const TempFolder folder;
  constexpr std::int64_t samples = 12;
  for (unsigned i = 0; i < samples; ++i) {
    write_file(folder / format("{}/{:02}.jpg", i % 2 == 0 ? "a" : "b", i),
               random_jpeg(48, 40, 3, {.down = 2, .across = 2, .progressive = i % 3 == 0}, i));
  }
  for (const std::string augment :
       {"[{random_crop: {size: 16}}]", "[{random_crop: {size: 30, padding: 5}}]",
        "[{random_flip: vertical}, {random_crop: {size: 20}}]",
        "[{random_crop: {size: 32}}, {random_rotation: 0.1}, {random_crop: {size: 20}}]",
        "[{random_brightness: 0.2}, {random_crop: {size: 20}}]",
        "[{random_crop: {size: 30}}, {random_flip: vertical}, {random_crop: {size: 12}}]"}) {
    CAPTURE(augment);
    const auto read = [&](const std::string& cache) {
      return epochs(
          format("{{dataset: image_folder, path: {}, cache: {}, augment: {}}}", folder.text(), cache, augment),
          samples);
    };
    CHECK(read("none") == read("memory"));
  }
}
