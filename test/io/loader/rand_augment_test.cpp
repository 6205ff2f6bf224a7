// Tests RandAugment: each operation against a plain formula, and the choice of the operations.
#include <map>
#include <numbers>

#include "test/io/loader/augmented.h"

namespace trainctl::test::rand_augment_test {
namespace {

double grey(const Image& image, std::int64_t y, std::int64_t x) {
  if (image.channels != 3) return image.at(y, x, 0);
  return 0.2989 * image.at(y, x, 0) + 0.587 * image.at(y, x, 1) + 0.114 * image.at(y, x, 2);
}

// Each value v of the image becomes function(y, x, c, v), clipped to 0 to 255.
template <class Function>
Image each(const Image& image, Function function) {
  Image result = image;
  for (std::int64_t y = 0; y < image.height; ++y) {
    for (std::int64_t x = 0; x < image.width; ++x) {
      for (std::int64_t c = 0; c < image.channels; ++c)
        result.at(y, x, c) = std::clamp<double>(function(y, x, c, image.at(y, x, c)), 0, 255);
    }
  }
  return result;
}

std::vector<double> sorted_channel(const Image& image, std::int64_t c) {
  std::vector<double> values;
  for (std::size_t i = static_cast<std::size_t>(c); i < image.values.size();
       i += static_cast<std::size_t>(image.channels)) {
    values.push_back(image.values[i]);
  }
  std::sort(values.begin(), values.end());
  return values;
}

// Equalization as in Pillow: a value becomes the number of smaller values divided by a step, which is the number of
// values below the largest one divided by 255.
double equalized(const Image& image, std::int64_t c, double value) {
  const std::vector<double> values = sorted_channel(image, c);
  const auto below = [&](double limit) {
    return std::lower_bound(values.begin(), values.end(), limit) - values.begin();
  };
  const std::int64_t step = below(values.back()) / 255;
  return step == 0 ? value : static_cast<double>((step / 2 + below(value)) / step);
}

// Operation `number` of torchvision's list, at magnitude m of 30.
Image expected_of(const Image& image, std::int64_t number, double m, double sign) {
  const double h = static_cast<double>(image.height), w = static_cast<double>(image.width);
  const double shear = sign * 0.3 * m / 30, factor = 1 + sign * 0.9 * m / 30, angle = sign * m * std::numbers::pi / 180;
  const auto moved = [&](auto source) { return mapped(image, source, "constant", 0, true); };
  const auto blend = [&](auto without) {
    return each(image, [&](std::int64_t y, std::int64_t x, std::int64_t c, double v) {
      const double other = without(y, x, c);
      return other + factor * (v - other);
    });
  };
  const auto function = [&](auto f) {
    return each(image, [&](std::int64_t, std::int64_t, std::int64_t c, double v) { return f(c, v); });
  };
  switch (number) {
    case 1:
      return moved([&](double y, double x) { return std::pair{y, x + shear * (y + 0.5)}; });
    case 2:
      return moved([&](double y, double x) { return std::pair{y + shear * (x + 0.5), x}; });
    case 3:
      return moved([&](double y, double x) { return std::pair{y, x - sign * std::floor(150 * m / 30 / 331 * w)}; });
    case 4:
      return moved([&](double y, double x) { return std::pair{y - sign * std::floor(150 * m / 30 / 331 * h), x}; });
    case 5:
      return moved([&](double y, double x) {
        const double v = y - (h - 1) / 2, u = x - (w - 1) / 2;
        return std::pair{(h - 1) / 2 + std::sin(angle) * u + std::cos(angle) * v,
                         (w - 1) / 2 + std::cos(angle) * u - std::sin(angle) * v};
      });
    case 6:
      return blend([](std::int64_t, std::int64_t, std::int64_t) { return 0.0; });
    case 7:
      return image.channels != 3
                 ? image
                 : blend([&](std::int64_t y, std::int64_t x, std::int64_t) { return grey(image, y, x); });
    case 8: {
      double mean = 0;
      for (std::int64_t y = 0; y < image.height; ++y) {
        for (std::int64_t x = 0; x < image.width; ++x) mean += grey(image, y, x) / (h * w);
      }
      return blend([&](std::int64_t, std::int64_t, std::int64_t) { return mean; });
    }
    case 9:
      return blend([&](std::int64_t y, std::int64_t x, std::int64_t c) {
        if (y == 0 || x == 0 || y == image.height - 1 || x == image.width - 1) return image.at(y, x, c);
        double sum = 0;
        for (int v = -1; v <= 1; ++v) {
          for (int u = -1; u <= 1; ++u) sum += image.at(y + v, x + u, c) * (u == 0 && v == 0 ? 5 : 1);
        }
        return sum / 13;
      });
    case 10: {
      const double shade = std::pow(2, std::round(m / 7.5));
      return function([&](std::int64_t, double v) { return std::floor(v / shade) * shade; });
    }
    case 11:
      return function([&](std::int64_t, double v) { return v >= 255 - 255 * m / 30 ? 255 - v : v; });
    case 12:
      return function([&](std::int64_t c, double v) {
        const std::vector<double> values = sorted_channel(image, c);
        return values.front() == values.back() ? v : (v - values.front()) * 255 / (values.back() - values.front());
      });
    case 13:
      return function([&](std::int64_t c, double v) { return equalized(image, c, v); });
    default:
      return image;
  }
}

// An image with values from 40 to 199, which operations can stretch.
Image some_image(std::int64_t height, std::int64_t width, std::int64_t channels) {
  Image image = random_image(height, width, channels, 3);
  for (double& value : image.values) value = 40 + std::floor(value * 160 / 256);
  return image;
}

// The number of the operation that is drawn for a sample.
std::int64_t chosen(std::uint64_t sample) {
  return static_cast<std::int64_t>(std::uint64_t{key_of(3).block(sample, 0)[0]} * 14 >> 32);
}

}  // namespace

TEST_CASE("each operation of rand_augment equals its plain formula") {
  for (const std::int64_t channels : {1, 3}) {
    const Image image = some_image(23, 29, channels);
    for (const int magnitude : {0, 9, 17, 30}) {
      const TransformPlan plan = plan_of(format("{{rand_augment: {{num_ops: 1, magnitude: {}}}}}", magnitude));
      std::map<std::int64_t, int> seen;
      for (std::uint64_t sample = 0; sample < 150; ++sample) {
        const double sign = key_of(3).block(sample, 0)[1] >> 31 ? -1 : 1;
        const Image expected = expected_of(image, chosen(sample), magnitude, sign);
        INFO("operation " << chosen(sample) << " at " << magnitude << ", " << channels << " channels");
        check_near(augmented(image, plan, DType::uint8, sample), expected, 0.5 + 1e-3);
        CHECK(augmented(image, plan, DType::float32, sample) == augmented(image, plan, DType::uint8, sample));
        ++seen[chosen(sample)];
      }
      CHECK(seen.size() == 14);
    }
  }
}

TEST_CASE("rand_augment applies its operations one after the other") {
  const Image image = some_image(16, 16, 3);
  const TransformPlan plan = plan_of("{rand_augment: {num_ops: 2, magnitude: 11}}");
  const auto rounded = [](Image result) {
    for (double& value : result.values) value = std::floor(value + 0.5);
    return result;
  };
  int compared = 0;
  for (std::uint64_t sample = 0; sample < 100; ++sample) {
    const PhiloxBlock words = key_of(3).block(sample, 0);
    const auto second = static_cast<std::int64_t>(std::uint64_t{words[2]} * 14 >> 32);
    if (chosen(sample) == 13 || second == 13) continue;  // a rounding difference changes the histogram
    const Image first = rounded(expected_of(image, chosen(sample), 11, words[1] >> 31 ? -1 : 1));
    const Image expected = rounded(expected_of(first, second, 11, words[3] >> 31 ? -1 : 1));
    // If the first operation's value is rounded differently, the second may increase the difference.
    check_near(augmented(image, plan, DType::uint8, sample), expected, 2);
    ++compared;
  }
  CHECK(compared > 50);
}

TEST_CASE("rand_augment gives the same result in any value range") {
  const Image image = some_image(12, 12, 3);
  const TransformPlan bytes = plan_of("rand_augment"), scaled = plan_of("rand_augment", "{rescale: 1/255}"),
                      with_range = plan_of("{rand_augment: {value_range: [0, 1]}}", "{rescale: 1/255}");
  for (std::uint64_t sample = 0; sample < 40; ++sample) {
    Image expected = augmented(image, bytes, DType::uint8, sample);
    for (double& value : expected.values) value /= 255;
    for (const DType dtype : {DType::uint8, DType::float32}) {
      check_near(augmented(image, scaled, dtype, sample), expected, 1e-6);
      check_near(augmented(image, with_range, dtype, sample), expected, 1e-6);
    }
  }
}

}  // namespace trainctl::test::rand_augment_test
