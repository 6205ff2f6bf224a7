// Chooses images to look at, and tells gray from colours.
#include "run/draft/image_look.h"

#include <algorithm>
#include <cstdint>

#include "io/datasets/dataset.h"

namespace trainctl {

std::vector<std::string> tried_images(const std::vector<std::string>& images) {
  constexpr std::size_t max_tried = 60;
  const std::size_t count = std::min(images.size(), max_tried);
  std::vector<std::string> tried;
  for (std::size_t i = 0; i < count; ++i) tried.push_back(images[i * images.size() / count]);
  return tried;
}

bool is_gray(const Sample& sample) {
  const auto* values = static_cast<const std::uint8_t*>(sample.values);
  for (std::int64_t i = 0; i < sample.shape.count(); i += 3) {
    if (values[i] != values[i + 1] || values[i] != values[i + 2]) return false;
  }
  return true;
}

}  // namespace trainctl
