// Chooses images to look at, and distinguishes gray images from images in colours.
#include "run/draft/image_look.h"

#include <algorithm>
#include <cstdint>
#include <set>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/table.h"
#include "io/datasets/dataset.h"
#include "io/datasets/images/image_files.h"

namespace trainctl {

std::vector<std::string> tried_images(const std::vector<std::string>& images) {
  constexpr std::size_t max_tried = 60;
  const std::size_t count = std::min(images.size(), max_tried);
  std::vector<std::string> tried;
  for (std::size_t i = 0; i < count; ++i) tried.push_back(images[i * images.size() / count]);
  return tried;
}

std::string failure_to_read(const std::string& path, Sample& sample) {
  try {
    read_image_file(path, 3, true, sample);
    return "";
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::data) throw;
    return error.what();
  }
}

std::string unreadable_images(const std::vector<std::vector<std::string>>& lists) {
  std::string first;
  std::int64_t others = -1;
  Sample sample;
  for (const std::vector<std::string>& paths : lists) {
    const std::vector<std::string> chosen = tried_images(paths);
    const std::set<std::string> tried(chosen.begin(), chosen.end());
    for (const std::string& path : paths) {
      if (!tried.contains(path) && InputFile(path).size() > 0) continue;
      const std::string failure = failure_to_read(path, sample);
      if (failure.empty()) continue;
      if (first.empty()) first = failure;
      ++others;
    }
  }
  return others > 0 ? format("{}; {} cannot be read, either", first, counted(others, "other")) : first;
}

bool is_gray(const Sample& sample) {
  const auto* values = static_cast<const std::uint8_t*>(sample.values);
  for (std::int64_t i = 0; i < sample.shape.count(); i += 3) {
    if (values[i] != values[i + 1] || values[i] != values[i + 2]) return false;
  }
  return true;
}

}  // namespace trainctl
