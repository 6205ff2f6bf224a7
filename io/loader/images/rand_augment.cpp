// rand_augment: Cubuk, Zoph, Shlens, Le, "RandAugment: Practical Automated Data Augmentation with a Reduced Search
// Space" (CVPR workshops 2020), with the operations and magnitudes of torchvision's RandAugment.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>

#include "io/loader/images/augment_options.h"
#include "io/loader/images/byte_images.h"
#include "io/loader/images/pointwise.h"
#include "io/loader/images/resample.h"

namespace trainctl {
namespace {

constexpr int largest_magnitude = 30;

// The operations in torchvision's order; a random number is the index of an operation.
enum class Operation {
  identity,
  shear_x,
  shear_y,
  translate_x,
  translate_y,
  rotate,
  brightness,
  color,
  contrast,
  sharpness,
  posterize,
  solarize,
  autocontrast,
  equalize,
  count
};

// An operation with magnitude 0 to largest_magnitude; `sign`, 1 or -1, is its direction.
struct Move {
  Operation operation = Operation::identity;
  int magnitude = 0;
  double sign = 1;

  double share() const { return static_cast<double>(magnitude) / largest_magnitude; }
};

Move draw_move(Draws& draws, int magnitude) {
  const auto operation = static_cast<Operation>(draws.pick(static_cast<std::int64_t>(Operation::count)));
  return {operation, magnitude, draws.word() >> 31 ? -1.0 : 1.0};
}

// Returns the map by which an operation moves pixels; nullopt if it changes only their values. Shears keep the image's
// upper left corner fixed, which is half a pixel from the first pixel's centre. `images` is the size of the images to
// which targets of this height and width belong: they are shifted by the whole pixels of their image.
std::optional<PlaneMap> map_of(const Move& move, std::int64_t height, std::int64_t width, const ImageSize& images) {
  const double shear = move.sign * 0.3 * move.share();
  const auto shift = [&](std::int64_t size, std::int64_t of_image) {
    const double pixels = std::floor(150.0 / 331 * move.share() * static_cast<double>(of_image));
    return -move.sign * pixels * static_cast<double>(size) / static_cast<double>(of_image);
  };
  switch (move.operation) {
    case Operation::shear_x:
      return PlaneMap{.xy = shear, .x0 = shear / 2};
    case Operation::shear_y:
      return PlaneMap{.yx = shear, .y0 = shear / 2};
    case Operation::translate_x:
      return PlaneMap{.x0 = shift(width, images.width)};
    case Operation::translate_y:
      return PlaneMap{.y0 = shift(height, images.height)};
    case Operation::rotate:
      return rotation(move.sign * move.share() * std::numbers::pi / 6, height, width);
    default:
      return std::nullopt;
  }
}

// Applies an operation that changes values to a canvas of bytes.
void change_values(Canvas& canvas, const Move& move) {
  const auto factor = static_cast<float>(1 + move.sign * 0.9 * move.share());
  switch (move.operation) {
    case Operation::brightness:
      return adjust_brightness(canvas, factor);
    case Operation::color:
      return adjust_color(canvas, factor);
    case Operation::contrast:
      return adjust_contrast(canvas, factor);
    case Operation::sharpness:
      return adjust_sharpness(canvas, factor);
    case Operation::posterize:
      return posterize(canvas, 8 - static_cast<int>(std::lround(4 * move.share())));
    case Operation::solarize:
      return solarize(canvas, static_cast<float>(255 * (1 - move.share())));
    case Operation::autocontrast:
      return autocontrast(canvas);
    case Operation::equalize:
      return equalize(canvas);
    default:
      return;
  }
}

// Applies random operations to a canvas of bytes; if `all` is false, only those that move pixels. Pixels from outside
// of the image become `outside`. `images` is the size of the images, if the canvas is a target.
void apply_operations(Canvas& canvas, Draws& draws, int operations, int magnitude, std::uint8_t outside, bool all,
                      const std::optional<ImageSize>& images = {}) {
  const ImageSize size = images.value_or(ImageSize{canvas.height(), canvas.width()});
  for (int i = 0; i < operations; ++i) {
    const Move move = draw_move(draws, magnitude);
    if (const auto map = map_of(move, canvas.height(), canvas.width(), size)) {
      resample(canvas, *map, {FillMode::constant, Interpolation::nearest, {static_cast<float>(outside)}});
    } else if (all) {
      change_values(canvas, move);
    }
  }
}

class MaskRandAugment final : public Augmentation {
 public:
  MaskRandAugment(int operations, int magnitude, std::uint8_t outside)
      : operations_(operations), magnitude_(magnitude), outside_(outside) {}

  void apply(Canvas& canvas, Draws draws) const override {
    apply_operations(canvas, draws, operations_, magnitude_, outside_, false);
  }

 private:
  int operations_, magnitude_;
  std::uint8_t outside_;
};

class RandAugment final : public Augmentation {
 public:
  // `images`: the size of the images, if this augmentation is for their targets, whose pixels it only moves.
  RandAugment(int operations, int magnitude, StoredRange range, std::optional<ImageSize> images = {})
      : operations_(operations), magnitude_(magnitude), range_(std::move(range)), images_(images) {}

  void apply(Canvas& canvas, Draws draws) const override {
    const DType stored = canvas.dtype();
    to_bytes(canvas);
    // Pixels from outside are black.
    apply_operations(canvas, draws, operations_, magnitude_, 0, !images_, images_);
    from_bytes(canvas, stored);
  }
  std::shared_ptr<const Augmentation> of_masks(std::uint8_t outside) const override {
    return std::make_shared<MaskRandAugment>(operations_, magnitude_, outside);
  }
  std::shared_ptr<const Augmentation> of_targets(ImageSize images) const override {
    return std::make_shared<RandAugment>(operations_, magnitude_, range_, images);
  }

 private:
  bool is_byte_range() const { return range_.from == std::vector<float>{0} && range_.to == std::vector<float>{255}; }
  // Map the value range to 0 to 255, and back.
  void to_bytes(Canvas& canvas) const {
    if (canvas.dtype() == DType::uint8 && is_byte_range()) return;
    for (std::int64_t c = 0; c < canvas.channels(); ++c) {
      const float from = range_.from[range_.which(c)], extent = range_.extent(c);
      map_channel(canvas, c, [=](float value) { return extent == 0 ? 0 : (value - from) / extent * 255; });
    }
    if (canvas.dtype() == DType::uint8) return;
    const auto* values = canvas.pixels<float>();
    std::transform(values, values + canvas.count(), canvas.blank<std::uint8_t>(), as_pixel<std::uint8_t>);
    canvas.turn();
  }
  void from_bytes(Canvas& canvas, DType stored) const {
    if (stored == DType::float32) {
      std::copy_n(canvas.pixels<std::uint8_t>(), canvas.count(), canvas.blank<float>());
      canvas.turn();
    }
    if (is_byte_range()) return;
    for (std::int64_t c = 0; c < canvas.channels(); ++c) {
      const float from = range_.from[range_.which(c)], extent = range_.extent(c);
      map_channel(canvas, c, [=](float value) { return from + value / 255 * extent; });
    }
  }

  int operations_, magnitude_;
  StoredRange range_;
  std::optional<ImageSize> images_;
};

struct RandAugmentOptions final : TransformOptions {
  int num_ops = 2, magnitude = 9;
  ValueRange value_range;

  static Keys<RandAugmentOptions> keys() {
    return Keys<RandAugmentOptions>(
               "rand_augment",
               "RandAugment with torchvision's operations: shears, translations, rotation, brightness, color, "
               "contrast, sharpness, posterize, solarize, autocontrast, equalize, or none. Values are rounded to 256 "
               "levels of value_range, also those of targets that are images, whose pixels are only moved; pixels from "
               "outside "
               "of the image get its darkest value.")
        .key("num_ops", &RandAugmentOptions::num_ops,
             "Number of operations that are applied to a sample, one after the other.", between(1, 100))
        .key("magnitude", &RandAugmentOptions::magnitude, "The strength of the operations.",
             between(0, largest_magnitude))
        .key("value_range", &RandAugmentOptions::value_range, value_range_meaning, between(-1e6, 1e6))
        .check([](const RandAugmentOptions& options, const Node& node, Reader& reader) {
          check_value_range(options.value_range, node, reader);
        });
  }
  void add(const SourceLocation& location, TransformPlan& plan, StatisticsSource&) const override {
    const StoredRange range = stored_range(value_range, plan.affine);
    add_augmentation(std::make_shared<RandAugment>(num_ops, magnitude, range), location, plan);
  }
};

}  // namespace

Section rand_augment_section() { return section_of<RandAugmentOptions>(); }

}  // namespace trainctl
