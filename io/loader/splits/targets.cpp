// Writes targets: values, classes, and masks.
#include "io/loader/splits/targets.h"

#include <algorithm>

#include "core/base/error.h"
#include "io/datasets/images/mask_codec.h"

namespace trainctl {
namespace {

int class_of(std::uint8_t pixel) { return pixel == no_class ? 0 : pixel; }

}  // namespace

void write_target(const Dataset& dataset, std::int64_t number, const float* values, TargetEncoding encoding,
                  std::byte* to) {
  const DatasetInfo& info = dataset.info();
  auto* floats = reinterpret_cast<float*>(to);
  if (info.classes == 0) {
    std::copy_n(values, info.target.count(), floats);
    return;
  }
  require(encoding == TargetEncoding::class_number || info.target.rank() == 0,
          "classes of positions are not encoded as numbers");
  switch (encoding) {
    case TargetEncoding::class_number:
      dataset.read_labels(number, reinterpret_cast<std::int32_t*>(to));
      break;
    case TargetEncoding::one_hot:
      std::fill_n(floats, info.classes, 0.0f);
      floats[dataset.label(number)] = 1;
      break;
    case TargetEncoding::class_value:
      *floats = static_cast<float>(dataset.label(number));
      break;
    case TargetEncoding::values:
      break;
  }
}

void write_mask(const std::uint8_t* mask, std::int64_t pixels, std::int64_t classes, TargetEncoding encoding,
                std::byte* to) {
  auto* floats = reinterpret_cast<float*>(to);
  switch (encoding) {
    case TargetEncoding::class_number:
      std::transform(mask, mask + pixels, reinterpret_cast<std::int32_t*>(to), class_of);
      break;
    case TargetEncoding::class_value:
      std::transform(mask, mask + pixels, floats,
                     [](std::uint8_t pixel) { return static_cast<float>(class_of(pixel)); });
      break;
    case TargetEncoding::one_hot:
      std::fill_n(floats, pixels * classes, 0.0f);
      for (std::int64_t i = 0; i < pixels; ++i) floats[i * classes + class_of(mask[i])] = 1;
      break;
    case TargetEncoding::values:
      break;
  }
}

void write_mask_weights(const std::uint8_t* mask, std::int64_t pixels, float* to) {
  std::transform(mask, mask + pixels, to, [](std::uint8_t pixel) { return pixel == no_class ? 0.0f : 1.0f; });
}

}  // namespace trainctl
