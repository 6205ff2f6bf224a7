// Tests init on pairs of images: two folders with files of the same names, which are no classes.
#include <algorithm>
#include <filesystem>
#include <functional>
#include <random>

#include "core/base/format.h"
#include "test/catch.h"
#include "test/cmd/init_cases.h"
#include "test/support/command.h"
#include "test/support/files.h"

namespace trainctl::test::init_pairs_test {
namespace {

using namespace init_cases;

// An image of random patches; `scale` and `shift` change its values, and each pixel is repeated `factor` times.
std::string picture(unsigned seed, std::size_t factor, double scale, double shift, int channels = 3) {
  constexpr std::size_t side = 12, patch = 3;
  const std::string patches = random_bytes(side * side, seed);
  std::string pixels;
  for (std::size_t y = 0; y < side * factor; ++y) {
    for (std::size_t x = 0; x < side * factor; ++x) {
      const std::size_t at = y / factor / patch * side + x / factor / patch;
      for (int c = 0; c < channels; ++c) {
        const double value = static_cast<unsigned char>(patches[at]) * scale + shift + (channels == 3 ? 10 * c : 0);
        pixels += static_cast<char>(static_cast<unsigned char>(std::clamp(value, 0.0, 255.0)));
      }
    }
  }
  const auto size = static_cast<std::uint32_t>(side * factor);
  return png(size, size, channels == 3 ? 2 : 0, pixels);
}

// Writes 20 pairs into two folders. With `alike`, the images of the same names resemble each other.
std::function<void(const Folder&)> pairs(const std::string& images, const std::string& targets, std::size_t factor = 1,
                                         bool alike = true, int channels = 3) {
  return [=](const Folder& folder) {
    for (unsigned i = 0; i < 20; ++i) {
      folder.write(format("{}/{}.png", images, i), picture(i, 1, 0.3, 5, channels));
      folder.write(format("{}/{}.png", targets, i), picture(alike ? i : i + 100, factor, 0.8, 20));
    }
  };
}

}  // namespace

TEST_CASE("init writes a network of convolutions for two folders of pairs of images") {
  check_cases({
      {"light",
       pairs("light/low", "light/high"),
       true,
       {"dataset: image_pairs", "images: light/low", "target_images: light/high", "split: 0.2", "shape: [12, 12, 3]",
        "use --targets classes", "add: {from: [image, change]}", "psnr"}},
      {"odd", pairs("odd/Input", "odd/Target", 1, false), true, {"images: odd/Input", "target_images: odd/Target"}},
      {"large",
       pairs("large/lr", "large/hr", 3),
       true,
       {"images: large/lr", "images of 12x12 with targets of 36x36",
        "conv2d_transpose: {name: change, filters: 3, "
        "kernel_size: 3, strides: 3}",
        "target_transform:"}},
      {"sizes", pairs("sizes/two", "sizes/one", 2), true, {"images: sizes/two", "with targets of 24x24"}},
      {"hues",
       pairs("hues/gray", "hues/color", 1, true, 1),
       true,
       {"images: hues/gray", "shape: [12, 12, 1]", "target_color_mode: rgb"}},
      {"split",
       [](const Folder& folder) {
         pairs("split/train/noisy", "split/train/clean")(folder);
         pairs("split/val/noisy", "split/val/clean")(folder);
       },
       true,
       {"validation: {images: split/val/noisy, target_images: split/val/clean}"}},
      {"inner",
       [](const Folder& folder) {
         pairs("inner/A/train", "inner/B/train")(folder);
         pairs("inner/A/test", "inner/B/test")(folder);
       },
       true,
       {"images: inner/A/train", "test: {images: inner/A/test, target_images: inner/B/test}", "split: 0.2"}},
      {"lonely",
       [](const Folder& folder) {
         pairs("lonely/noisy", "lonely/clean")(folder);
         std::filesystem::remove(folder / "lonely/clean/7.png");
       },
       false,
       {"lonely/noisy/7.png: has no target: there is no image ", "lonely/clean/7 with any ending"}},
      {"list.csv",
       [](const Folder& folder) {
         pairs("x", "y")(folder);
         std::string table = "id,photo,clean\n";
         for (int i = 0; i < 20; ++i) table += format("{0},x/{0}.png,y/{0}.png\n", i);
         folder.write("list.csv", table);
       },
       true,
       {"path: list.csv", "image_column: photo", "target_column: clean"}},
  });
}

TEST_CASE("init follows the user's choice between classes and pairs of images") {
  check_cases({
      {"kinds",
       pairs("kinds/cat", "kinds/dog", 1, false),
       true,
       {"dataset: image_folder", "classes: 2", "use --targets values"}},
      {"maps",
       pairs("maps/map", "maps/photo", 1, false),
       true,
       {"dataset: image_pairs", "images: maps/map"},
       {"--targets", "values"}},
      {"light", pairs("light/low", "light/high"), true, {"dataset: image_folder"}, {"--targets", "classes"}},
      {"depth",
       pairs("depth/images", "depth/labels"),
       true,
       {"dataset: image_pairs", "target_images: depth/labels"},
       {"--targets", "values"}},
  });
}

}  // namespace trainctl::test::init_pairs_test
