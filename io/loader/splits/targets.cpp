// Writes values, classes, and masks pixel by pixel.
#include "io/loader/splits/targets.h"

#include <algorithm>

#include "core/base/error.h"
#include "io/datasets/images/mask_codec.h"

namespace trainctl {
namespace {

int class_of(std::uint8_t pixel) { return pixel == no_class ? 0 : pixel; }

}  // namespace

void write_target(const Dataset& dataset, std::int64_t number, const float* values, TargetForm form, std::byte* to) {
  const DatasetFacts& facts = dataset.facts();
  auto* floats = reinterpret_cast<float*>(to);
  if (facts.classes == 0) {
    std::copy_n(values, facts.target.count(), floats);
    return;
  }
  require(form == TargetForm::class_number || facts.target.rank() == 0, "classes of positions are numbers");
  switch (form) {
    case TargetForm::class_number:
      dataset.read_labels(number, reinterpret_cast<std::int32_t*>(to));
      break;
    case TargetForm::one_hot:
      std::fill_n(floats, facts.classes, 0.0f);
      floats[dataset.label(number)] = 1;
      break;
    case TargetForm::class_value:
      *floats = static_cast<float>(dataset.label(number));
      break;
    case TargetForm::values:
      break;
  }
}

void write_mask(const std::uint8_t* mask, std::int64_t pixels, std::int64_t classes, TargetForm form, std::byte* to) {
  auto* floats = reinterpret_cast<float*>(to);
  switch (form) {
    case TargetForm::class_number:
      std::transform(mask, mask + pixels, reinterpret_cast<std::int32_t*>(to), class_of);
      break;
    case TargetForm::class_value:
      std::transform(mask, mask + pixels, floats,
                     [](std::uint8_t pixel) { return static_cast<float>(class_of(pixel)); });
      break;
    case TargetForm::one_hot:
      std::fill_n(floats, pixels * classes, 0.0f);
      for (std::int64_t i = 0; i < pixels; ++i) floats[i * classes + class_of(mask[i])] = 1;
      break;
    case TargetForm::values:
      break;
  }
}

void write_mask_weights(const std::uint8_t* mask, std::int64_t pixels, float* to) {
  std::transform(mask, mask + pixels, to, [](std::uint8_t pixel) { return pixel == no_class ? 0.0f : 1.0f; });
}

}  // namespace trainctl
