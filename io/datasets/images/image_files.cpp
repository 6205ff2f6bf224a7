// Finds image files by their endings and reads them.
#include "io/datasets/images/image_files.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <iterator>
#include <string_view>

#include "core/base/files.h"
#include "core/base/format.h"
#include "io/datasets/images/image_codec.h"

namespace trainctl {
namespace {

// The ending of a file name in lower case: ".jpg" for "cat.JPG".
std::string ending_of(const std::string& name) {
  std::string ending = std::filesystem::path(name).extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(), [](unsigned char c) { return std::tolower(c); });
  return ending;
}

bool is_image(const std::string& ending) { return ending == ".jpg" || ending == ".jpeg" || ending == ".png"; }

// Whether the ending is that of an image format that is not read.
bool is_other_image(const std::string& ending) {
  constexpr std::string_view endings[] = {".tif", ".tiff", ".gif", ".bmp", ".webp", ".avif", ".heic", ".jp2", ".jxl"};
  return std::find(std::begin(endings), std::end(endings), ending) != std::end(endings);
}

void add_images(const std::string& folder, const std::string& below, ImageListing& listing) {
  for (const FolderEntry& entry : list_folder(folder)) {
    const std::string name = below + entry.name, ending = ending_of(entry.name);
    if (entry.type == FileType::folder) {
      add_images(folder + "/" + entry.name, name + "/", listing);
    } else if (is_image(ending)) {
      listing.images.push_back(name);
    } else if (is_other_image(ending)) {
      ++listing.others[ending];
    }
  }
}

}  // namespace

ImageListing list_images(const std::string& folder) {
  ImageListing listing;
  add_images(folder, "", listing);
  std::sort(listing.images.begin(), listing.images.end());
  return listing;
}

std::string text_of_others(const std::map<std::string, std::int64_t>& others) {
  std::int64_t count = 0;
  std::string endings;
  for (const auto& [ending, files] : others) {
    count += files;
    endings += (endings.empty() ? "" : ", ") + ending;
  }
  return count == 0 ? "" : format("{} images of formats that are not read ({})", count, endings);
}

std::string without_ending(const std::string& path) { return std::filesystem::path(path).replace_extension().string(); }

void read_whole_file(const std::string& path, Sample& sample) {
  const InputFile file(path);
  if (file.size() > largest_image_file) data_error(path, format("has {} bytes, which is not read", file.size()));
  sample.scratch.resize(static_cast<std::size_t>(file.size()));
  file.read(0, sample.scratch.data(), file.size());
}

void read_image_file(const std::string& path, std::int64_t channels, bool skip_unreadable, Sample& sample) {
  with_remedy(skip_unreadable, "mend or remove it, or set `on_error: skip`", [&] {
    read_whole_file(path, sample);
    decode_sample(sample.scratch.data(), std::ssize(sample.scratch), channels, path, sample);
  });
}

}  // namespace trainctl
