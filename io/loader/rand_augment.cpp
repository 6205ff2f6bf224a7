// rand_augment: Cubuk, Zoph, Shlens, Le, "RandAugment: Practical Automated Data Augmentation with a Reduced Search
// Space" (CVPR workshops 2020), with the operations and magnitudes of torchvision's RandAugment.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "io/loader/augment_options.h"
#include "io/loader/byte_images.h"
#include "io/loader/pointwise.h"
#include "io/loader/resample.h"

namespace trainctl {
namespace {

constexpr int largest_magnitude = 30;

// In torchvision's order, which the random numbers choose by.
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

// Applies an operation to a canvas of bytes, at `magnitude` of largest_magnitude; `sign`, 1 or -1, says which way.
void apply_operation(Canvas& canvas, Operation operation, int magnitude, double sign) {
  const double share = static_cast<double>(magnitude) / largest_magnitude, shear = sign * 0.3 * share;
  // What is moved in is black. Shears leave the image's upper left corner, half a pixel from a centre, where it is.
  const auto move = [&](const PlaneMap& map) {
    resample(canvas, map, {FillMode::constant, Interpolation::nearest, {0.0f}});
  };
  const auto shift = [&](std::int64_t size) {
    return -sign * std::floor(150.0 / 331 * share * static_cast<double>(size));
  };
  const auto factor = static_cast<float>(1 + sign * 0.9 * share);
  switch (operation) {
    case Operation::shear_x:
      return move({.xy = shear, .x0 = shear / 2});
    case Operation::shear_y:
      return move({.yx = shear, .y0 = shear / 2});
    case Operation::translate_x:
      return move({.x0 = shift(canvas.width())});
    case Operation::translate_y:
      return move({.y0 = shift(canvas.height())});
    case Operation::rotate:
      return move(rotation(sign * share * std::numbers::pi / 6, canvas.height(), canvas.width()));
    case Operation::brightness:
      return adjust_brightness(canvas, factor);
    case Operation::color:
      return adjust_color(canvas, factor);
    case Operation::contrast:
      return adjust_contrast(canvas, factor);
    case Operation::sharpness:
      return adjust_sharpness(canvas, factor);
    case Operation::posterize:
      return posterize(canvas, 8 - static_cast<int>(std::lround(4 * share)));
    case Operation::solarize:
      return solarize(canvas, static_cast<float>(255 * (1 - share)));
    case Operation::autocontrast:
      return autocontrast(canvas);
    case Operation::equalize:
      return equalize(canvas);
    case Operation::identity:
    case Operation::count:
      return;
  }
}

class RandAugment final : public Augmentation {
 public:
  RandAugment(int operations, int magnitude, StoredRange range)
      : operations_(operations), magnitude_(magnitude), range_(std::move(range)) {}

  void apply(Canvas& canvas, Draws draws) const override {
    const DType stored = canvas.dtype();
    to_bytes(canvas);
    for (int i = 0; i < operations_; ++i) {
      const auto operation = static_cast<Operation>(draws.pick(static_cast<std::int64_t>(Operation::count)));
      apply_operation(canvas, operation, magnitude_, draws.word() >> 31 ? -1 : 1);
    }
    from_bytes(canvas, stored);
  }

 private:
  bool is_bytes() const { return range_.from == std::vector<float>{0} && range_.to == std::vector<float>{255}; }
  // The range becomes 0 to 255, and back.
  void to_bytes(Canvas& canvas) const {
    if (canvas.dtype() == DType::uint8 && is_bytes()) return;
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
    if (is_bytes()) return;
    for (std::int64_t c = 0; c < canvas.channels(); ++c) {
      const float from = range_.from[range_.which(c)], extent = range_.extent(c);
      map_channel(canvas, c, [=](float value) { return from + value / 255 * extent; });
    }
  }

  int operations_, magnitude_;
  StoredRange range_;
};

struct RandAugmentOptions final : TransformOptions {
  int num_ops = 2, magnitude = 9;
  ValueRange value_range;

  static Keys<RandAugmentOptions> keys() {
    return Keys<RandAugmentOptions>("rand_augment",
                                    "RandAugment with torchvision's operations: shears, translations, rotation, "
                                    "brightness, color, contrast, "
                                    "sharpness, posterize, solarize, autocontrast, equalize, or none. Values become "
                                    "256 shades of value_range; "
                                    "what is moved in is the darkest.")
        .key("num_ops", &RandAugmentOptions::num_ops, "Operations that are applied one after the other.",
             between(1, 100))
        .key("magnitude", &RandAugmentOptions::magnitude, "How strong they are.", between(0, largest_magnitude))
        .key("value_range", &RandAugmentOptions::value_range, value_range_meaning, between(-1e6, 1e6))
        .check([](const RandAugmentOptions& options, const Node& node, Reader& reader) {
          check_value_range(options.value_range, node, reader);
        });
  }
  void add(const Place& place, TransformPlan& plan, StatisticsSource&) const override {
    const StoredRange range = stored_range(value_range, plan.affine);
    add_augmentation(std::make_shared<RandAugment>(num_ops, magnitude, range), place, plan);
  }
};

}  // namespace

Section rand_augment_section() { return section_of<RandAugmentOptions>(); }

}  // namespace trainctl
