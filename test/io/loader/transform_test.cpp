// Compares transforms and augmentation with slow, plain references.
#include "io/loader/images/transform.h"

#include <cmath>
#include <map>
#include <random>

#include "io/datasets/synthetic.h"
#include "io/loader/images/resize.h"
#include "io/loader/images/reverse.h"
#include "io/loader/images/transform_options.h"
#include "io/loader/inputs/measure.h"
#include "test/catch.h"
#include "test/support/files.h"

namespace trainctl::transform_test {
namespace {

using Kind = GeometryStep::Kind;

struct Image {
  std::int64_t height = 0, width = 0, channels = 0;
  std::vector<float> values;

  float& at(std::int64_t y, std::int64_t x, std::int64_t c) {
    return values[static_cast<std::size_t>((y * width + x) * channels + c)];
  }
  bool operator==(const Image&) const = default;
};

Image make(std::int64_t height, std::int64_t width, std::int64_t channels) {
  return {height, width, channels, std::vector<float>(static_cast<std::size_t>(height * width * channels))};
}

Image random_image(std::int64_t height, std::int64_t width, std::int64_t channels, unsigned seed) {
  std::mt19937 random(seed);
  Image image = make(height, width, channels);
  for (float& value : image.values) value = static_cast<float>(random() % 256);
  return image;
}

ImageView view_of(const Image& image) {
  return {image.values.data(), DType::float32, image.height, image.width, image.channels, image.width * image.channels};
}

// The same values as bytes.
std::vector<std::uint8_t> bytes_of(const Image& image) { return {image.values.begin(), image.values.end()}; }

// Resizes by a sum over all pixels, each weighted by a triangle around the centre of the output pixel.
Image resize_plainly(Image image, std::int64_t height, std::int64_t width) {
  Image result = make(height, width, image.channels);
  const double step_y = static_cast<double>(image.height) / static_cast<double>(height);
  const double step_x = static_cast<double>(image.width) / static_cast<double>(width);
  const auto weight = [](double at, double centre, double step) {
    return std::max(0.0, 1 - std::abs(at + 0.5 - centre) / std::max(1.0, step));
  };
  for (std::int64_t y = 0; y < height; ++y) {
    for (std::int64_t x = 0; x < width; ++x) {
      for (std::int64_t c = 0; c < image.channels; ++c) {
        double sum = 0, total = 0;
        for (std::int64_t v = 0; v < image.height; ++v) {
          for (std::int64_t u = 0; u < image.width; ++u) {
            const double w = weight(static_cast<double>(v), (static_cast<double>(y) + 0.5) * step_y, step_y) *
                             weight(static_cast<double>(u), (static_cast<double>(x) + 0.5) * step_x, step_x);
            sum += w * double{image.at(v, u, c)};
            total += w;
          }
        }
        result.at(y, x, c) = static_cast<float>(sum / total);
      }
    }
  }
  return result;
}

Image finish(const Transform& transform, const ImageView& view, bool training, std::uint64_t seed,
             std::uint64_t sample) {
  const Shape& shape = transform.output_shape();
  Image result = make(shape[0], shape[1], shape[2]);
  transform.finish(view, training, {seed, Purpose::augment, 3}, sample,
                   reinterpret_cast<std::byte*>(result.values.data()));
  return result;
}

// The crop at (y, x) of the image with zeros around it. `mirror` flips the image horizontally before, `turn`
// vertically.
Image crop_plainly(Image image, std::int64_t y, std::int64_t x, std::int64_t height, std::int64_t width, bool mirror,
                   bool turn) {
  Image result = make(height, width, image.channels);
  for (std::int64_t i = 0; i < height; ++i) {
    for (std::int64_t j = 0; j < width; ++j) {
      const std::int64_t v = turn ? image.height - 1 - (y + i) : y + i, u = mirror ? image.width - 1 - (x + j) : x + j;
      if (v < 0 || v >= image.height || u < 0 || u >= image.width) continue;
      for (std::int64_t c = 0; c < image.channels; ++c) result.at(i, j, c) = image.at(v, u, c);
    }
  }
  return result;
}

// Both buffers hold exactly these pixels, so that AddressSanitizer detects accesses outside of them.
template <class T>
void check_reversed(std::int64_t pixels, std::int64_t channels, std::mt19937& random) {
  std::vector<T> from(static_cast<std::size_t>(pixels * channels)), expected;
  for (T& value : from) value = static_cast<T>(random() % 251);
  for (std::int64_t i = pixels; i-- > 0;) {
    expected.insert(expected.end(), from.begin() + i * channels, from.begin() + (i + 1) * channels);
  }
  std::vector<T> to(from.size());
  reverse_pixels(from.data() + (pixels - 1) * channels, pixels, channels, to.data());
  CAPTURE(pixels, channels, sizeof(T));
  REQUIRE(to == expected);
}

}  // namespace

TEST_CASE("pixels are reversed as by a plain loop, and no other memory is touched") {
  std::mt19937 random(5);
  for (std::int64_t channels = 1; channels <= 5; ++channels) {
    for (std::int64_t pixels = 1; pixels <= 40; ++pixels) {
      check_reversed<std::uint8_t>(pixels, channels, random);
      check_reversed<float>(pixels, channels, random);
    }
  }
}

TEST_CASE("resizing equals the plain sum over all pixels") {
  std::mt19937 random(1);
  ResizeScratch scratch;
  for (int i = 0; i < 60; ++i) {
    const auto side = [&] { return static_cast<std::int64_t>(random() % 23) + 1; };
    const Image image = random_image(side(), side(), static_cast<std::int64_t>(random() % 3) + 1, random());
    const std::int64_t height = side(), width = side();
    const Image expected = resize_plainly(image, height, width);
    const std::vector<std::uint8_t> bytes = bytes_of(image);
    ImageView as_bytes = view_of(image);
    as_bytes.data = bytes.data();
    as_bytes.dtype = DType::uint8;
    for (const ImageView& view : {view_of(image), as_bytes}) {
      const ImageView result = resize(view, height, width, scratch);
      REQUIRE(result.shape() == Shape{height, width, image.channels});
      for (std::size_t k = 0; k < expected.values.size(); ++k) {
        REQUIRE(static_cast<const float*>(result.data)[k] == Approx(expected.values[k]).margin(1e-3));
      }
    }
  }
}

TEST_CASE("resizing gives Pillow's values") {
  // Image.resize(BILINEAR) of a float image, (y, x) -> (37 y + 53 x + 11 x y) % 101.
  struct Case {
    std::int64_t height, width, to_height, to_width;
    std::vector<float> expected;
  };
  const std::vector<Case> cases = {
      {7,
       9,
       3,
       4,
       {31.0857f, 47.2787f, 47.1777f, 52.3306f, 54.6067f, 57.1822f, 35.8336f, 42.6403f, 60.3163f, 48.2892f, 26.7666f,
        35.3265f}},
      {3, 2, 5, 7, {0.0000f,  0.0000f,  11.3571f, 26.5000f, 41.6429f, 53.0000f, 53.0000f, 14.8000f, 14.8000f,
                    18.4429f, 23.3000f, 28.1571f, 31.8000f, 31.8000f, 37.0000f, 37.0000f, 29.0714f, 18.5000f,
                    7.9286f,  0.0000f,  0.0000f,  59.2000f, 59.2000f, 52.6857f, 44.0000f, 35.3143f, 28.8000f,
                    28.8000f, 74.0000f, 74.0000f, 68.4286f, 61.0000f, 53.5714f, 48.0000f, 48.0000f}},
      {6,
       5,
       6,
       2,
       {25.4545f, 30.4545f, 27.5455f, 54.5455f, 52.5909f, 69.4545f, 63.8636f, 66.0000f, 43.0000f, 35.0000f, 86.4091f,
        31.5455f}},
  };
  for (const Case& c : cases) {
    Image image = make(c.height, c.width, 1);
    for (std::int64_t y = 0; y < c.height; ++y) {
      for (std::int64_t x = 0; x < c.width; ++x)
        image.at(y, x, 0) = static_cast<float>((37 * y + 53 * x + 11 * x * y) % 101);
    }
    ResizeScratch scratch;
    const ImageView result = resize(view_of(image), c.to_height, c.to_width, scratch);
    for (std::size_t i = 0; i < c.expected.size(); ++i) {
      CHECK(static_cast<const float*>(result.data)[i] == Approx(c.expected[i]).margin(2e-3));
    }
  }
}

TEST_CASE("random crops and flips: all possible ones occur equally often and are cut out correctly") {
  const Image image = random_image(5, 6, 3, 2);
  const std::vector<std::uint8_t> bytes = bytes_of(image);
  ImageView as_bytes = view_of(image);
  as_bytes.data = bytes.data();
  as_bytes.dtype = DType::uint8;
  const Transform floats({5, 6, 3}, DType::float32, {},
                         {{Kind::flip_horizontal}, {Kind::flip_vertical}, {Kind::random_crop, 4, 4, 2}}, Affine{});
  const Transform eights({5, 6, 3}, DType::uint8, {},
                         {{Kind::flip_horizontal}, {Kind::flip_vertical}, {Kind::random_crop, 4, 4, 2}}, Affine{});
  std::map<std::vector<float>, int> seen;
  for (bool mirror : {false, true}) {
    for (bool turn : {false, true}) {
      for (std::int64_t y = -2; y <= 3; ++y) {
        for (std::int64_t x = -2; x <= 4; ++x) seen[crop_plainly(image, y, x, 4, 4, mirror, turn).values] = 0;
      }
    }
  }
  REQUIRE(seen.size() == 4 * 6 * 7);
  const int draws = 168 * 60;
  for (int i = 0; i < draws; ++i) {
    const Image result = finish(floats, view_of(image), true, 9, static_cast<std::uint64_t>(i));
    REQUIRE(seen.count(result.values) == 1);
    ++seen[result.values];
    REQUIRE(finish(eights, as_bytes, true, 9, static_cast<std::uint64_t>(i)) == result);
  }
  double chi = 0;
  for (const auto& [values, count] : seen) chi += (count - 60.0) * (count - 60.0) / 60;
  CHECK(std::abs(chi - 167) < 5 * std::sqrt(2.0 * 167));
  // Evaluation uses the centre crop and does not mirror.
  CHECK(finish(floats, view_of(image), false, 9, 1) == crop_plainly(image, 0, 1, 4, 4, false, false));
}

TEST_CASE("samples without resize and padding stay bytes, and have the same values after scaling") {
  const std::vector<GeometryStep> fixed{{Kind::center_crop, 7, 6}},
      augment{{Kind::random_crop, 5, 4}, {Kind::flip_horizontal}, {Kind::flip_vertical}};
  CHECK(stays_as_stored(DType::uint8, fixed, augment));
  CHECK_FALSE(stays_as_stored(DType::float32, fixed, augment));
  CHECK_FALSE(stays_as_stored(DType::uint8, {{Kind::resize, 7, 6}}, augment));
  CHECK_FALSE(stays_as_stored(DType::uint8, fixed, {{Kind::random_crop, 5, 4, 1}}));

  std::mt19937 random(4);
  std::vector<std::uint8_t> pixels(9 * 8 * 3);
  for (std::uint8_t& pixel : pixels) pixel = static_cast<std::uint8_t>(random());
  const ImageView image = as_image(pixels.data(), DType::uint8, {9, 8, 3}).crop(1, 1, 7, 6);
  const Affine affine{{0.5, 2, 3}, {1, -1, 0.25}};
  const Transform floats({9, 8, 3}, DType::uint8, fixed, augment, affine);
  const Transform bytes({9, 8, 3}, DType::uint8, fixed, augment, {});
  CHECK(floats.output_dtype() == DType::float32);
  REQUIRE(bytes.output_dtype() == DType::uint8);
  for (std::uint64_t sample = 0; sample < 50; ++sample) {
    const Image expected = finish(floats, image, true, 9, sample);
    std::vector<std::uint8_t> got(5 * 4 * 3);
    bytes.finish(image, true, {9, Purpose::augment, 3}, sample, reinterpret_cast<std::byte*>(got.data()));
    for (std::size_t i = 0; i < got.size(); ++i) {
      REQUIRE(expected.values[i] ==
              got[i] * static_cast<float>(affine.scale[i % 3]) + static_cast<float>(affine.offset[i % 3]));
    }
  }
}

TEST_CASE("augmentation is a function of seed, epoch and sample") {
  const Image image = random_image(8, 8, 1, 2);
  const Transform transform({8, 8, 1}, DType::float32, {}, {{Kind::random_crop, 8, 8, 4}, {Kind::flip_horizontal}},
                            Affine{});
  CHECK(finish(transform, view_of(image), true, 1, 5) == finish(transform, view_of(image), true, 1, 5));
  int same = 0;
  for (std::uint64_t i = 0; i < 100; ++i)
    same += finish(transform, view_of(image), true, 1, i) == finish(transform, view_of(image), true, 2, i);
  CHECK(same < 10);
}

TEST_CASE("a second crop reads zeros outside of the first one") {
  const Image image = random_image(6, 6, 2, 3);
  const Transform transform({6, 6, 2}, DType::float32, {}, {{Kind::random_crop, 4, 4, 0}, {Kind::random_crop, 6, 6, 1}},
                            Affine{});
  for (std::uint64_t i = 0; i < 20; ++i) {
    Image result = finish(transform, view_of(image), true, 1, i);
    for (std::int64_t k = 0; k < 6; ++k) {
      for (const auto& [y, x] : {std::pair<std::int64_t, std::int64_t>{0, k}, {5, k}, {k, 0}, {k, 5}})
        CHECK(result.at(y, x, 1) == 0);
    }
  }
}

TEST_CASE("resize, center_crop and normalize are applied in their order") {
  const Image image = random_image(9, 12, 3, 4);
  Affine affine;
  affine.then({1 / 255.0}, {0});
  affine.then({2, 4, 8}, {-1, -2, -3});
  const Transform transform({9, 12, 3}, DType::float32, {{Kind::resize_short, 6, 6}, {Kind::center_crop, 4, 5}}, {},
                            affine);
  CHECK(transform.output_shape() == Shape{4, 5, 3});
  Sample sample;
  sample.shape = {9, 12, 3};
  sample.dtype = DType::float32;
  sample.values = image.values.data();
  Transform::Scratch scratch;
  const auto dataset = synthetic_dataset({1}, 2, 0, 1, 1);  // for names only
  const Image result = finish(transform, transform.prepare(sample, *dataset, 0, scratch), true, 1, 1);
  Image expected = crop_plainly(resize_plainly(image, 6, 8), 1, 1, 4, 5, false, false);
  for (std::size_t i = 0; i < expected.values.size(); ++i) {
    const double x = double{expected.values[i]} / 255 *
                         (i % 3 == 0   ? 2
                          : i % 3 == 1 ? 4
                                       : 8) -
                     1 - static_cast<double>(i % 3);
    CHECK(result.values[i] == Approx(x).margin(1e-4));
  }
  const Image square = random_image(12, 12, 3, 5);
  sample.shape = {12, 12, 3};
  sample.values = square.values.data();
  CHECK_THROWS_AS(Transform({9, 12, 3}, DType::float32, {{Kind::resize_short, 6, 6}}, {}, affine)
                      .prepare(sample, *dataset, 0, scratch),
                  Error);
  CHECK_THROWS_AS(Transform({9, 12, 3}, DType::float32, {{Kind::center_crop, 10, 5}}, {}, affine), Error);
  CHECK_THROWS_AS(Transform({108}, DType::float32, {{Kind::center_crop, 1, 5}}, {}, affine), Error);
}

TEST_CASE("measured statistics are those of the subset, with the same bits for any number of threads") {
  const auto dataset = synthetic_dataset({5, 4, 3}, 4, 0, 1000, 3);
  const Subset subset = Subset::split(1000, 0.3, 1).training;
  TransformPlan plan;
  plan.affine.then({10, 20, 30}, {100, 200, 300});
  const Statistics one = measure_statistics(*dataset, subset, plan, 1, OnError::stop),
                   four = measure_statistics(*dataset, subset, plan, 4, OnError::stop);
  CHECK(one.mean == four.mean);
  CHECK(one.stddev == four.stddev);
  for (std::size_t c = 0; c < 3; ++c) {
    std::vector<double> values;
    Sample sample;
    for (std::int64_t i = 0; i < subset.size(); ++i) {
      dataset->read(subset[i], sample);
      for (std::size_t k = c; k < 60; k += 3) {
        values.push_back(static_cast<double>(static_cast<const std::uint8_t*>(sample.values)[k]) * 10 *
                             static_cast<double>(c + 1) +
                         100 * static_cast<double>(c + 1));
      }
    }
    double mean = 0, variance = 0;
    for (double value : values) mean += value / static_cast<double>(values.size());
    for (double value : values) variance += (value - mean) * (value - mean) / static_cast<double>(values.size());
    CHECK(one.mean[c] == Approx(mean).epsilon(1e-9));
    CHECK(one.stddev[c] == Approx(std::sqrt(variance)).epsilon(1e-9));
  }
}

}  // namespace trainctl::transform_test
