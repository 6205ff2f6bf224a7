// Compares rotations, zooms and translations with plain formulas.
#include <numbers>

#include "test/io/loader/augmented.h"

namespace trainctl::test::geometric_test {
namespace {

// Checks an augmentation of floats and of bytes. where(sample, height, width) returns the function that maps a pixel of
// the result to its source position.
template <class Where>
void check_resampling(const std::string& name, const std::string& factors, Where where) {
  unsigned seed = 0;
  for (const std::string mode : {"constant", "nearest", "reflect", "wrap"}) {
    for (const std::string interpolation : {"bilinear", "nearest"}) {
      for (const std::int64_t channels : {1, 3, 4}) {
        ++seed;
        const Image image = random_image(9 + seed % 5, 12 - seed % 3, channels, seed);
        const TransformPlan plan = plan_of(format("{{{}: {{{}, fill_mode: {}, interpolation: {}, fill_value: 7}}}}",
                                                  name, factors, mode, interpolation));
        for (std::uint64_t sample = 0; sample < 12; ++sample) {
          const Image expected =
              mapped(image, where(sample, image.height, image.width), mode, 7, interpolation == "nearest");
          INFO(name << " " << mode << " " << interpolation << " of " << channels << " channels, sample " << sample);
          check_near(augmented(image, plan, DType::float32, sample), expected, 1e-3);
          check_near(augmented(image, plan, DType::uint8, sample), expected, 0.5 + 1e-3);
        }
      }
    }
  }
}

}  // namespace

TEST_CASE("rotations equal the plain formula") {
  check_resampling("random_rotation", "factor: [-0.2, 0.6]", [](std::uint64_t sample, std::int64_t h, std::int64_t w) {
    const double angle = 2 * std::numbers::pi * drawn(sample, 0, 0, -0.2, 0.6);
    return [=](double y, double x) {
      const double cy = double(h - 1) / 2, cx = double(w - 1) / 2;
      return std::pair{cy + std::sin(angle) * (x - cx) + std::cos(angle) * (y - cy),
                       cx + std::cos(angle) * (x - cx) - std::sin(angle) * (y - cy)};
    };
  });
}

TEST_CASE("zooms equal the plain formula") {
  const auto where = [](bool both) {
    return [both](std::uint64_t sample, std::int64_t h, std::int64_t w) {
      const double zy = 1 + drawn(sample, 0, 0, -0.7, 0.7);
      const double zx = both ? 1 + drawn(sample, 0, 1, 0.5, 1) : zy;
      return [=](double y, double x) {
        const double cy = double(h - 1) / 2, cx = double(w - 1) / 2;
        return std::pair{cy + zy * (y - cy), cx + zx * (x - cx)};
      };
    };
  };
  check_resampling("random_zoom", "height_factor: 0.7", where(false));
  check_resampling("random_zoom", "height_factor: 0.7, width_factor: [0.5, 1]", where(true));
}

TEST_CASE("translations equal the plain formula") {
  check_resampling("random_translation", "height_factor: 0.8, width_factor: [-1, 0.1]",
                   [](std::uint64_t sample, std::int64_t h, std::int64_t w) {
                     const double down = drawn(sample, 0, 0, -0.8, 0.8) * double(h);
                     const double right = drawn(sample, 0, 1, -1, 0.1) * double(w);
                     return [=](double y, double x) { return std::pair{y - down, x - right}; };
                   });
}

TEST_CASE("quarter turns and shifts by whole pixels copy pixels exactly") {
  Image image = random_image(8, 8, 3, 1);
  for (double& value : image.values) value += 0.3f;  // values that are not whole numbers
  for (double& value : image.values) value = static_cast<float>(value);
  const TransformPlan turn = plan_of("{random_rotation: {factor: [0.25, 0.25], fill_mode: constant}}");
  Image expected = make(8, 8, 3);
  for (std::int64_t y = 0; y < 8; ++y) {
    for (std::int64_t x = 0; x < 8; ++x) {
      for (std::int64_t c = 0; c < 3; ++c) expected.at(y, x, c) = image.at(x, 7 - y, c);  // counterclockwise
    }
  }
  CHECK(augmented(image, turn, DType::float32, 1) == expected);
  // Down by two rows, to the left by four columns.
  const TransformPlan shift =
      plan_of("{random_translation: {height_factor: [0.25, 0.25], width_factor: [-0.5, -0.5], fill_mode: wrap}}");
  for (std::int64_t y = 0; y < 8; ++y) {
    for (std::int64_t x = 0; x < 8; ++x) {
      for (std::int64_t c = 0; c < 3; ++c) expected.at(y, x, c) = image.at((y + 6) % 8, (x + 4) % 8, c);
    }
  }
  CHECK(augmented(image, shift, DType::float32, 1) == expected);
  CHECK(augmented(image, plan_of("{random_zoom: {height_factor: [0, 0]}}"), DType::float32, 1) == image);
  // Evaluation does not augment.
  CHECK(augmented(image, shift, DType::float32, 1, false) == image);
}

TEST_CASE("images of one row, one column or one pixel are rotated by the plain formula") {
  for (const auto& [height, width] : {std::pair<std::int64_t, std::int64_t>{1, 7}, {6, 1}, {1, 1}}) {
    const Image image = random_image(height, width, 2, 3);
    for (const char* mode : {"constant", "nearest", "reflect", "wrap"}) {
      const TransformPlan plan = plan_of(format("{{random_rotation: {{factor: 1, fill_mode: {}}}}}", mode));
      for (std::uint64_t sample = 0; sample < 20; ++sample) {
        const double angle = 2 * std::numbers::pi * drawn(sample, 0, 0, -1, 1);
        const double cy = double(height - 1) / 2, cx = double(width - 1) / 2;
        const auto source = [&](double y, double x) {
          return std::pair{cy + std::sin(angle) * (x - cx) + std::cos(angle) * (y - cy),
                           cx + std::cos(angle) * (x - cx) - std::sin(angle) * (y - cy)};
        };
        check_near(augmented(image, plan, DType::float32, sample), mapped(image, source, mode, 0, false), 1e-3);
      }
    }
  }
}

}  // namespace trainctl::test::geometric_test
