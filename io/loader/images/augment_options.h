// The config sections of the augmentations that compute new values, and functions that several of them use.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "io/loader/images/transform_options.h"

namespace trainctl {

// Defined in geometric.cpp, colour.cpp, erasing.cpp, rand_augment.cpp and mixing.cpp.
Section random_rotation_section();
Section random_zoom_section();
Section random_translation_section();
Section random_brightness_section();
Section random_contrast_section();
Section random_erasing_section();
Section rand_augment_section();
Section mixup_section();
Section cutmix_section();

// A factor as in Keras: the bounds of a random number, or one number.
using Factor = OneOrMore<double>;

struct Bounds {
  double low = 0, high = 0;
};
// Returns [low, high] as given; for one number f, [-f, f].
Bounds around_zero(const Factor& factor);
// Returns [low, high] as given; for one number f, [0, f].
Bounds from_zero(const Factor& factor);

// Reports an error unless the factor, the value of `key`, is one number or two numbers in ascending order.
void check_factor(const std::string& key, const Factor& factor, const Node& section, Reader& reader);

// The darkest and the lightest value after all transforms; auto: the values to which the transforms map the stored
// values 0 and 255.
using ValueRange = Auto<std::array<double, 2>>;
inline constexpr const char* value_range_meaning =
    "[low, high] of the values after `transform`; auto: the values to which `transform` maps the bytes 0 and 255.";

// Reports an error if the range is empty.
void check_value_range(const ValueRange& range, const Node& section, Reader& reader);

// A value range in stored values. `from` and `to` have one element for each channel, or one element for all channels.
// If the transforms invert values, `from` is larger than `to`.
struct StoredRange {
  std::vector<float> from, to;

  // The index of a channel in `from` and `to`.
  std::size_t which(std::int64_t channel) const { return from.size() == 1 ? 0 : static_cast<std::size_t>(channel); }
  float low(std::int64_t channel) const { return std::min(from[which(channel)], to[which(channel)]); }
  float high(std::int64_t channel) const { return std::max(from[which(channel)], to[which(channel)]); }
  // The lightest value minus the darkest one.
  float extent(std::int64_t channel) const { return to[which(channel)] - from[which(channel)]; }
};
StoredRange stored_range(const ValueRange& range, const Affine& affine);

// The stored values that become `value` after all transforms.
std::vector<float> stored_fill(double value, const Affine& affine);
// Whether all values are whole numbers from 0 to 255.
bool are_bytes(const std::vector<float>& values);

// Appends an augmentation to the plan.
void add_augmentation(std::shared_ptr<const Augmentation> augmentation, const SourceLocation& location,
                      TransformPlan& plan);

}  // namespace trainctl
