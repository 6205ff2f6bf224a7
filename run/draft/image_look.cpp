// Looking at images.
#include "run/draft/image_look.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/table.h"
#include "io/datasets/images/image_files.h"

namespace trainctl {
namespace {

constexpr std::size_t most_tried = 60;

// Images here and there in the folder.
std::vector<std::string> tried_images(const std::vector<std::string>& images) {
  const std::size_t count = std::min(images.size(), most_tried);
  std::vector<std::string> tried;
  for (std::size_t i = 0; i < count; ++i) tried.push_back(images[i * images.size() / count]);
  return tried;
}

// Reads an image; returns why it cannot be read, or "".
std::string failure_to_read(const std::string& path, Sample& sample) {
  try {
    read_image_file(path, 3, true, sample);
    return "";
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::data) throw;
    return error.what();
  }
}

bool is_gray(const Sample& sample) {
  const auto* values = static_cast<const std::uint8_t*>(sample.values);
  for (std::int64_t i = 0; i < sample.shape.count(); i += 3) {
    if (values[i] != values[i + 1] || values[i] != values[i + 2]) return false;
  }
  return true;
}

}  // namespace

ImageLook look_at_images(const std::string& folder) {
  ImageLook look;
  std::vector<std::int64_t> sides;
  Sample sample;
  for (const std::string& image : tried_images(list_images(folder).images)) {
    if (!failure_to_read(folder + "/" + image, sample).empty()) continue;
    sides.push_back(std::min(sample.shape[0], sample.shape[1]));
    look.alike = look.alike && sample.shape[0] == sample.shape[1] && sides.back() == sides.front();
    look.gray = look.gray && is_gray(sample);
  }
  if (sides.empty()) {
    throw Error(ErrorKind::data,
                folder + ": none of the images that were tried can be read: " + unreadable_images({folder}));
  }
  std::nth_element(sides.begin(), sides.begin() + std::ssize(sides) / 2, sides.end());
  look.side = sides[sides.size() / 2];
  return look;
}

std::string unreadable_images(const std::vector<std::string>& folders) {
  std::string first;
  std::int64_t others = -1;
  Sample sample;
  for (const std::string& folder : folders) {
    if (folder.empty()) continue;
    const std::vector<std::string> images = list_images(folder).images, tried = tried_images(images);
    for (const std::string& image : images) {
      const std::string path = folder + "/" + image;
      // Both lists have one order.
      const bool decodes = std::binary_search(tried.begin(), tried.end(), image);
      if (!decodes && InputFile(path).size() > 0) continue;
      const std::string failure = failure_to_read(path, sample);
      if (failure.empty()) continue;
      if (first.empty()) first = failure;
      ++others;
    }
  }
  return others > 0 ? format("{}; {} cannot be read, either", first, counted(others, "other")) : first;
}

}  // namespace trainctl
