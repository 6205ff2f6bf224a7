// Functions that the options of several augmentations share.
#include "io/loader/images/augment_options.h"

#include <algorithm>
#include <cmath>

#include "core/base/format.h"

namespace trainctl {
namespace {

const SourceLocation& location_of(const Node& section, const std::string& key) {
  const Node* value = section.is_map() ? section.find(key) : nullptr;
  return value ? value->location : section.location;
}

}  // namespace

Bounds around_zero(const Factor& factor) {
  if (factor.items.size() == 2) return {factor.items[0], factor.items[1]};
  const double bound = std::abs(factor.items[0]);
  return {-bound, bound};
}

Bounds from_zero(const Factor& factor) {
  return factor.items.size() == 2 ? Bounds{factor.items[0], factor.items[1]} : Bounds{0, factor.items[0]};
}

void check_factor(const std::string& key, const Factor& factor, const Node& section, Reader& reader) {
  const std::vector<double>& items = factor.items;
  if (items.size() == 1 || (items.size() == 2 && items[0] <= items[1])) return;
  reader.error(location_of(section, key), format("{} needs one number, or [low, high]", key));
}

void check_value_range(const ValueRange& range, const Node& section, Reader& reader) {
  if (range.is_auto() || (*range.given)[0] < (*range.given)[1]) return;
  reader.error(location_of(section, "value_range"), "value_range needs [low, high] with low below high");
}

StoredRange stored_range(const ValueRange& range, const Affine& affine) {
  if (range.is_auto()) return {{0}, {255}};
  return {stored_fill((*range.given)[0], affine), stored_fill((*range.given)[1], affine)};
}

std::vector<float> stored_fill(double value, const Affine& affine) {
  std::vector<float> values;
  for (const double stored : affine.stored(value)) {
    // A value that differs from a whole number by a rounding error only is rounded to it.
    const double nearest = std::round(stored);
    values.push_back(static_cast<float>(std::abs(stored - nearest) < 1e-6 ? nearest : stored));
  }
  return values;
}

bool are_bytes(const std::vector<float>& values) {
  return std::all_of(values.begin(), values.end(),
                     [](float value) { return value >= 0 && value <= 255 && value == std::floor(value); });
}

void add_augmentation(std::shared_ptr<const Augmentation> augmentation, const SourceLocation& location,
                      TransformPlan& plan) {
  GeometryStep step{GeometryStep::Kind::augmentation};
  step.location = location;
  step.augmentation = std::move(augmentation);
  plan.augment.push_back(std::move(step));
}

}  // namespace trainctl
