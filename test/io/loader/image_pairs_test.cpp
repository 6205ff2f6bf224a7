// Tests pairs of images: targets that are images, which move with their inputs and keep their values.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "core/tensor/sample_numbers.h"
#include "io/loader/data.h"
#include "test/catch.h"
#include "test/support/files.h"

namespace trainctl::test::image_pairs_test {
namespace {

constexpr std::size_t height = 12, width = 10, pairs = 6;

// Writes images of random values and their targets, whose values are 255 - v, each pixel repeated `factor` times in
// both directions. Returns the values of the images.
std::vector<std::string> write_pairs(const TempFolder& folder, std::size_t factor = 1) {
  std::vector<std::string> images;
  for (std::size_t n = 0; n < pairs; ++n) {
    const std::string image = random_bytes(3 * height * width, static_cast<unsigned>(n) + 1);
    std::string target;
    for (std::size_t y = 0; y < factor * height; ++y) {
      for (std::size_t i = 0; i < factor * width; ++i) {
        for (std::size_t c = 0; c < 3; ++c) {
          target += static_cast<char>(~image[3 * (y / factor * width + i / factor) + c]);
        }
      }
    }
    write_file(folder / format("low/deep/{}.png", n), png(height, width, 2, image));
    write_file(folder / format("high/deep/{}.png", n),
               png(static_cast<std::uint32_t>(factor * height), static_cast<std::uint32_t>(factor * width), 2, target));
    images.push_back(image);
  }
  return images;
}

std::string config(const TempFolder& folder, const std::string& more = "on_error: stop") {
  return format("{{dataset: image_pairs, images: {}, target_images: {}, {}}}", folder / "low", folder / "high", more);
}

struct Read {
  Shape image, target;
  std::vector<std::vector<float>> images, targets;  // values as the network gets them
  std::vector<float> weights;
  std::vector<std::int64_t> samples;
};

Read read(const std::string& yaml, int epochs = 1, SplitKind split = SplitKind::training) {
  const Data data(data_options(yaml), 3);
  const auto source = split == SplitKind::training ? data.training(1, {}, {3, 0, 0}) : data.evaluation(split, 1, {});
  const SampleFormat& format_of_bytes = data.info().inputs[0].format;
  Read all{data.info().inputs[0].sample, data.info().targets[0].shape, {}, {}, {}, {}};
  CHECK(data.info().targets[0].classes == 0);
  for (std::int64_t i = 0; i < data.samples(split) * epochs; ++i) {
    const Batch& batch = source->next();
    std::vector<float> image(static_cast<std::size_t>(all.image.count()));
    for (std::size_t p = 0; p < image.size(); ++p) {
      if (format_of_bytes.dtype == DType::float32) {
        image[p] = static_cast<const float*>(batch.inputs[0].data)[p];
        continue;
      }
      const std::vector<float>&scale = format_of_bytes.scale, &offset = format_of_bytes.offset;
      image[p] = static_cast<const std::uint8_t*>(batch.inputs[0].data)[p] * scale[p % scale.size()] +
                 offset[p % offset.size()];
    }
    all.images.push_back(image);
    REQUIRE(batch.targets[0].dtype == DType::float32);
    const auto* target = static_cast<const float*>(batch.targets[0].data);
    all.targets.emplace_back(target, target + all.target.count());
    all.weights.push_back(*static_cast<const float*>(batch.weights.data));
    all.samples.push_back(*static_cast<const std::int64_t*>(batch.samples.data));
  }
  return all;
}

// The number of values of the targets that are not 255 - v of their image's pixel; `pad` is the target's value outside.
std::size_t wrong_values(const Read& found, std::size_t factor, float outside = -1) {
  std::size_t wrong = 0;
  const auto columns = static_cast<std::size_t>(found.image[1]);
  REQUIRE(found.target == Shape{found.image[0] * static_cast<std::int64_t>(factor),
                                found.image[1] * static_cast<std::int64_t>(factor), 3});
  for (std::size_t i = 0; i < found.images.size(); ++i) {
    for (std::size_t p = 0; p < found.targets[i].size(); ++p) {
      const std::size_t pixel = p / 3, y = pixel / (columns * factor) / factor, x = pixel % (columns * factor) / factor;
      const float value = found.images[i][3 * (y * columns + x) + p % 3];
      const float target = found.targets[i][p];
      const bool both_outside = outside >= 0 && value == outside && target == outside;
      wrong += !both_outside && target != 255 - value;
    }
  }
  return wrong;
}

void expect_error(const std::string& yaml, ErrorKind kind, std::initializer_list<std::string> parts) {
  try {
    read(yaml);
    FAIL("no error");
  } catch (const Error& error) {
    INFO(error.what());
    CHECK(error.kind() == kind);
    for (const std::string& part : parts) {
      CAPTURE(part);
      CHECK(std::string(error.what()).find(part) != std::string::npos);
    }
  }
}

}  // namespace

TEST_CASE("targets that are images move exactly as their images do, at random by sample and epoch") {
  struct Case {
    const char* list;
    std::size_t factor = 1;
    float outside = -1;
  };
  const Case cases[] = {
      {"{random_flip: horizontal_and_vertical}", 3},
      {"{random_crop: [5, 6]}, {random_flip: vertical}", 3},
      {"{random_crop: {size: [12, 10], padding: 3}}, {random_crop: [7, 4]}", 2, 0},
      {"{random_rotation: {factor: 0.5, fill_mode: wrap, interpolation: nearest}}, {random_crop: 7}"},
      {"{random_zoom: {height_factor: 0.4, fill_mode: reflect, interpolation: nearest}}"},
      {"{random_flip: vertical}, {random_translation: {height_factor: 0.3, width_factor: 0.3, fill_mode: nearest, "
       "interpolation: nearest}}, {random_flip: horizontal}"},
  };
  for (const Case& one : cases) {
    const TempFolder folder;
    write_pairs(folder, one.factor);
    for (const std::string cache : {"none", "memory"}) {
      INFO(one.list << " cache " << cache);
      const Read found = read(config(folder, format("augment: [{}], cache: {}", one.list, cache)), 3);
      CHECK(wrong_values(found, one.factor, one.outside) == 0);
      const std::set<std::vector<float>> different(found.targets.begin(), found.targets.end());
      CHECK(different.size() > pairs * 2);  // hardly any of the 18 targets occurs twice
    }
  }
}

TEST_CASE("random crops of targets begin at their images' pixels in evaluation, too") {
  const TempFolder folder;
  write_pairs(folder, 3);
  const std::string crop = format("augment: [{{random_crop: [5, 3]}}], validation: {{images: {}, target_images: {}}}",
                                  folder / "low", folder / "high");
  CHECK(wrong_values(read(config(folder, crop), 1, SplitKind::validation), 3) == 0);  // 7 pixels are left out
}

TEST_CASE("values outside of an image are those of its own transforms, and colours change in images only") {
  const TempFolder folder;
  const std::vector<std::string> stored = write_pairs(folder);
  const char* steps = "transform: [{rescale: 1/255}], target_transform: [{normalize: {mean: [100], std: [50]}}]";
  const Read filled = read(
      config(folder, format("{}, augment: [{{random_translation: {{height_factor: [1, 1], width_factor: 0, fill_mode: "
                            "constant, fill_value: 0.5}}}}]",
                            steps)));
  for (std::size_t i = 0; i < pairs; ++i) {
    CHECK(std::ranges::all_of(filled.images[i], [](float value) { return std::abs(value - 0.5f) < 1e-5f; }));
    CHECK(std::ranges::all_of(filled.targets[i], [](float value) { return std::abs(value - 0.5f) < 1e-5f; }));
  }
  const Read coloured = read(config(
      folder,
      format("{}, augment: [{{random_brightness: 0.5}}, {{random_contrast: 0.5}}, {{random_erasing: {{}}}}]", steps)));
  std::size_t changed = 0;
  for (std::size_t i = 0; i < pairs; ++i) {
    const std::string& image = stored[static_cast<std::size_t>(coloured.samples[i])];
    for (std::size_t p = 0; p < image.size(); ++p) {
      const int value = static_cast<unsigned char>(image[p]);
      changed += std::abs(coloured.images[i][p] - static_cast<float>(value) / 255) > 1e-3f;
      if (std::abs(coloured.targets[i][p] - static_cast<float>(155 - value) / 50) > 1e-4f) FAIL("value " << p);
    }
  }
  CHECK(changed > pairs * height * width);
}

TEST_CASE("rand_augment moves targets, and changes the values of images only") {
  const TempFolder folder;
  write_pairs(folder);
  const Read found = read(config(folder, "augment: [{rand_augment: {num_ops: 2, magnitude: 20}}]"), 30);
  const std::vector<std::string> stored = write_pairs(folder);
  std::size_t moved = 0, kept = 0;
  for (std::size_t i = 0; i < found.targets.size(); ++i) {
    const std::string& image = stored[static_cast<std::size_t>(found.samples[i])];
    std::set<float> values{0};
    bool same = true;
    for (std::size_t p = 0; p < image.size(); ++p) {
      const auto value = static_cast<float>(255 - static_cast<unsigned char>(image[p]));
      values.insert(value);
      same = same && found.targets[i][p] == value;
    }
    (same ? kept : moved) += 1;
    CHECK(std::ranges::all_of(found.targets[i], [&](float value) { return values.contains(value); }));
  }
  CHECK(moved > 0);
  CHECK(kept > 0);
}

TEST_CASE("rand_augment shifts larger targets by the whole pixels of their images") {
  const TempFolder folder;
  write_pairs(folder, 2);
  // Without shears and rotations, which have no exact counterpart, each pixel of a target is that of its image.
  const Read found = read(config(folder, "augment: [{rand_augment: {num_ops: 1, magnitude: 26}}]"), 40);
  const std::vector<std::string> stored = write_pairs(folder, 2);
  std::size_t shifted = 0, agree = 0;
  for (std::size_t i = 0; i < found.images.size(); ++i) {
    const std::string& image = stored[static_cast<std::size_t>(found.samples[i])];
    const auto value = [&](std::int64_t y, std::int64_t x) {
      return static_cast<float>(static_cast<unsigned char>(image[3 * static_cast<std::size_t>(y * 10 + x)]));
    };
    const auto is_moved = [&](const std::vector<float>& pixels, std::int64_t factor, std::int64_t dy, std::int64_t dx,
                              bool target) {
      for (std::int64_t y = 0; y < 12 * factor; ++y) {
        for (std::int64_t x = 0; x < 10 * factor; ++x) {
          const std::int64_t from_y = y / factor - dy, from_x = x / factor - dx;
          const bool inside = from_y >= 0 && from_y < 12 && from_x >= 0 && from_x < 10;
          const float moved = inside ? value(from_y, from_x) : 0;
          const float expected = inside && target ? 255 - moved : moved;
          if (pixels[3 * static_cast<std::size_t>(y * 10 * factor + x)] != expected) return false;
        }
      }
      return true;
    };
    // 150 / 331 of 26 / 30 of the sides: 4.7 of 12 rows and 3.9 of 10 columns, but 9.4 and 7.9 of the target's.
    for (const auto& [dy, dx] : {std::pair(4, 0), std::pair(-4, 0), std::pair(0, 3), std::pair(0, -3)}) {
      if (!is_moved(found.images[i], 1, dy, dx, false)) continue;
      ++shifted;
      agree += is_moved(found.targets[i], 2, dy, dx, true);
    }
  }
  CHECK(shifted > 10);
  CHECK(agree == shifted);
}

TEST_CASE("center crops must keep the same part of images and targets") {
  const TempFolder folder;
  write_pairs(folder, 2);
  const auto refused = [&](const std::string& steps, std::initializer_list<std::string> parts) {
    CAPTURE(steps);
    expect_error(config(folder, steps), ErrorKind::config, parts);
  };
  refused(
      "transform: [{center_crop: 6}]",
      {":1:", "center_crop cuts out different parts", "50 % of the height and 60 % of the width of an image of 12x10",
       "25 % of the height and 30 % of the width of its target of 24x20", "set `target_transform`"});
  refused("transform: [{resize: [12, 12]}, {center_crop: 6}], target_transform: [{resize: [12, 12]}]",
          {"50 % of the height", "100 % of the height", "the same shares in `transform` and `target_transform`"});
  refused("target_transform: [{center_crop: 18}]", {"100 % of the height", "75 % of the height"});
  refused("transform: [{center_crop: 6}], target_transform: [{center_crop: [12, 14]}]", {"60 % of the width", "70 %"});
  refused(format("validation: {{images: {0}, target_images: {0}}}, transform: [{{center_crop: 6}}], target_transform: "
                 "[{{center_crop: 12}}]",
                 folder / "high"),
          {"25 % of the height and 30 % of the width of an image of 24x20", "50 % of the height"});
  // The same share of images of another size; that of the images is rounded to whole pixels.
  CHECK(wrong_values(read(config(folder,
                                 "transform: [{center_crop: [6, 4]}], target_transform: [{center_crop: [12, "
                                 "8]}]")),
                     2) == 0);
  const Read rounded = read(config(folder,
                                   "transform: [{resize: 7}, {center_crop: 7}], target_transform: [{resize: 20}, "
                                   "{center_crop: 20}]"));
  CHECK(rounded.image == Shape{7, 7, 3});
  CHECK(rounded.target == Shape{20, 20, 3});
}

TEST_CASE("a check finds targets of other channels and proportions before they are read") {
  const TempFolder folder;
  write_pairs(folder);
  const auto gray = [&](const std::string& steps) {
    return config(folder, "target_color_mode: grayscale, transform: [" + steps + "]");
  };
  for (const std::string steps :
       {"{normalize: measured}", "{normalize: imagenet}", "{rescale: 1/255}, {normalize: {mean: [1, 2, 3], std: 1}}"}) {
    CAPTURE(steps);
    try {
      const Data data(data_options(gray(steps)), 3, {}, Data::Measure::no);
      FAIL("no error");
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::config);
      CHECK_THAT(error.what(), Catch::Contains(":1:") &&
                                   Catch::Contains("normalize has values for 3 channels, but the targets have 1 "
                                                   "channel; set `target_transform`"));
    }
  }
  expect_error(gray("{normalize: measured}"), ErrorKind::config, {"normalize has values for 3 channels"});
  CHECK(read(config(folder,
                    "target_color_mode: grayscale, transform: [{normalize: measured}], target_transform: "
                    "[{normalize: measured}]"))
            .target == Shape{height, width, 1});
  write_file(folder / "high/deep/0.png", png(20, 12, 2, random_bytes(720, 8)));
  const std::string resized = config(folder, "transform: [{resize: [12, 10]}]");
  const Data data(data_options(resized), 3, {}, Data::Measure::no);
  REQUIRE(data.info().warnings.size() == 1);
  CHECK_THAT(data.info().warnings[0], Catch::Contains("high/deep/0.png: is 20x12, but its image is 12x10, which has "
                                                      "other proportions"));
}

TEST_CASE("targets have the steps of transform or their own, and the statistics of the training split") {
  const TempFolder folder;
  write_pairs(folder, 2);
  // Without steps of their own, targets are read like the samples of a data set of these images.
  const std::string steps = "transform: [{resize: [9, 8]}, {rescale: 1/255}], shuffle: false";
  const Read same = read(config(folder, steps));
  const Read alone =
      read(format("{{dataset: image_pairs, images: {0}, target_images: {0}, {1}}}", folder / "high", steps));
  CHECK(same.target == Shape{9, 8, 3});
  CHECK(same.targets == alone.images);
  CHECK(same.images != same.targets);

  const Read own = read(config(
      folder, "transform: [{resize: [6, 5]}, {normalize: measured}], target_transform: [{normalize: measured}]"));
  CHECK(own.image == Shape{6, 5, 3});
  CHECK(own.target == Shape{2 * height, 2 * width, 3});
  double sum = 0, squares = 0, count = 0;
  for (const auto& target : own.targets) {
    for (const float value : target) sum += value, squares += double{value} * value, ++count;
  }
  CHECK(sum / count == Approx(0).margin(1e-4));
  CHECK(squares / count == Approx(1).epsilon(1e-4));

  // The statistics of the images apply to targets without steps of their own.
  const std::string measured = "transform: [{resize: [12, 10]}, {normalize: measured}]";
  const Data data(data_options(config(folder, measured)), 3);
  const Statistics& of_images = data.measured().at(0);
  CHECK(data.measured().size() == 1);
  const Read plain = read(config(folder, "transform: [{resize: [12, 10]}], shuffle: false"));
  const Read scaled = read(config(folder, measured + ", shuffle: false"));
  for (std::size_t p = 0; p < 30; ++p) {
    CHECK(scaled.targets[2][p] ==
          Approx((plain.targets[2][p] - of_images.mean[p % 3]) / of_images.stddev[p % 3]).margin(1e-4));
  }
}

TEST_CASE("gray images have targets in colours, from the same folder") {
  const TempFolder folder;
  const std::vector<std::string> stored = write_pairs(folder);
  const Read found =
      read(format("{{dataset: image_pairs, images: {0}, target_images: {0}, shape: [12, 10, 1], "
                  "target_color_mode: rgb}}",
                  folder / "low"));
  CHECK(found.image == Shape{12, 10, 1});
  CHECK(found.target == Shape{12, 10, 3});
  for (std::size_t i = 0; i < pairs; ++i) {
    const auto value = [&](std::size_t p) {
      return static_cast<float>(static_cast<unsigned char>(stored[static_cast<std::size_t>(found.samples[i])][p]));
    };
    for (std::size_t p = 0; p < height * width; ++p) {
      const float gray = 0.299f * value(3 * p) + 0.587f * value(3 * p + 1) + 0.114f * value(3 * p + 2);
      CHECK(std::abs(found.images[i][p] - gray) <= 0.51f);
      for (std::size_t c = 0; c < 3; ++c) CHECK(found.targets[i][3 * p + c] == value(3 * p + c));
    }
  }
}

TEST_CASE("a table, a folder of two folders and a list of them name the same pairs") {
  const TempFolder folder;
  write_pairs(folder, 2);
  std::string table = "number,photo,goal\n";
  for (std::size_t n = 0; n < pairs; ++n) {
    const std::string part = n < 2 ? "a" : "b";
    for (const auto& [from, to] : {std::pair("low", "images"), std::pair("high", "targets")}) {
      const std::string path = folder / format("{}/{}/{}.png", part, to, n);
      std::filesystem::create_directories(std::filesystem::path(path).parent_path());
      std::filesystem::copy_file(folder / format("{}/deep/{}.png", from, n), path);
    }
    table += format("{0},low/deep/{0}.png, \"high/deep/{0}.png\"\n", n);
  }
  table.erase(std::remove(table.begin(), table.end(), ' '), table.end());
  write_file(folder / "pairs.csv", table);
  const Read whole = read(config(folder, "shuffle: false"));
  const auto same = [&](const std::string& yaml) {
    const Read found = read(yaml);
    CHECK(found.images == whole.images);
    CHECK(found.targets == whole.targets);
  };
  same(format("{{dataset: image_pairs, path: {}, image_column: photo, target_column: goal, shuffle: false}}",
              folder / "pairs.csv"));
  same(format("{{dataset: image_pairs, path: [{}, {}], shuffle: false}}", folder / "a", folder / "b"));
  same(
      format("{{dataset: image_pairs, images: [{0}/a/images, {0}/b/images], target_images: [{0}/a/targets, "
             "{0}/b/targets], shuffle: false}}",
             folder.text()));
}

TEST_CASE("batches of pairs are the same for any number of workers, and from any position") {
  const TempFolder folder;
  write_pairs(folder, 2);
  const auto batches = [&](const std::string& workers, const DataPosition& start, int count) {
    const Data data(data_options(config(
                        folder, "augment: [{random_flip: horizontal}, {random_crop: [6, 6]}], workers: " + workers)),
                    3);
    const auto source = data.training(4, {}, start);
    std::vector<std::vector<float>> found;
    for (int i = 0; i < count; ++i) {
      const Batch& batch = source->next();
      const auto* values = static_cast<const float*>(batch.targets[0].data);
      found.emplace_back(values, values + batch.targets[0].count);
    }
    return found;
  };
  const auto one = batches("1", {3, 0, 0}, 6);
  CHECK(batches("0", {3, 0, 0}, 6) == one);
  CHECK(batches("4", {3, 0, 0}, 6) == one);
  const auto later = batches("2", {3, 1, 4}, 3);
  CHECK(std::equal(later.begin(), later.end(), one.begin() + 3));
}

TEST_CASE("each image without a target and each target without an image is an error with both names") {
  const TempFolder folder;
  write_pairs(folder);
  std::filesystem::rename(folder / "high/deep/2.png", folder / "high/deep/2_clean.png");
  expect_error(config(folder), ErrorKind::data,
               {"low/deep/2.png: has no target", "no image " + (folder / "high/deep/2") + " with any ending",
                "high/deep/2_clean.png has no image", "pairs.csv"});
  std::filesystem::copy_file(folder / "high/deep/2_clean.png", folder / "high/deep/2.png");
  expect_error(config(folder), ErrorKind::data, {"high/deep/2_clean.png: has no image", folder / "low/deep/2_clean"});
  std::filesystem::remove(folder / "high/deep/2_clean.png");
  std::filesystem::rename(folder / "high/deep/3.png", folder / "high/deep/3.PNG");
  std::filesystem::copy_file(folder / "high/deep/3.PNG", folder / "high/deep/3.JPG");
  expect_error(config(folder), ErrorKind::data, {"has 2 targets of the image deep/3.png", "deep/3.JPG and deep/3.PNG"});
  std::filesystem::copy_file(folder / "high/deep/3.PNG", folder / "high/deep/3.png");
  CHECK(read(config(folder)).images.size() == pairs);  // the target of the same name and ending
  std::filesystem::copy_file(folder / "low/deep/4.png", folder / "low/deep/4.jpg");
  expect_error(config(folder), ErrorKind::data,
               {"has 2 images of the target deep/4.png: deep/4.jpg and deep/4.png", "leave one of them"});
  std::filesystem::remove(folder / "low/deep/4.jpg");

  const auto table = [&](const std::string& line) {
    write_file(folder / "t.csv", "image,target\nlow/deep/0.png,high/deep/0.png\n" + line + "\n");
    return format("{{dataset: image_pairs, path: {}}}", folder / "t.csv");
  };
  expect_error(table("low/deep/1.png,high/deep/9.png"), ErrorKind::data,
               {"t.csv, line 3: there is no file", "high/deep/9.png, the target of", "low/deep/1.png"});
  expect_error(table("low/deep/1.png,"), ErrorKind::data, {"t.csv, line 3: the column 'target' is empty"});
  expect_error(table("low/deep/9.png,high/deep/1.png"), ErrorKind::data, {"t.csv", "line 3", "low/deep/9.png"});
  const auto whole_table = [&](const std::string& text) {
    write_file(folder / "t.csv", text);
    return format("{{dataset: image_pairs, path: {}}}", folder / "t.csv");
  };
  expect_error(whole_table("low/deep/0.png,high/deep/0.png\nlow/deep/1.png,high/deep/1.png\n"), ErrorKind::data,
               {"t.csv: line 1 names the file", "low/deep/0.png instead of columns", "into the first line"});
  expect_error(whole_table("image;target\nlow/deep/0.png;high/deep/0.png\n"), ErrorKind::data,
               {"has no column 'image': semicolons separate the fields", "separate the fields by commas"});
  expect_error(format("{{dataset: image_pairs, images: {}}}", folder / "low"), ErrorKind::config,
               {"image_pairs needs either `images` and `target_images`, or `path`"});
  expect_error(format("{{dataset: image_pairs, path: {}}}", folder.text()), ErrorKind::data,
               {"has no folder 'images'", "`target_images`"});
}

TEST_CASE("targets that cannot be read or cropped like their images are errors") {
  const TempFolder folder;
  write_pairs(folder, 2);
  expect_error(config(folder, "classes: 3"), ErrorKind::config, {"`classes` is set", "segmentation_folder"});
  expect_error(config(folder, "validation: {split: 0.5, stratify: true}"), ErrorKind::config,
               {"`stratify: true` splits off the same share of every class, but the samples have no classes"});
  expect_error(config(folder, "label_mode: categorical"), ErrorKind::config,
               {"`label_mode: categorical` needs classes, but the targets are values"});
  expect_error(
      config(folder, "augment: [{random_crop: 5}], target_transform: [{resize: [30, 20]}]"), ErrorKind::config,
      {"random_crop cannot cut out the same part of images of 12x10 and of targets of 30x20", "whole multiples"});
  expect_error(format("{{dataset: image_folder, path: {}, target_transform: []}}", folder / "low"), ErrorKind::config,
               {"`target_transform` is for targets that are images (image_pairs), and image_folder has none"});
  const std::string whole = read_whole(folder / "high/deep/2.png");
  write_file(folder / "high/deep/2.png", whole.substr(0, whole.size() / 2));
  expect_error(config(folder), ErrorKind::data, {"high/deep/2.png", "cannot be decoded as PNG", "on_error: skip"});
  const Read skipped = read(config(folder, "on_error: skip"));
  for (std::size_t i = 0; i < pairs; ++i)
    CHECK(skipped.weights[i] == (skipped.samples[i] == skipped_sample(2) ? 0 : 1));
  write_file(folder / "high/deep/2.png", png(3, 4, 2, random_bytes(36, 5)));
  expect_error(config(folder), ErrorKind::data,
               {"high/deep/2.png", "3x4x3", "24x20x3 is expected",
                "in `target_transform` or, if that is not set, in `transform`"});
}

}  // namespace trainctl::test::image_pairs_test
