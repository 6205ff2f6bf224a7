// Tests augmentations that compute new pixels: their values, their random numbers, and whole batches.
#include <map>

#include "io/loader/data.h"
#include "test/io/loader/augmented.h"

namespace trainctl::test::augmentation_test {

TEST_CASE("brightness adds a fraction of the range and clips to it") {
  const Image image = random_image(7, 9, 3, 5);
  const auto expect = [&](double factor, double scale, double offset, double low, double high) {
    Image result = image;
    for (double& value : result.values)
      value = std::min(std::max(value * scale + offset + factor * (high - low), low), high);
    return result;
  };
  for (std::uint64_t sample = 0; sample < 20; ++sample) {
    const double factor = drawn(sample, 0, 0, -0.4, 0.4);
    const TransformPlan plan = plan_of("{random_brightness: 0.4}");
    check_near(augmented(image, plan, DType::float32, sample), expect(factor, 1, 0, 0, 255), 1e-3);
    check_near(augmented(image, plan, DType::uint8, sample), expect(factor, 1, 0, 0, 255), 0.5 + 1e-3);
    // The range applies after the transforms, also if these have a negative scale.
    for (const auto& [scale, offset] : {std::pair{2.0, -255.0}, std::pair{-0.5, 40.0}}) {
      const TransformPlan scaled = plan_of("{random_brightness: {factor: 0.4, value_range: [-60, 20]}}",
                                           format("{{rescale: {{scale: {}, offset: {}}}}}", scale, offset));
      check_near(augmented(image, scaled, DType::float32, sample), expect(factor, scale, offset, -60, 20), 1e-3);
      check_near(augmented(image, scaled, DType::uint8, sample), expect(factor, scale, offset, -60, 20),
                 std::abs(scale) / 2 + 1e-3);
    }
  }
}

TEST_CASE("contrast moves values away from or towards the mean of their channel") {
  const Image image = random_image(8, 6, 3, 6);
  const TransformPlan plan = plan_of("{random_contrast: [0.9, 0.6]}"),
                      same = plan_of("{random_contrast: [0.9, 0.6]}", "{normalize: imagenet}"),
                      one = plan_of("{random_contrast: 0.5}");
  const auto expect = [&](double factor) {
    Image expected = image;
    for (std::size_t c = 0; c < 3; ++c) {
      double mean = 0;
      for (std::size_t i = c; i < image.values.size(); i += 3) mean += image.values[i] / 48;
      for (std::size_t i = c; i < image.values.size(); i += 3)
        expected.values[i] = std::min(std::max((image.values[i] - mean) * factor + mean, 0.0), 255.0);
    }
    return expected;
  };
  for (std::uint64_t sample = 0; sample < 20; ++sample) {
    const Image expected = expect(drawn(sample, 0, 0, 0.1, 1.6));
    check_near(augmented(image, plan, DType::float32, sample), expected, 1e-3);
    check_near(augmented(image, plan, DType::uint8, sample), expected, 0.5 + 1e-3);
    check_near(augmented(image, one, DType::float32, sample), expect(drawn(sample, 0, 0, 0.5, 1.5)), 1e-3);
    // Bytes that are normalized later.
    Image normalized = expected;
    for (std::size_t i = 0; i < normalized.values.size(); ++i)
      normalized.values[i] = expected.values[i] * same.affine.scale[i % 3] + same.affine.offset[i % 3];
    check_near(augmented(image, same, DType::uint8, sample), normalized, 0.5 / 57 + 1e-3);
  }
}

TEST_CASE("erasing fills a rectangle of the drawn size and changes no other pixels") {
  const Image image = random_image(20, 30, 3, 7);
  const TransformPlan plan = plan_of("{random_erasing: {factor: [0.6, 0.6], scale: [0.05, 0.4], fill_value: 300}}");
  int erased = 0;
  double area = 0;
  const int samples = 2000;
  for (std::uint64_t sample = 0; sample < samples; ++sample) {
    Image result = augmented(image, plan, DType::float32, sample);
    std::int64_t top = 20, bottom = 0, left = 30, right = 0, count = 0;
    for (std::int64_t y = 0; y < 20; ++y) {
      for (std::int64_t x = 0; x < 30; ++x) {
        const bool filled = result.at(y, x, 0) == 300;
        for (std::int64_t c = 0; c < 3; ++c) REQUIRE(result.at(y, x, c) == (filled ? 300 : image.at(y, x, c)));
        if (!filled) continue;
        ++count;
        top = std::min(top, y), bottom = std::max(bottom, y + 1), left = std::min(left, x),
        right = std::max(right, x + 1);
      }
    }
    if (count == 0) continue;
    ++erased;
    REQUIRE(count == (bottom - top) * (right - left));
    const double height = double(bottom - top) / 20, width = double(right - left) / 30;
    CHECK(height >= std::sqrt(0.05) - 0.05);
    CHECK(height <= std::sqrt(0.4) + 0.05);
    CHECK(width >= std::sqrt(0.05) - 0.04);
    CHECK(width <= std::sqrt(0.4) + 0.04);
    area += height * width;
  }
  CHECK(std::abs(erased - 0.6 * samples) < 5 * std::sqrt(samples * 0.24));
  // The squared mean of the root of a uniform number between 0.05 and 0.4, since the sides are independent.
  const double side = 2.0 / 3 * (std::pow(0.4, 1.5) - std::pow(0.05, 1.5)) / 0.35;
  CHECK(area / erased == Approx(side * side).epsilon(0.03));
}

TEST_CASE("erasing with noise fills the range evenly, and bytes stay bytes") {
  Image image = make(40, 40, 1);
  for (double& value : image.values) value = 255;
  const TransformPlan plan = plan_of("{random_erasing: {factor: [1, 1], scale: [1, 1], value_range: [10, 110]}}");
  CHECK(stays_as_stored(DType::uint8, {}, plan.augment));
  double sum = 0, squares = 0, count = 0;
  for (std::uint64_t sample = 0; sample < 20; ++sample) {
    const Image result = augmented(image, plan, DType::float32, sample);
    check_near(augmented(image, plan, DType::uint8, sample), result, 0.5 + 1e-3);
    for (const double value : result.values) {
      REQUIRE(value >= 10);
      REQUIRE(value <= 110);
      sum += value, squares += value * value, ++count;
    }
  }
  const double mean = sum / count;
  CHECK(mean == Approx(60).margin(1));
  CHECK(squares / count - mean * mean == Approx(100 * 100 / 12.0).epsilon(0.03));
}

TEST_CASE("factors are uniform over their range, and independent between samples and positions") {
  const Image image = [] {
    Image grey = make(1, 1, 1);
    grey.values[0] = 128;
    return grey;
  }();
  const TransformPlan one = plan_of("{random_brightness: [-0.3, 0.4]}"),
                      second = plan_of("random_flip, {random_brightness: [-0.3, 0.4]}");
  std::vector<int> bins(20);
  const int samples = 20000;
  double product = 0;
  for (std::uint64_t sample = 0; sample < samples; ++sample) {
    const auto factor = [&](const TransformPlan& plan) {
      return (augmented(image, plan, DType::float32, sample).values[0] - 128) / 255;
    };
    const double a = factor(one), b = factor(second);
    REQUIRE(a >= -0.3001);
    REQUIRE(a <= 0.4001);
    ++bins[static_cast<std::size_t>(std::clamp((a + 0.3) / 0.7 * 20, 0.0, 19.9))];
    product += (a - 0.05) * (b - 0.05);
  }
  double chi = 0;
  for (const int count : bins) chi += (count - 1000.0) * (count - 1000.0) / 1000;
  CHECK(chi < 19 + 5 * std::sqrt(2.0 * 19));
  CHECK(std::abs(product / samples) < 5 * (0.49 / 12) / std::sqrt(double{samples}));
}

TEST_CASE("crops and flips keep their random numbers, also among other augmentations") {
  Image image = random_image(10, 11, 2, 8);
  const TransformPlan plan = plan_of(
      "{random_crop: {size: [8, 7], padding: 1}}, {random_brightness: [0, 0]}, {random_flip: horizontal_and_vertical}, "
      "{random_zoom: [0, 0]}, {random_crop: 6}");
  for (std::uint64_t sample = 0; sample < 50; ++sample) {
    const auto pick = [&](std::uint32_t position, std::size_t which, std::uint64_t choices) {
      return static_cast<std::int64_t>(key_of(3).block(sample, position)[which] * choices >> 32);
    };
    const std::int64_t y = pick(0, 0, 5) - 1, x = pick(0, 1, 7) - 1, v = pick(5, 0, 3), u = pick(5, 1, 2);
    const bool mirror = pick(2, 0, 2) == 1, turn = pick(3, 0, 2) == 1;
    Image expected = make(6, 6, 2);
    for (std::int64_t i = 0; i < 6; ++i) {
      for (std::int64_t j = 0; j < 6; ++j) {
        const std::int64_t row = y + (turn ? 7 - (v + i) : v + i), column = x + (mirror ? 6 - (u + j) : u + j);
        if (row < 0 || row >= 10 || column < 0 || column >= 11) continue;
        for (std::int64_t c = 0; c < 2; ++c) expected.at(i, j, c) = image.at(row, column, c);
      }
    }
    CHECK(augmented(image, plan, DType::float32, sample) == expected);
    CHECK(augmented(image, plan, DType::uint8, sample) == expected);
  }
}

TEST_CASE("the padding of a crop is zero after the transforms, also for later augmentations") {
  const Image image = random_image(4, 4, 3, 9);
  const TransformPlan plan = plan_of(
      "{random_crop: {size: 12, padding: 4}}, {random_translation: {height_factor: [0.25, 0.25], width_factor: [0, 0], "
      "fill_mode: nearest}}",
      "{normalize: imagenet}");
  for (const DType dtype : {DType::uint8, DType::float32}) {
    Image result = augmented(image, plan, dtype, 1);
    for (std::int64_t y = 0; y < 12; ++y) {
      for (std::int64_t x = 0; x < 12; ++x) {
        for (std::int64_t c = 0; c < 3; ++c) {
          const auto channel = static_cast<std::size_t>(c);
          const bool inside = y >= 7 && y < 11 && x >= 4 && x < 8;
          const double expected =
              inside ? image.at(y - 7, x - 4, c) * plan.affine.scale[channel] + plan.affine.offset[channel] : 0;
          CHECK(result.at(y, x, c) == Approx(expected).margin(1e-5));
        }
      }
    }
  }
}

TEST_CASE("samples stay bytes unless an augmentation fills in values that bytes cannot represent") {
  const auto stay = [](const char* augment, const char* transform = "") {
    const TransformPlan plan = plan_of(augment, transform);
    return stays_as_stored(DType::uint8, plan.fixed, plan.augment);
  };
  CHECK(stay("{random_rotation: 0.1}, {random_zoom: 0.1}, {random_brightness: 0.1}, {random_contrast: 0.1}",
             "{normalize: imagenet}"));
  CHECK(stay("{random_rotation: {factor: 0.1, fill_mode: constant}}", "{rescale: 1/255}"));
  CHECK(stay("{random_rotation: {factor: 0.1, fill_mode: constant, fill_value: 1}}", "{rescale: 1/255}"));
  CHECK_FALSE(stay("{random_rotation: {factor: 0.1, fill_mode: constant, fill_value: 0.5}}", "{rescale: 1/255}"));
  CHECK_FALSE(stay("{random_rotation: {factor: 0.1, fill_mode: constant}}", "{normalize: imagenet}"));
  CHECK(stay("random_erasing", "{normalize: imagenet}"));
  CHECK_FALSE(stay("{random_erasing: {fill_value: 0}}", "{normalize: imagenet}"));
}

TEST_CASE("an image and its mask move alike, whatever else changes the image") {
  const Image image = random_image(10, 10, 1, 10);
  const auto mask_of = [](Image from, double threshold) {
    for (double& value : from.values) value = value > threshold ? 1 : 0;
    return from;
  };
  const std::string moves =
      "{random_rotation: {factor: 1, interpolation: nearest}}, {random_translation: {height_factor: 0.5, width_factor: "
      "0.5, interpolation: nearest}}";
  const TransformPlan mask = plan_of(moves), lighter = plan_of(moves + ", {random_brightness: [0.2, 0.2]}");
  for (std::uint64_t sample = 0; sample < 10; ++sample) {
    const Image moved = augmented(mask_of(image, 100), mask, DType::uint8, sample);
    CHECK(moved != mask_of(image, 100));
    CHECK(mask_of(augmented(image, lighter, DType::float32, sample), 151) == moved);
  }
}

TEST_CASE("augmented batches are the same for any number of workers and ranks, and differ between epochs") {
  const std::string augment =
      "augment: [random_flip, {random_rotation: 0.2}, {random_zoom: 0.3}, {random_translation: {height_factor: 0.2, "
      "width_factor: 0.1}}, {random_brightness: 0.2}, {random_contrast: 0.4}, random_erasing, rand_augment, "
      "{random_crop: [12, 10]}]";
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<std::uint8_t>> expected;  // by epoch and sample
  for (const int workers : {0, 1, 4}) {
    for (const int ranks : {1, 3}) {
      const Data data(
          data_options(format("{{dataset: synthetic, shape: [12, 10, 3], classes: 4, samples: 23, workers: {}, cache: "
                              "{}, {}}}",
                              workers, workers == 1 ? "memory" : "none", augment)),
          6);
      for (int rank = 0; rank < ranks; ++rank) {
        const auto source = data.training(7, {replica(rank, ranks), {}}, {6, 0, 0});
        for (int k = 0; k < 8; ++k) {
          const Batch& batch = source->next();
          REQUIRE(batch.inputs[0].dtype == DType::uint8);
          for (std::int64_t i = 0; i < batch.count; ++i) {
            const auto* pixels = batch.inputs[0].as<std::uint8_t>() + i * 12 * 10 * 3;
            const std::vector<std::uint8_t> values(pixels, pixels + 12 * 10 * 3);
            const auto [at, added] =
                expected.try_emplace({batch.position.epoch, batch.samples.as<std::int64_t>()[i]}, values);
            if (!added) REQUIRE(at->second == values);
          }
        }
      }
    }
  }
  REQUIRE(expected.size() == 46);
  int same = 0;
  for (std::int64_t i = 0; i < 23; ++i) same += expected.at({0, i}) == expected.at({1, i});
  CHECK(same == 0);
}

TEST_CASE("each invalid option of an augmentation leads to one error with its location") {
  for (const char* item : {
           "random_rotation",
           "{random_rotation: 1.5}",
           "{random_rotation: [0.2, 0.1]}",
           "{random_rotation: []}",
           "{random_rotation: {factor: 0.1, fill_mode: mirror}}",
           "{random_rotation: {factor: 0.1, interpolation: cubic}}",
           "{random_rotation: {factor: 0.1, fill_value: black}}",
           "{random_zoom: {height_factor: 0.1, width_factor: [0.1, 0.2, 0.3]}}",
           "{random_zoom: {width_factor: 0.1}}",
           "{random_translation: {height_factor: 0.1}}",
           "{random_translation: {height_factor: 0.1, width_factor: -2}}",
           "{random_brightness: {factor: 0.1, value_range: [1, 0]}}",
           "{random_brightness: {factor: 0.1, value_range: 3}}",
           "{random_contrast: -0.5}",
           "{random_contrast: [0.1, 0.2, 0.3]}",
           "{random_erasing: {factor: 2}}",
           "{random_erasing: {scale: [0.3, 0.1]}}",
           "{random_erasing: {ratio: 2}}",
           "{rand_augment: {magnitude: 31}}",
           "{rand_augment: {num_ops: 0}}",
           "{rand_augment: {value_range: [0, 0]}}",
       }) {
    INFO(item);
    try {
      data_options(format("{{dataset: idx, path: a,\n augment: [{}]}}", item));
      FAIL("no error");
    } catch (const ConfigError& error) {
      REQUIRE(error.diagnostics().size() == 1);
      CHECK(error.diagnostics()[0].location.line == 2);
    }
  }
  for (const char* item : {"{random_rotation: 0.1}", "{random_brightness: 0.1}", "random_erasing"}) {
    try {
      const Data data(data_options(format("{{dataset: synthetic, shape: [5], classes: 2,\n augment: [{}]}}", item)), 1);
      FAIL("no error");
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::config);
      CHECK(error.location().line == 2);
      CHECK(std::string(error.what()).find("only images") != std::string::npos);
    }
  }
}

}  // namespace trainctl::test::augmentation_test
