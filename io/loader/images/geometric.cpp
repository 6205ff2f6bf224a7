// random_rotation, random_zoom and random_translation, with Keras' options.
#include <numbers>

#include "io/loader/images/augment_options.h"
#include "io/loader/images/resample.h"

namespace trainctl {

template <>
struct EnumNames<FillMode> {
  static constexpr EnumName<FillMode> names[] = {{FillMode::reflect, "reflect"},
                                                 {FillMode::constant, "constant"},
                                                 {FillMode::nearest, "nearest"},
                                                 {FillMode::wrap, "wrap"}};
};

namespace {

// Resamples an image with the map that draw(draws, height, width) returns.
template <class Draw>
class Resampling final : public Augmentation {
 public:
  Resampling(Draw draw, Sampling sampling) : draw_(draw), sampling_(std::move(sampling)) {}

  bool keeps_bytes() const override { return sampling_.fill_mode != FillMode::constant || are_bytes(sampling_.fill); }
  void apply(Canvas& canvas, Draws draws) const override {
    resample(canvas, draw_(draws, canvas.height(), canvas.width()), sampling_);
  }
  std::shared_ptr<const Augmentation> of_masks(std::uint8_t outside) const override {
    return std::make_shared<Resampling>(
        draw_, Sampling{sampling_.fill_mode, Interpolation::nearest, {static_cast<float>(outside)}});
  }
  std::shared_ptr<const Augmentation> of_targets(ImageSize) const override {
    return std::make_shared<Resampling>(*this);
  }

 private:
  Draw draw_;
  Sampling sampling_;
};

struct SamplingOptions : TransformOptions {
  FillMode fill_mode = FillMode::reflect;
  double fill_value = 0;
  Interpolation interpolation = Interpolation::bilinear;

  template <class Draw>
  void add_map(Draw draw, const SourceLocation& location, TransformPlan& plan) const {
    Sampling sampling{fill_mode, interpolation, stored_fill(fill_value, plan.affine)};
    add_augmentation(std::make_shared<Resampling<Draw>>(draw, std::move(sampling)), location, plan);
  }
};

template <class T>
Keys<T> with_sampling(Keys<T> keys) {
  return std::move(keys)
      .key("fill_mode", &T::fill_mode,
           "The values outside of the image a b c. reflect: c b a | a b c | c b a; constant: fill_value; nearest: a a "
           "a | a b c | c c c; wrap: a b c | a b c | a b c.")
      .key("fill_value", &T::fill_value,
           "The value outside of the image (after all transforms) with constant; bytes stay bytes if this is a byte.",
           between(-1e6, 1e6))
      .key("interpolation", &T::interpolation, "How values between pixels are computed.");
}

struct RandomRotationOptions final : SamplingOptions {
  Factor factor;

  static Keys<RandomRotationOptions> keys() {
    return with_sampling(
               Keys<RandomRotationOptions>("random_rotation", "Rotates the image about its centre by a random angle.")
                   .required("factor", &RandomRotationOptions::factor,
                             "Share of a full turn, positive counterclockwise: random between -factor and factor, or "
                             "in [low, high].",
                             between(-1, 1)))
        .shorthand("factor")
        .check([](const RandomRotationOptions& options, const Node& node, Reader& reader) {
          check_factor("factor", options.factor, node, reader);
        });
  }
  void add(const SourceLocation& location, TransformPlan& plan, StatisticsSource&) const override {
    const Bounds turn = around_zero(factor);
    add_map(
        [turn](Draws& draws, std::int64_t height, std::int64_t width) {
          return rotation(2 * std::numbers::pi * draws.between(turn.low, turn.high), height, width);
        },
        location, plan);
  }
};

struct RandomZoomOptions final : SamplingOptions {
  Factor height_factor;
  std::optional<Factor> width_factor;

  static Keys<RandomZoomOptions> keys() {
    return with_sampling(Keys<RandomZoomOptions>("random_zoom", "Zooms about the image's centre by a random factor.")
                             .required("height_factor", &RandomZoomOptions::height_factor,
                                       "Random between -factor and factor, or in [low, high]: 0.2 shows a height that "
                                       "is 20 % larger (zooms out), -0.2 a height that is 20 % smaller.",
                                       between(-1, 1))
                             .key("width_factor", &RandomZoomOptions::width_factor,
                                  "Like height_factor, for the width; none: the width is zoomed like the height.",
                                  between(-1, 1)))
        .shorthand("height_factor")
        .check([](const RandomZoomOptions& options, const Node& node, Reader& reader) {
          check_factor("height_factor", options.height_factor, node, reader);
          if (options.width_factor) check_factor("width_factor", *options.width_factor, node, reader);
        });
  }
  void add(const SourceLocation& location, TransformPlan& plan, StatisticsSource&) const override {
    const Bounds vertical = around_zero(height_factor);
    const std::optional<Bounds> horizontal =
        width_factor ? std::optional(around_zero(*width_factor)) : std::optional<Bounds>();
    add_map(
        [vertical, horizontal](Draws& draws, std::int64_t height, std::int64_t width) {
          const double y = 1 + draws.between(vertical.low, vertical.high);
          const double x = horizontal ? 1 + draws.between(horizontal->low, horizontal->high) : y;
          return PlaneMap{.xx = x,
                          .x0 = (1 - x) * static_cast<double>(width - 1) / 2,
                          .yy = y,
                          .y0 = (1 - y) * static_cast<double>(height - 1) / 2};
        },
        location, plan);
  }
};

struct RandomTranslationOptions final : SamplingOptions {
  Factor height_factor, width_factor;

  static Keys<RandomTranslationOptions> keys() {
    return with_sampling(
               Keys<RandomTranslationOptions>("random_translation", "Shifts the image by a random share of its size.")
                   .required(
                       "height_factor", &RandomTranslationOptions::height_factor,
                       "Share of the height, positive downwards: random between -factor and factor, or in [low, high].",
                       between(-1, 1))
                   .required("width_factor", &RandomTranslationOptions::width_factor,
                             "Share of the width, positive to the right: random between -factor and factor, or in "
                             "[low, high].",
                             between(-1, 1)))
        .check([](const RandomTranslationOptions& options, const Node& node, Reader& reader) {
          check_factor("height_factor", options.height_factor, node, reader);
          check_factor("width_factor", options.width_factor, node, reader);
        });
  }
  void add(const SourceLocation& location, TransformPlan& plan, StatisticsSource&) const override {
    const Bounds down = around_zero(height_factor), right = around_zero(width_factor);
    add_map(
        [down, right](Draws& draws, std::int64_t height, std::int64_t width) {
          const double y = draws.between(down.low, down.high) * static_cast<double>(height);
          const double x = draws.between(right.low, right.high) * static_cast<double>(width);
          return PlaneMap{.x0 = -x, .y0 = -y};
        },
        location, plan);
  }
};

}  // namespace

Section random_rotation_section() { return section_of<RandomRotationOptions>(); }
Section random_zoom_section() { return section_of<RandomZoomOptions>(); }
Section random_translation_section() { return section_of<RandomTranslationOptions>(); }

}  // namespace trainctl
