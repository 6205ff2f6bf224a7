// Augments images for tests, and computes the expected values by plain formulas in double precision.
#pragma once

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "io/loader/images/transform.h"
#include "io/loader/images/transform_options.h"
#include "test/catch.h"
#include "test/support/files.h"

namespace trainctl::test {

struct Image {
  std::int64_t height = 0, width = 0, channels = 0;
  std::vector<double> values;

  std::size_t index(std::int64_t y, std::int64_t x, std::int64_t c) const {
    return static_cast<std::size_t>((y * width + x) * channels + c);
  }
  double& at(std::int64_t y, std::int64_t x, std::int64_t c) { return values[index(y, x, c)]; }
  double at(std::int64_t y, std::int64_t x, std::int64_t c) const { return values[index(y, x, c)]; }
  bool operator==(const Image&) const = default;
};

inline Image make(std::int64_t height, std::int64_t width, std::int64_t channels) {
  return {height, width, channels, std::vector<double>(static_cast<std::size_t>(height * width * channels))};
}

// An image of random whole numbers from 0 to 255.
inline Image random_image(std::int64_t height, std::int64_t width, std::int64_t channels, unsigned seed) {
  std::mt19937 random(seed);
  Image image = make(height, width, channels);
  for (double& value : image.values) value = random() % 256;
  return image;
}

class NoStatistics final : public StatisticsSource {
  Statistics measure(const TransformPlan&) override { return {}; }
};

// The plan of the items of `transform` and `augment`, given in YAML.
inline TransformPlan plan_of(const std::string& augment, const std::string& transform = "") {
  const DataOptions options =
      data_options(format("{{dataset: idx, path: nowhere, transform: [{}], augment: [{}]}}", transform, augment));
  TransformPlan plan;
  NoStatistics none;
  for (const Choice& choice : options.transform.of("")) choice.as<TransformOptions>().add({}, plan, none);
  for (const Choice& choice : options.augment.of("")) choice.as<TransformOptions>().add({}, plan, none);
  return plan;
}

inline RandomKey key_of(std::uint32_t epoch) { return {9, Purpose::augment, epoch}; }

// Stores the image as `dtype`, applies the plan and returns the values as the network sees them. Bytes stay bytes if
// possible.
inline Image augmented(const Image& image, const TransformPlan& plan, DType dtype, std::uint64_t sample,
                       bool training = true) {
  const bool stays = stays_as_stored(dtype, plan.fixed, plan.augment);
  const Shape shape{image.height, image.width, image.channels};
  const Transform transform(shape, dtype, plan.fixed, plan.augment,
                            stays ? std::nullopt : std::optional<Affine>(plan.affine));
  const std::vector<std::uint8_t> bytes(image.values.begin(), image.values.end());
  const std::vector<float> floats(image.values.begin(), image.values.end());
  const void* data = dtype == DType::uint8 ? static_cast<const void*>(bytes.data()) : floats.data();
  const Shape& output = transform.output_shape();
  std::vector<float> result(static_cast<std::size_t>(output.count()));
  transform.finish(as_image(data, dtype, shape), training, key_of(3), sample,
                   reinterpret_cast<std::byte*>(result.data()));
  Image back = make(output[0], output[1], output[2]);
  for (std::size_t i = 0; i < back.values.size(); ++i) {
    const std::size_t c = plan.affine.uniform() ? 0 : i % plan.affine.scale.size();
    back.values[i] =
        stays ? reinterpret_cast<const std::uint8_t*>(result.data())[i] * plan.affine.scale[c] + plan.affine.offset[c]
              : double{result[i]};
  }
  return back;
}

// The number between low and high that word `which` of the augmentation's first random block represents.
inline double drawn(std::uint64_t sample, std::uint32_t position, std::size_t which, double low, double high) {
  return low + (high - low) * key_of(3).block(sample, position)[which] / 4294967296.0;
}

// The pixel at (y, x), which outside of the image is taken from its continuation by `mode`.
inline double continued(const Image& image, std::int64_t y, std::int64_t x, std::int64_t c, const std::string& mode,
                        double fill) {
  for (bool moved = true; moved;) {
    moved = false;
    for (auto [i, n] : {std::pair{&y, image.height}, std::pair{&x, image.width}}) {
      if (*i >= 0 && *i < n) continue;
      if (mode == "constant") return fill;
      moved = true;
      if (mode == "nearest") *i = *i < 0 ? 0 : n - 1;
      if (mode == "wrap") *i += *i < 0 ? n : -n;
      if (mode == "reflect") *i = *i < 0 ? -1 - *i : 2 * n - 1 - *i;
    }
  }
  return image.at(y, x, c);
}

// The value at (y, x), of the nearest pixel or by bilinear interpolation.
inline double value_at(const Image& image, double y, double x, std::int64_t c, const std::string& mode, double fill,
                       bool nearest) {
  if (nearest) y = std::floor(y + 0.5), x = std::floor(x + 0.5);
  double sum = 0;
  for (const int dy : {0, 1}) {
    for (const int dx : {0, 1}) {
      const double top = std::floor(y) + dy, left = std::floor(x) + dx;
      const double weight = (1 - std::abs(y - top)) * (1 - std::abs(x - left));
      if (weight > 0) sum += weight * continued(image, std::int64_t(top), std::int64_t(left), c, mode, fill);
    }
  }
  return sum;
}

// The image whose pixel (y, x) is read at source(y, x) = {source y, source x}.
template <class Source>
inline Image mapped(const Image& image, Source source, const std::string& mode, double fill, bool nearest) {
  Image result = make(image.height, image.width, image.channels);
  for (std::int64_t y = 0; y < image.height; ++y) {
    for (std::int64_t x = 0; x < image.width; ++x) {
      const auto [v, u] = source(static_cast<double>(y), static_cast<double>(x));
      for (std::int64_t c = 0; c < image.channels; ++c)
        result.at(y, x, c) = value_at(image, v, u, c, mode, fill, nearest);
    }
  }
  return result;
}

inline void check_near(const Image& got, const Image& expected, double margin) {
  REQUIRE(got.values.size() == expected.values.size());
  double worst = 0;
  for (std::size_t i = 0; i < got.values.size(); ++i)
    worst = std::max(worst, std::abs(got.values[i] - expected.values[i]));
  CHECK(worst <= margin);
}

}  // namespace trainctl::test
