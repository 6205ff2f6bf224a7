// random_erasing, with the options of Keras' RandomErasing and the noise of Zhong, Zheng, Kang, Li, Yang, "Random
// Erasing Data Augmentation" (AAAI 2020).
#include <algorithm>
#include <cmath>

#include "io/loader/images/augment_options.h"

namespace trainctl {
namespace {

// An endless sequence of random numbers in [0, 1), determined by the seed.
class Noise {
 public:
  explicit Noise(std::array<std::uint32_t, 2> seed) : seed_(seed) {}

  float next() {
    if (used_ % 4 == 0) {
      const std::uint64_t block = used_ / 4;
      block_ = philox({static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32)}, seed_);
    }
    return uniform01(block_[used_++ % 4]);
  }

 private:
  std::array<std::uint32_t, 2> seed_;
  std::uint64_t used_ = 0;
  PhiloxBlock block_{};
};

// The pixels [begin, end) of a side that a rectangle covers.
struct Extent1d {
  std::int64_t begin, end;
};

class Erasing final : public Augmentation {
 public:
  // If `fill` is empty, the rectangle is filled with noise.
  Erasing(Bounds probability, Bounds area, std::vector<float> fill, StoredRange range)
      : probability_(probability), area_(area), fill_(std::move(fill)), range_(std::move(range)) {}

  bool keeps_bytes() const override { return are_bytes(fill_); }
  void apply(Canvas& canvas, Draws draws) const override {
    const double probability = draws.between(probability_.low, probability_.high);
    if (draws.share() >= probability) return;
    const Extent1d x = draw_extent(canvas.width(), draws), y = draw_extent(canvas.height(), draws);
    const std::uint32_t low = draws.word(), high = draws.word();
    Noise noise({low, high});
    visit(canvas, [&]<class T>(T* pixels) {
      for (std::int64_t row = y.begin; row < y.end; ++row) {
        T* to = pixels + (row * canvas.width() + x.begin) * canvas.channels();
        for (std::int64_t i = x.begin; i < x.end; ++i) {
          for (std::int64_t c = 0; c < canvas.channels(); ++c) *to++ = as_pixel<T>(value(c, noise));
        }
      }
    });
  }

 private:
  // Draws the extent along one side. As in Keras, both sides are drawn independently, each as the square root of a
  // share of the area.
  Extent1d draw_extent(std::int64_t size, Draws& draws) const {
    const double n = static_cast<double>(size), length = std::sqrt(draws.between(area_.low, area_.high)) * n;
    const double begin = draws.share() * (n - length);
    return {static_cast<std::int64_t>(std::ceil(begin)),
            std::min(size, static_cast<std::int64_t>(std::ceil(begin + length)))};
  }
  float value(std::int64_t channel, Noise& noise) const {
    if (!fill_.empty()) return fill_[fill_.size() == 1 ? 0 : static_cast<std::size_t>(channel)];
    return range_.low(channel) + (range_.high(channel) - range_.low(channel)) * noise.next();
  }

  Bounds probability_, area_;
  std::vector<float> fill_;
  StoredRange range_;
};

struct RandomErasingOptions final : TransformOptions {
  Factor factor{{1}}, scale{{0.02, 0.33}};
  std::optional<double> fill_value;
  ValueRange value_range;

  static Keys<RandomErasingOptions> keys() {
    return Keys<RandomErasingOptions>("random_erasing", "Overwrites a random rectangle.")
        .key("factor", &RandomErasingOptions::factor,
             "The probability of a rectangle, which is drawn at random for each sample: between 0 and factor, or in "
             "[low, high]; [p, p] is always p.",
             between(0, 1))
        .key("scale", &RandomErasingOptions::scale,
             "The rectangle's share of the image: each side is the image's side times the square root of a random "
             "number between 0 and scale, or in [low, high].",
             between(0, 1))
        .key("fill_value", &RandomErasingOptions::fill_value,
             "The value in the rectangle (after all transforms); none: noise, with each value random in value_range.",
             between(-1e6, 1e6))
        .key("value_range", &RandomErasingOptions::value_range, value_range_meaning, between(-1e6, 1e6))
        .shorthand("factor")
        .check([](const RandomErasingOptions& options, const Node& node, Reader& reader) {
          check_factor("factor", options.factor, node, reader);
          check_factor("scale", options.scale, node, reader);
          check_value_range(options.value_range, node, reader);
        });
  }
  void add(const SourceLocation& location, TransformPlan& plan, StatisticsSource&) const override {
    const std::vector<float> fill = fill_value ? stored_fill(*fill_value, plan.affine) : std::vector<float>();
    add_augmentation(
        std::make_shared<Erasing>(from_zero(factor), from_zero(scale), fill, stored_range(value_range, plan.affine)),
        location, plan);
  }
};

}  // namespace

Section random_erasing_section() { return section_of<RandomErasingOptions>(); }

}  // namespace trainctl
