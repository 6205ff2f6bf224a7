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
        "swap `images` and `target_images`", "use --targets classes", "add: {from: [image, change]}", "psnr"}},
      {"odd", pairs("odd/Input", "odd/Target", 1, false), true, {"images: odd/Input", "target_images: odd/Target"}},
      {"large",
       pairs("large/lr", "large/hr", 3),
       true,
       {"images: large/lr", "images of 12x12 with targets of 36x36",
        "conv2d_transpose: {name: change, filters: 3, "
        "kernel_size: 3, strides: 3}",
        "target_transform:"}},
      {"wrapped",
       pairs("wrapped/photos/inner/low", "wrapped/photos/inner/high", 2),
       true,
       {"images: wrapped/photos/inner/low", "target_transform:\n    - resize: [24, 24]"}},
      {"DIV2K",
       [](const Folder& folder) {
         pairs("DIV2K/DIV2K_train_LR", "DIV2K/DIV2K_train_HR", 2)(folder);
         pairs("DIV2K/DIV2K_valid_LR", "DIV2K/DIV2K_valid_HR", 2)(folder);
       },
       true,
       {"images: DIV2K/DIV2K_train_LR", "target_images: DIV2K/DIV2K_train_HR",
        "validation: {images: DIV2K/DIV2K_valid_LR, target_images: DIV2K/DIV2K_valid_HR}"}},
      {"unknown",
       pairs("unknown/zebra", "unknown/b_sharp"),
       true,
       {"images: unknown/zebra", "target_images: unknown/b_sharp"}},
      {"turned", pairs("turned/sharp", "turned/a"), true, {"images: turned/a", "target_images: turned/sharp"}},
      {"exact",
       [](const Folder& folder) {
         for (unsigned i = 0; i < 20; ++i) {
           folder.write(format("exact/hue/{}.png", i), picture(i, 1, 0.75, 20));
           folder.write(format("exact/bw/{}.png", i), picture(i, 1, 0.75, 28.15, 1));
         }
       },
       true,
       {"images: exact/bw", "target_images: exact/hue", "target_color_mode: rgb"}},
      {"copies",
       [](const Folder& folder) {
         for (unsigned i = 0; i < 20; ++i) {
           folder.write(format("copies/low/{}.png", i), picture(i, 1, 0.8, 20));
           folder.write(format("copies/high/{}.png", i), picture(i, 1, 0.8, 20));
         }
       },
       true,
       {"dataset: image_folder", "classes: 2"}},
      {"damaged",
       [](const Folder& folder) {
         pairs("damaged/input", "damaged/target")(folder);
         folder.write("damaged/target/7.png", "");
       },
       true,
       {"on_error: skip", "target/7.png: is empty"}},
      {"lol",
       [](const Folder& folder) {
         pairs("lol/our485/low", "lol/our485/high")(folder);
         pairs("lol/eval15/low", "lol/eval15/high")(folder);
         std::filesystem::remove(folder / "lol/eval15/low/0.png");
         std::filesystem::remove(folder / "lol/eval15/high/0.png");
       },
       false,
       {"2 of its folders hold pairs of images: lol/our485 and lol/eval15", "training pairs, such as lol/our485",
        "validation: {images: lol/eval15/low, target_images: lol/eval15/high}"}},
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

// A table of the pairs with one more column, and its first line.
static std::function<void(const Folder&)> table_of_pairs(const std::string& header, const std::string& more,
                                                         char delimiter = ',', const std::string& targets = "y") {
  return [=](const Folder& folder) {
    pairs("x", targets)(folder);
    std::string table = header.empty() ? "" : header + "\n";
    for (int i = 0; i < 20; ++i) {
      table += format("x/{0}.png{1}{2}/{0}.png{3}\n", i, delimiter, targets,
                      more.empty() ? "" : format("{}{}", delimiter, more == "class" ? i % 2 : i));
    }
    folder.write("list.csv", table);
  };
}

TEST_CASE("init reads a table as pairs only if its other columns cannot be the targets") {
  check_cases({
      {"list.csv",
       table_of_pairs("left,right,same", "class"),
       false,
       {"its columns 'left' and 'right' name images, but the column 'same' may be the target, too",
        "--targets values"}},
      {"list.csv",
       table_of_pairs("left,right,same", "class"),
       true,
       {"image_column: left", "target_column: right", "the column 'same' is left out"},
       {"--targets", "values"}},
      {"list.csv",
       table_of_pairs("input,target,camera", "class"),
       true,
       {"image_column: input", "the column 'camera' is left out"}},
      {"list.csv", table_of_pairs("left,right,frame", "count"), true, {"image_column: left"}},
      {"list.csv",
       table_of_pairs("image,mask", ""),
       false,
       {"the second ones may be masks", "segmentation_folder", "--targets values"}},
      {"list.csv", table_of_pairs("", ""), false, {"line 1 names the file x/0.png instead of columns"}},
      {"list.csv", table_of_pairs("image;target", "", ';'), false, {"semicolons separate its fields"}},
      {"list.csv",
       table_of_pairs("image,target", ""),
       true,
       {"image_column: image", "target_column: target"},
       {"--target", "target"}},
      {"list.csv",
       table_of_pairs("one,other", ""),
       true,
       {"image_column: other", "target_column: one"},
       {"--target", "one"}},
  });
}

TEST_CASE("init says that targets with few values may be masks") {
  const auto write = [](const std::string& masks, int channels) {
    return [=](const Folder& folder) {
      pairs("set/images", "set/" + masks)(folder);
      for (unsigned i = 0; i < 20; ++i) {
        std::string pixels;
        for (const char c : random_bytes(144, i))
          pixels += std::string(static_cast<std::size_t>(channels), static_cast<char>(c & 1));
        folder.write(format("set/{}/{}.png", masks, i), png(12, 12, channels == 3 ? 2 : 0, pixels));
      }
    };
  };
  check_cases({
      {"set",
       write("targets", 1),
       true,
       {"dataset: image_pairs", "they have only 2 values, as masks do", "masks: set/targets"}},
      {"set", write("masks", 3), false, {"is an image of colors", "use --targets values"}},
  });
}

}  // namespace trainctl::test::init_pairs_test
