// The options of mixup and cutmix, their random numbers, and the mixing of values.
#include "io/loader/images/mixing.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

#include "core/base/format.h"
#include "io/loader/images/augment_options.h"

namespace trainctl {
namespace {

using MixKind = MixStep::Kind;

// Draws a number in (0, 1].
double positive_share(Draws& draws) { return (draws.word() + 1.0) * 0x1p-32; }

double draw_normal(Draws& draws) {
  const double radius = std::sqrt(-2 * std::log(positive_share(draws)));
  return radius * std::cos(2 * std::numbers::pi * draws.share());
}

// Draws the logarithm of a number from Gamma(alpha, 1) (Marsaglia and Tsang, 2000); the number itself may be too small
// for a double.
double draw_log_gamma(double alpha, Draws& draws) {
  if (alpha < 1) {
    const double log_gamma = draw_log_gamma(alpha + 1, draws);
    return log_gamma + std::log(positive_share(draws)) / alpha;
  }
  const double d = alpha - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = draw_normal(draws), root = 1 + c * x, v = root * root * root;
    const double u = positive_share(draws);
    if (v > 0 && std::log(u) < x * x / 2 + d - d * v + d * std::log(v)) return std::log(d * v);
  }
}

template <MixKind kind>
struct MixOptions final : TransformOptions {
  double alpha = kind == MixKind::mixup ? 0.2 : 1.0;

  bool mixes() const override { return true; }
  void add(const SourceLocation& location, TransformPlan& plan, StatisticsSource&) const override {
    plan.mixes.push_back({kind, alpha, location});
  }
};

constexpr const char* alpha_meaning = "The share is drawn from Beta(alpha, alpha): small values mix only little.";

// The part of the description that mixup and cutmix share.
constexpr const char* partner_meaning =
    "The partner is a random sample of the training split, augmented as in this epoch, so that twice the number of "
    "samples are read. Classes become probabilities: sparse_categorical_crossentropy trains like "
    "categorical_crossentropy. If several items mix samples, one of them is chosen at random for each sample.";

template <MixKind kind>
Section mix_section(const char* name, const char* keras_name, const std::string& meaning) {
  return Keys<MixOptions<kind>>(name, meaning + ' ' + partner_meaning)
      .key("alpha", &MixOptions<kind>::alpha, alpha_meaning, Range{.more_than = 0.0, .at_most = 1e6})
      .alias(keras_name)
      .shorthand("alpha");
}

}  // namespace

Section mixup_section() {
  return mix_section<MixKind::mixup>("mixup", "mix_up",
                                     "Mixes each sample and its target with those of another sample, the partner: "
                                     "share * own + (1 - share) * partner's.");
}

Section cutmix_section() {
  return mix_section<MixKind::cutmix>("cutmix", "cut_mix",
                                      "Copies a rectangle of another image, the partner, into each image; targets are "
                                      "mixed in proportion to the areas. The rectangle's sides are those of the image "
                                      "times the square root of 1 - share; its centre is at a random position.");
}

double draw_share(double alpha, Draws& draws) {
  const double own = draw_log_gamma(alpha, draws), other = draw_log_gamma(alpha, draws);
  return 1 / (1 + std::exp(other - own));
}

Mixing::Mixing(std::vector<MixStep> steps, std::uint32_t position, const Shape& sample, std::int64_t classes)
    : steps_(std::move(steps)), position_(position), sample_(sample) {
  for (const MixStep& step : steps_) {
    if (step.kind != MixKind::cutmix) continue;
    if (sample.rank() != 3) {
      throw Error(ErrorKind::config, step.location,
                  format("cutmix needs images, but samples have shape {}", to_string(sample)),
                  "use mixup, which mixes samples of any shape");
    }
    if (classes == 0) {
      throw Error(ErrorKind::config, step.location, "cutmix needs classes, but the targets are values",
                  "use mixup, which also mixes values");
    }
  }
}

Mixing::Mix Mixing::draw(const RandomKey& key, std::uint64_t sample, std::int64_t samples_of_split) const {
  Draws draws(key, sample, position_);
  Mix mix;
  mix.partner = draws.pick(samples_of_split);
  const MixStep& step = steps_[static_cast<std::size_t>(draws.pick(std::ssize(steps_)))];
  mix.kind = step.kind;
  mix.share = draw_share(step.alpha, draws);
  if (step.kind == MixKind::mixup) return mix;
  const std::int64_t height = sample_[0], width = sample_[1];
  const double side = std::sqrt(1 - mix.share);
  const auto cut = [&](std::int64_t size, std::int64_t& begin, std::int64_t& end) {
    const auto half = static_cast<std::int64_t>(side * static_cast<double>(size)) / 2;
    const std::int64_t centre = draws.pick(size);
    begin = std::max<std::int64_t>(centre - half, 0);
    end = std::min(centre + half, size);
  };
  cut(height, mix.top, mix.bottom);
  cut(width, mix.left, mix.right);
  const auto area = static_cast<double>((mix.bottom - mix.top) * (mix.right - mix.left));
  mix.share = 1 - area / static_cast<double>(height * width);
  return mix;
}

void Mixing::apply(const Mix& mix, DType dtype, std::byte* sample, const std::byte* partner) const {
  if (mix.kind == MixKind::mixup) {
    require(dtype == DType::float32, "mixup gets values that are not float32");
    blend(mix.share, sample_.count(), reinterpret_cast<float*>(sample), reinterpret_cast<const float*>(partner));
    return;
  }
  const std::int64_t pixel = sample_[2] * size_of(dtype), row = sample_[1] * pixel;
  for (std::int64_t y = mix.top; y < mix.bottom; ++y) {
    const std::int64_t at = y * row + mix.left * pixel;
    std::memcpy(sample + at, partner + at, static_cast<std::size_t>((mix.right - mix.left) * pixel));
  }
}

bool keeps_bytes(const std::vector<MixStep>& steps) {
  return std::all_of(steps.begin(), steps.end(), [](const MixStep& step) { return step.kind == MixKind::cutmix; });
}

void blend(double share, std::int64_t count, float* to, const float* from) {
  const auto own = static_cast<float>(share), other = static_cast<float>(1 - share);
  for (std::int64_t i = 0; i < count; ++i) to[i] = own * to[i] + other * from[i];
}

}  // namespace trainctl
