// The augmentations random_brightness and random_contrast, with Keras' options.
#include <algorithm>

#include "io/loader/images/augment_options.h"
#include "io/loader/images/pointwise.h"

namespace trainctl {
namespace {

class Brightness final : public Augmentation {
 public:
  Brightness(Bounds factor, StoredRange range) : factor_(factor), range_(std::move(range)) {}

  void apply(Canvas& canvas, Draws draws) const override {
    const auto share = static_cast<float>(draws.between(factor_.low, factor_.high));
    for (std::int64_t c = 0; c < canvas.channels(); ++c) {
      const float more = share * range_.extent(c), low = range_.low(c), high = range_.high(c);
      map_channel(canvas, c, [=](float value) { return std::clamp(value + more, low, high); });
    }
  }

 private:
  Bounds factor_;
  StoredRange range_;
};

class Contrast final : public Augmentation {
 public:
  Contrast(Bounds factor, StoredRange range) : factor_(factor), range_(std::move(range)) {}

  void apply(Canvas& canvas, Draws draws) const override {
    const auto factor = static_cast<float>(draws.between(factor_.low, factor_.high));
    for (std::int64_t c = 0; c < canvas.channels(); ++c) {
      float mean = 0;
      visit(canvas, [&](const auto* values) {
        mean = static_cast<float>(mean_of(values, canvas.count(), canvas.channels(), c));
      });
      const float low = range_.low(c), high = range_.high(c);
      map_channel(canvas, c, [=](float value) { return std::clamp((value - mean) * factor + mean, low, high); });
    }
  }

 private:
  Bounds factor_;
  StoredRange range_;
};

struct RandomBrightnessOptions final : TransformOptions {
  Factor factor;
  ValueRange value_range;

  static Keys<RandomBrightnessOptions> keys() {
    return Keys<RandomBrightnessOptions>("random_brightness", "Makes the image lighter or darker by a random amount.")
        .required("factor", &RandomBrightnessOptions::factor,
                  "Share of value_range that is added: random between -factor and factor, or in [low, high]. The "
                  "result is clipped to value_range.",
                  between(-1, 1))
        .key("value_range", &RandomBrightnessOptions::value_range, value_range_meaning, between(-1e6, 1e6))
        .shorthand("factor")
        .check([](const RandomBrightnessOptions& options, const Node& node, Reader& reader) {
          check_factor("factor", options.factor, node, reader);
          check_value_range(options.value_range, node, reader);
        });
  }
  void add(const SourceLocation& location, TransformPlan& plan, StatisticsSource&) const override {
    const StoredRange range = stored_range(value_range, plan.affine);
    add_augmentation(std::make_shared<Brightness>(around_zero(factor), range), location, plan);
  }
};

struct RandomContrastOptions final : TransformOptions {
  Factor factor;
  ValueRange value_range;

  static Keys<RandomContrastOptions> keys() {
    return Keys<RandomContrastOptions>(
               "random_contrast",
               "Scales the difference between each value and its channel's mean in the image by a random factor.")
        .required("factor", &RandomContrastOptions::factor,
                  "Values become (x - mean) f + mean, clipped to value_range, with a random f between 1 - factor and 1 "
                  "+ factor or, for [lower, upper], between 1 - lower and 1 + upper.",
                  between(0, 1))
        .key("value_range", &RandomContrastOptions::value_range, value_range_meaning, between(-1e6, 1e6))
        .shorthand("factor")
        .check([](const RandomContrastOptions& options, const Node& node, Reader& reader) {
          if (options.factor.items.size() != 1 && options.factor.items.size() != 2) {
            reader.error(node.location, "factor needs one number, or [lower, upper]");
          }
          check_value_range(options.value_range, node, reader);
        });
  }
  void add(const SourceLocation& location, TransformPlan& plan, StatisticsSource&) const override {
    const Bounds bounds{1 - factor.items.front(), 1 + factor.items.back()};
    add_augmentation(std::make_shared<Contrast>(bounds, stored_range(value_range, plan.affine)), location, plan);
  }
};

}  // namespace

Section random_brightness_section() { return section_of<RandomBrightnessOptions>(); }
Section random_contrast_section() { return section_of<RandomContrastOptions>(); }

}  // namespace trainctl
