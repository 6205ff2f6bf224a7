// The tables of transforms and augmentations.
#include "io/loader/images/transform_options.h"

#include "core/base/format.h"
#include "core/base/table.h"
#include "io/loader/images/augment_options.h"

namespace trainctl {
namespace {

enum class NormalizeBy { stated, imagenet, measured };
enum class FlipMode { horizontal, vertical, both };

}  // namespace

template <>
struct EnumNames<NormalizeBy> {
  static constexpr EnumName<NormalizeBy> names[] = {
      {NormalizeBy::stated, "stated"}, {NormalizeBy::imagenet, "imagenet"}, {NormalizeBy::measured, "measured"}};
};
template <>
struct EnumNames<FlipMode> {
  static constexpr EnumName<FlipMode> names[] = {{FlipMode::horizontal, "horizontal"},
                                                 {FlipMode::vertical, "vertical"},
                                                 {FlipMode::both, "horizontal_and_vertical"}};
};

namespace {

struct ResizeOptions final : TransformOptions {
  OneOrMore<std::int64_t> size;

  static Keys<ResizeOptions> keys() {
    return Keys<ResizeOptions>("resize",
                               "Bilinear resizing with antialiasing, like tf.image.resize(antialias=True). If it is "
                               "the first step, a JPEG of at least twice the size is decoded to a half, a quarter or "
                               "an eighth of its size, which is faster and changes the result only little.")
        .required("size", &ResizeOptions::size, "Pixels of the shorter side, or [height, width].", between(1, 65536))
        .shorthand("size")
        .check([](const ResizeOptions& options, const Node& node, Reader& reader) {
          if (options.size.items.empty() || options.size.items.size() > 2) {
            reader.error(node.location, "resize needs one size, or [height, width]");
          }
        });
  }
  void add(const SourceLocation& location, TransformPlan& plan, StatisticsSource&) const override {
    const bool one = size.items.size() == 1;
    plan.fixed.push_back({one ? GeometryStep::Kind::resize_short : GeometryStep::Kind::resize, size.items.front(),
                          size.items.back(), 0, location});
  }
};

struct CenterCropOptions final : TransformOptions {
  std::array<std::int64_t, 2> size{};

  static Keys<CenterCropOptions> keys() {
    return Keys<CenterCropOptions>("center_crop", "Cuts out the central rectangle.")
        .required("size", &CenterCropOptions::size, "Pixels: [height, width], or one number for both.",
                  between(1, 65536))
        .shorthand("size");
  }
  void add(const SourceLocation& location, TransformPlan& plan, StatisticsSource&) const override {
    plan.fixed.push_back({GeometryStep::Kind::center_crop, size[0], size[1], 0, location});
  }
};

struct NormalizeOptions final : TransformOptions {
  NormalizeBy statistics = NormalizeBy::stated;
  OneOrMore<double> mean, std;

  static Keys<NormalizeOptions> keys() {
    return Keys<NormalizeOptions>("normalize", "Computes (x - mean) / std for each channel.")
        .key("statistics", &NormalizeOptions::statistics,
             "The source of mean and std. stated: the keys `mean` and `std`; imagenet: the usual values of ImageNet, "
             "for values from 0 to 255, or from 0 to 1 after a rescale; measured: exactly those of the training split.")
        .key("mean", &NormalizeOptions::mean, "The mean: one number for each channel, or one for all.")
        .key("std", &NormalizeOptions::std, "The standard deviation: one number for each channel, or one for all.",
             more_than(0))
        .shorthand("statistics")
        .check([](const NormalizeOptions& options, const Node& node, Reader& reader) {
          const bool has_both = !options.mean.items.empty() && !options.std.items.empty();
          const bool has_any = !options.mean.items.empty() || !options.std.items.empty();
          if (options.statistics == NormalizeBy::stated ? !has_both : has_any) {
            reader.error(node.location, "normalize needs either `mean` and `std`, or imagenet, or measured");
          }
          const std::size_t means = options.mean.items.size(), deviations = options.std.items.size();
          if (means > 1 && deviations > 1 && means != deviations) {
            reader.error(node.location,
                         format("normalize has {} of `mean`, but {} of `std`", counted(means, "value"), deviations));
          }
        });
  }
  void add(const SourceLocation&, TransformPlan& plan, StatisticsSource& source) const override {
    Statistics with{mean.items, std.items};
    if (statistics == NormalizeBy::imagenet) {
      const double unit = plan.rescaled ? 1 : 255;
      with = {{0.485 * unit, 0.456 * unit, 0.406 * unit}, {0.229 * unit, 0.224 * unit, 0.225 * unit}};
    } else if (statistics == NormalizeBy::measured) {
      with = source.measure(plan);
    }
    std::vector<double> scale, offset;
    for (std::size_t i = 0; i < std::max(with.mean.size(), with.stddev.size()); ++i) {
      scale.push_back(1 / with.stddev[with.stddev.size() == 1 ? 0 : i]);
      offset.push_back(-with.mean[with.mean.size() == 1 ? 0 : i] * scale.back());
    }
    plan.affine.then(scale, offset);
  }
};

struct RescaleOptions final : TransformOptions {
  double scale = 1, offset = 0;

  static Keys<RescaleOptions> keys() {
    return Keys<RescaleOptions>("rescale", "Computes x * scale + offset.")
        .required("scale", &RescaleOptions::scale, "A number or a fraction: 1/255.")
        .key("offset", &RescaleOptions::offset, "Added after scaling.")
        .shorthand("scale");
  }
  void add(const SourceLocation&, TransformPlan& plan, StatisticsSource&) const override {
    plan.affine.then({scale}, {offset});
    plan.rescaled = true;
  }
};

struct RandomCropOptions final : TransformOptions {
  std::array<std::int64_t, 2> size{};
  std::int64_t padding = 0;

  static Keys<RandomCropOptions> keys() {
    return Keys<RandomCropOptions>("random_crop",
                                   "Cuts out a random rectangle of the image; in evaluation the central one.")
        .required("size", &RandomCropOptions::size, "Pixels: [height, width], or one number for both.",
                  between(1, 65536))
        .key("padding", &RandomCropOptions::padding,
             "Number of pixels by which the image is padded on all sides with values that are zero after all "
             "transforms.",
             between(0, 65536))
        .shorthand("size");
  }
  void add(const SourceLocation& location, TransformPlan& plan, StatisticsSource&) const override {
    plan.augment.push_back({GeometryStep::Kind::random_crop, size[0], size[1], padding, location});
  }
};

struct RandomFlipOptions final : TransformOptions {
  FlipMode mode = FlipMode::horizontal;

  static Keys<RandomFlipOptions> keys() {
    return Keys<RandomFlipOptions>("random_flip", "Mirrors the image with probability 1/2.")
        .key("mode", &RandomFlipOptions::mode, "The direction; both directions are chosen independently of each other.")
        .shorthand("mode");
  }
  void add(const SourceLocation& location, TransformPlan& plan, StatisticsSource&) const override {
    if (mode != FlipMode::vertical) plan.augment.push_back({GeometryStep::Kind::flip_horizontal, 0, 0, 0, location});
    if (mode != FlipMode::horizontal) plan.augment.push_back({GeometryStep::Kind::flip_vertical, 0, 0, 0, location});
  }
};

}  // namespace

const ChoiceTable& transform_choices() {
  static const ChoiceTable table{"transform",
                                 {
                                     section_of<ResizeOptions>(),
                                     section_of<CenterCropOptions>(),
                                     section_of<NormalizeOptions>(),
                                     section_of<RescaleOptions>(),
                                     mel_spectrogram_section(),
                                 }};
  return table;
}

const ChoiceTable& augment_choices() {
  static const ChoiceTable table{"augmentation",
                                 {
                                     section_of<RandomCropOptions>(),
                                     section_of<RandomFlipOptions>(),
                                     random_rotation_section(),
                                     random_zoom_section(),
                                     random_translation_section(),
                                     random_brightness_section(),
                                     random_contrast_section(),
                                     random_erasing_section(),
                                     rand_augment_section(),
                                     mixup_section(),
                                     cutmix_section(),
                                 }};
  return table;
}

}  // namespace trainctl
