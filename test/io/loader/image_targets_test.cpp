// Tests targets that are images: masks of class numbers, which move with their images, and the input itself.
#include <algorithm>
#include <cmath>
#include <set>

#include "core/tensor/sample_numbers.h"
#include "io/datasets/images/mask_codec.h"
#include "io/loader/data.h"
#include "test/catch.h"
#include "test/support/files.h"

namespace trainctl::test::image_targets_test {
namespace {

constexpr std::size_t height = 20, width = 24, images = 6;
constexpr int classes = 4;

// Writes masks with blocks of random classes, and images whose three channels are 40 + 20 * class. Returns the masks.
std::vector<std::string> write_folder(const TempFolder& folder, std::size_t block = 1) {
  std::vector<std::string> masks;
  for (std::size_t n = 0; n < images; ++n) {
    const std::string random = random_bytes(height * width, static_cast<unsigned>(n) + 1);
    std::string mask(height * width, '\0'), image;
    for (std::size_t i = 0; i < mask.size(); ++i) {
      const std::size_t y = i / width / block, x = i % width / block;
      mask[i] = static_cast<char>(static_cast<unsigned char>(random[y * width + x]) % classes);
    }
    for (const char c : mask) image += std::string(3, static_cast<char>(40 + 20 * c));
    write_file(folder / format("images/deep/{}.png", n), png(height, width, 2, image));
    write_file(folder / format("masks/deep/{}.png", n), png(height, width, 0, mask));
    masks.push_back(mask);
  }
  return masks;
}

std::string config(const TempFolder& folder, const std::string& more) {
  return format("{{dataset: segmentation_folder, path: {}, classes: {}, {}}}", folder.text(), classes, more);
}

struct Batches {
  std::vector<std::vector<float>> images, weights;
  std::vector<std::vector<std::int32_t>> masks;
  std::vector<std::int64_t> samples;
};

// Reads some epochs in batches of one sample. Of an image it keeps the first channel, as the network gets it.
Batches read(const std::string& yaml, int epochs) {
  const Data data(data_options(yaml), 3);
  const auto source = data.training(1, {}, {3, 0, 0});
  const SampleFormat& values = data.info().inputs[0].format;
  Batches all;
  for (std::size_t i = 0; i < images * static_cast<std::size_t>(epochs); ++i) {
    const Batch& batch = source->next();
    const auto pixels = static_cast<std::size_t>(data.info().targets[0].shape.count());
    std::vector<float> image(pixels);
    for (std::size_t p = 0; p < pixels; ++p) {
      image[p] = values.dtype == DType::uint8 ? static_cast<const std::uint8_t*>(batch.inputs[0].data)[3 * p]
                                              : static_cast<const float*>(batch.inputs[0].data)[3 * p];
    }
    all.images.push_back(image);
    const auto* mask = static_cast<const std::int32_t*>(batch.targets[0].data);
    all.masks.emplace_back(mask, mask + pixels);
    const auto* weights = static_cast<const float*>(batch.weights.data);
    all.weights.emplace_back(weights, weights + data.info().weight.count());
    all.samples.push_back(*static_cast<const std::int64_t*>(batch.samples.data));
  }
  return all;
}

void expect_error(const std::string& yaml, std::initializer_list<const char*> parts) {
  try {
    read(yaml, 1);
    FAIL("no error");
  } catch (const Error& error) {
    INFO(error.what());
    CHECK(error.kind() == ErrorKind::data);
    for (const char* part : parts) CHECK(std::string(error.what()).find(part) != std::string::npos);
  }
}

}  // namespace

TEST_CASE("masks move exactly as their images do, at random by sample and epoch") {
  const TempFolder folder;
  write_folder(folder);
  const char* lists[] = {
      "{random_flip: horizontal_and_vertical}",
      "{random_crop: [9, 13]}, {random_flip: vertical}",
      "{random_rotation: {factor: 0.5, fill_mode: wrap, interpolation: nearest}}, {random_crop: 10}",
      "{random_zoom: {height_factor: 0.4, fill_mode: reflect, interpolation: nearest}}",
      "{random_flip: vertical}, {random_translation: {height_factor: 0.3, width_factor: 0.3, fill_mode: nearest, "
      "interpolation: nearest}}, {random_flip: horizontal}",
  };
  for (const std::string list : lists) {
    for (const std::string cache : {"none", "memory"}) {
      INFO(list << " cache " << cache);
      const Batches found = read(config(folder, format("augment: [{}], cache: {}", list, cache)), 3);
      std::set<std::vector<std::int32_t>> masks;
      for (std::size_t i = 0; i < found.masks.size(); ++i) {
        std::size_t wrong = 0;
        for (std::size_t p = 0; p < found.masks[i].size(); ++p) {
          wrong += found.images[i][p] != static_cast<float>(40 + 20 * found.masks[i][p]);
        }
        CHECK(wrong == 0);
        masks.insert(found.masks[i]);
      }
      CHECK(masks.size() > images * 2);  // hardly any of the 18 masks occurs twice
    }
  }
}

TEST_CASE("augmentations that change values do not change masks, also in rand_augment") {
  const TempFolder folder;
  const std::vector<std::string> stored = write_folder(folder);
  const Batches found =
      read(config(folder,
                  "augment: [{random_brightness: 0.5}, {random_contrast: 0.5}, {random_erasing: {}}], "
                  "transform: [{normalize: {mean: [3], std: [7]}}]"),
           2);
  for (std::size_t i = 0; i < found.masks.size(); ++i) {
    const std::string& mask = stored[static_cast<std::size_t>(found.samples[i])];
    CHECK(std::equal(mask.begin(), mask.end(), found.masks[i].begin(), found.masks[i].end()));
  }
  // Only operations that move pixels change the mask. Black pixels, which show no class, have class 0 in it.
  const Batches moved = read(config(folder, "augment: [{rand_augment: {num_ops: 3, magnitude: 20}}]"), 8);
  int equal = 0, black = 0;
  for (std::size_t i = 0; i < moved.masks.size(); ++i) {
    // If no operation changed the values, the image still shows the classes.
    const bool plain = std::all_of(moved.images[i].begin(), moved.images[i].end(), [](float value) {
      return value == 0 || (value >= 40 && value <= 100 && static_cast<int>(value) % 20 == 0);
    });
    if (!plain) continue;
    for (std::size_t p = 0; p < moved.masks[i].size(); ++p) {
      const float value = moved.images[i][p];
      black += value == 0;
      equal += moved.masks[i][p] == (value == 0 ? 0 : static_cast<std::int32_t>(value - 40) / 20);
    }
    equal -= static_cast<int>(moved.masks[i].size());
  }
  CHECK(equal == 0);
  CHECK(black > 0);
}

TEST_CASE("pixels without a class and pixels outside of the image have weight 0") {
  const TempFolder folder;
  const std::vector<std::string> stored = write_folder(folder);
  const Batches found = read(config(folder, "ignore: 3, augment: [{random_crop: {size: [20, 24], padding: 5}}]"), 2);
  std::size_t outside = 0;
  for (std::size_t i = 0; i < found.masks.size(); ++i) {
    REQUIRE(found.weights[i].size() == found.masks[i].size());
    for (std::size_t p = 0; p < found.masks[i].size(); ++p) {
      const float value = found.images[i][p];
      outside += value == 0;
      const bool none = value == 0 || value == 100;
      if (found.weights[i][p] != (none ? 0 : 1) ||
          found.masks[i][p] != (none ? 0 : static_cast<std::int32_t>(value - 40) / 20)) {
        FAIL("sample " << i << ", pixel " << p);
      }
    }
  }
  CHECK(outside > 0);
}

TEST_CASE("masks are resized by the nearest pixel, their images with antialiasing") {
  const TempFolder folder;
  const std::vector<std::string> stored = write_folder(folder, 4);
  for (const auto& [h, w] : {std::pair<std::size_t, std::size_t>{7, 11}, {33, 50}, {20, 24}}) {
    const Batches found = read(config(folder, format("transform: [{{resize: [{}, {}]}}]", h, w)), 1);
    for (std::size_t i = 0; i < found.masks.size(); ++i) {
      const std::string& mask = stored[static_cast<std::size_t>(found.samples[i])];
      for (std::size_t y = 0; y < h; ++y) {
        for (std::size_t x = 0; x < w; ++x) {
          const auto sy = static_cast<std::size_t>((double(y) + 0.5) * double(height) / double(h));
          const auto sx = static_cast<std::size_t>((double(x) + 0.5) * double(width) / double(w));
          if (found.masks[i][y * w + x] != mask[sy * width + sx]) FAIL(y << ", " << x << " of " << h << "x" << w);
        }
      }
    }
  }
  // An image of two halves: away from the border, image and mask agree.
  std::string half(height * width, '\0'), image;
  for (std::size_t i = 0; i < half.size(); ++i) half[i] = i % width < width / 2 ? 1 : 2;
  for (const char c : half) image += std::string(3, static_cast<char>(40 + 20 * c));
  for (std::size_t n = 0; n < images; ++n) {
    write_file(folder / format("images/deep/{}.png", n), png(height, width, 2, image));
    write_file(folder / format("masks/deep/{}.png", n), png(height, width, 0, half));
  }
  const Batches found = read(config(folder, "transform: [{resize: 10}, {center_crop: [10, 10]}]"), 1);
  for (std::size_t p = 0; p < 100; ++p) {
    if (p % 10 == 4 || p % 10 == 5) continue;
    CHECK(std::abs(found.images[0][p] - 40 - 20 * static_cast<float>(found.masks[0][p])) < 1e-3);
  }
}

TEST_CASE("masks keep the stored values: palette indices, few bits, and values set in the config") {
  std::vector<std::byte> pixels;
  const auto decode = [&](const std::string& file) {
    return decode_mask(reinterpret_cast<const std::byte*>(file.data()), std::ssize(file), "m.png", pixels);
  };
  const auto equals = [&](const std::string& expected) {
    return std::equal(pixels.begin(), pixels.end(), reinterpret_cast<const std::byte*>(expected.data()),
                      reinterpret_cast<const std::byte*>(expected.data()) + expected.size());
  };
  const std::string indices{0, 2, 1, 2, 2, 0};
  CHECK(decode(png(2, 3, 3, indices, 8, std::string("\x80\x01\x02\xff\xff\xff\x05\x05\x05"))) == Shape{2, 3, 1});
  CHECK(equals(indices));
  decode(png(2, 3, 0, std::string("\xa0\x40"), 1));  // 101, 010
  CHECK(equals(std::string{1, 0, 1, 0, 1, 0}));
  decode(png(1, 4, 0, std::string("\xe4"), 2));
  CHECK(equals(std::string{3, 2, 1, 0}));

  const TempFolder folder;
  const std::string white = std::string(height * width / 2, '\0') + std::string(height * width / 2, '\xff');
  for (const char* part : {"images", "masks"})
    write_file(folder / format("{}/a.png", part), png(height, width, 0, white));
  const std::string base = format("{{dataset: segmentation_folder, path: {}, values: [0, 255]", folder.text());
  const Data data(data_options(base + "}"), 1);
  CHECK(data.info().targets[0].classes == 2);
  CHECK(data.info().targets[0].shape == Shape{height, width});
  // Targets of a network with one output, and with an output for each class.
  for (const TargetEncoding encoding : {TargetEncoding::class_value, TargetEncoding::one_hot}) {
    const auto source = data.training(1, {}, {1, 0, 0}, 0, {encoding});
    const auto* values = static_cast<const float*>(source->next().targets[0].data);
    for (std::size_t i = 0; i < white.size(); ++i) {
      const float one = white[i] != 0 ? 1 : 0;
      if (encoding == TargetEncoding::class_value ? values[i] != one
                                                  : values[2 * i] != 1 - one || values[2 * i + 1] != one) {
        FAIL("pixel " << i);
      }
    }
  }
}

TEST_CASE("each invalid mask is an error that names the file and what to do") {
  const TempFolder folder;
  write_folder(folder);
  const std::string path = "masks/deep/2.png", good = read_whole(folder / path);
  std::string wrong(height * width, '\1');
  wrong[3 * width + 5] = '\x07';
  write_file(folder / path, png(height, width, 0, wrong));
  expect_error(config(folder, ""), {"2.png", "value 7 at row 3, column 5", "4 classes", "ignore: 7"});
  write_file(folder / path, png(width, height, 0, std::string(height * width, '\0')));
  expect_error(config(folder, ""), {"2.png", "24x20", "20x24"});
  write_file(folder / path, png(height, width, 2, std::string(3 * height * width, '\0')));
  expect_error(config(folder, ""), {"2.png", "colors", "palette"});
  write_file(folder / path, png(height, width, 0, std::string(2 * height * width, '\0'), 16));
  expect_error(config(folder, ""), {"2.png", "16 bits"});
  write_file(folder / path, good.substr(0, good.size() / 2));
  expect_error(config(folder, ""), {"2.png", "decoded as PNG", "on_error: skip"});
  const Batches skipped = read(config(folder, "on_error: skip, ignore: 200"), 1);
  for (std::size_t i = 0; i < images; ++i) {
    const auto& weights = skipped.weights[i];
    CHECK(std::count(weights.begin(), weights.end(), 1) ==
          (skipped.samples[i] == skipped_sample(2) ? 0 : std::ssize(weights)));
  }
  std::filesystem::remove(folder / path);
  expect_error(config(folder, ""), {"images/deep/2.png", "has no mask", "masks/deep/2.png"});
}

TEST_CASE("the input as target has the same bits, augmented and scaled") {
  const TempFolder folder;
  write_file(folder / "x.npy", npy("|u1", "(8, 9, 7, 2)", random_bytes(8 * 9 * 7 * 2, 1)));
  std::vector<std::int64_t> labels(8);
  write_file(folder / "y.npy", npy("<i8", "(8,)", raw(labels)));
  for (const char* more :
       {"", ", transform: [{rescale: 1/255}], augment: [{random_flip: horizontal}, {random_crop: 5}]",
        ", transform: [{resize: [4, 4]}], cache: memory"}) {
    const Data data(data_options(format("{{dataset: npy, x: {}, y: {}, label_mode: input{}}}", folder / "x.npy",
                                        folder / "y.npy", more)),
                    5);
    CHECK(data.info().targets[0].classes == 0);
    CHECK(data.info().targets[0].shape == data.info().inputs[0].sample);
    CHECK(data.info().inputs[0].format.dtype == DType::float32);
    const auto source = data.training(3, {}, {5, 0, 0});
    for (int i = 0; i < 7; ++i) {
      const Batch& batch = source->next();
      REQUIRE(batch.targets[0].count == batch.inputs[0].count);
      CHECK(std::memcmp(batch.targets[0].data, batch.inputs[0].data,
                        static_cast<std::size_t>(batch.inputs[0].count) * sizeof(float)) == 0);
    }
  }
}

}  // namespace trainctl::test::image_targets_test
