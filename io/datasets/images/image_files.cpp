// Finds image files and reads them.
#include "io/datasets/images/image_files.h"

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "core/base/file_names.h"
#include "core/base/files.h"
#include "core/base/format.h"
#include "io/datasets/images/image_codec.h"

namespace trainctl {
namespace {

bool is_among(const std::string& text, std::initializer_list<std::string_view> list) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

// The length of a name's ending with its dot; 0 if it has none.
std::size_t ending_length(const std::string& name) {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string::npos || dot == 0 || name[dot - 1] == '/') return 0;
  const std::string_view letters = std::string_view(name).substr(dot + 1);
  const auto is_letter = [](unsigned char c) { return std::isalpha(c) != 0; };
  const bool good = !letters.empty() && letters.size() <= 5 && is_letter(static_cast<unsigned char>(letters[0])) &&
                    std::all_of(letters.begin(), letters.end(), [](unsigned char c) { return std::isalnum(c) != 0; });
  return good ? letters.size() + 1 : 0;
}

// The ending of a file name in lower case: ".jpg" for "cat.JPG".
std::string ending_of(const std::string& name) { return lower_case(name.substr(name.size() - ending_length(name))); }

bool is_image(const std::string& ending) {
  return is_among(ending, {".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp", ".gif", ".bmp", ".dib"});
}

// Whether the file name ends like an image in a format that is not supported.
bool is_other_image(const std::string& ending) {
  return is_among(ending, {".tif", ".tiff", ".avif", ".heic", ".heif", ".jp2", ".jxl", ".ppm", ".pgm", ".pbm"});
}

// Whether a file begins like an image in a supported format.
bool begins_as_image(const std::string& path) {
  if (file_type(path) != FileType::regular) return false;
  const InputFile file(path);
  std::string begin(static_cast<std::size_t>(format_bytes), '\0');
  begin.resize(static_cast<std::size_t>(file.read_some(0, begin.data(), format_bytes)));
  return image_format(begin).has_value();
}

// The name under which a file manager's file is counted: "._*" for "._cat.png".
std::string system_kind(const std::string& name) {
  if (name.starts_with("._")) return "._*";
  return is_among(name, {".DS_Store"}) || name[0] != '.' ? name : ".*";
}

void add_images(const std::string& folder, const std::string& below, ImageListing& listing) {
  for (const FolderEntry& entry : list_folder(folder)) {
    const std::string name = below + entry.name, path = folder + "/" + entry.name, ending = ending_of(entry.name);
    if (is_system_name(entry.name)) {
      ++listing.system[system_kind(entry.name)];
    } else if (entry.type == FileType::folder) {
      add_images(path, name + "/", listing);
    } else if (is_image(ending)) {
      listing.images.push_back(name);
    } else if (is_other_image(ending)) {
      ++listing.others[ending];
    } else if (begins_as_image(path)) {
      if (ending.empty()) listing.images.push_back(name);
      if (!ending.empty()) ++listing.others[ending];
    }
  }
}

// The sum of the counts, and their names: 12 and ".tif, .avif".
std::pair<std::int64_t, std::string> sum_of(const std::map<std::string, std::int64_t>& counts) {
  std::int64_t sum = 0;
  std::string names;
  for (const auto& [name, files] : counts) {
    sum += files;
    names += (names.empty() ? "" : ", ") + name;
  }
  return {sum, names};
}

}  // namespace

bool is_system_name(const std::string& name) {
  return name[0] == '.' ||
         is_among(name, {"Thumbs.db", "thumbs.db", "desktop.ini", "Desktop.ini", "ehthumbs.db", "__MACOSX", "@eaDir"});
}

void ImageListing::add_counts(const ImageListing& other) {
  for (const auto& [ending, files] : other.others) others[ending] += files;
  for (const auto& [name, files] : other.system) system[name] += files;
}

std::string ImageListing::text_of_left_out() const {
  const auto [images_left, endings] = sum_of(others);
  const auto [files, names] = sum_of(system);
  std::string text;
  if (images_left > 0) {
    text = format("{} {} not read ({}); only {} files are", images_left, images_left == 1 ? "image is" : "images are",
                  endings, "JPEG, PNG, WebP, GIF and BMP");
  }
  if (files > 0) {
    text += format("{}{} skipped, which file managers create or which {} hidden ({})", text.empty() ? "" : "; ",
                   files == 1 ? "1 file is" : format("{} files are", files), files == 1 ? "is" : "are", names);
  }
  return text;
}

ImageListing list_images(const std::string& folder) {
  ImageListing listing;
  add_images(folder, "", listing);
  std::sort(listing.images.begin(), listing.images.end());
  return listing;
}

void refuse_no_images(const std::string& folder, const ImageListing& listing) {
  const std::string left_out = listing.text_of_left_out();
  data_error(folder, format("has no {} images", image_formats) + (left_out.empty() ? "" : ": " + left_out),
             listing.others.empty() ? "remove the folder, or put images into it"
                                    : "convert them to JPEG or PNG, or rename those that are");
}

std::string without_ending(const std::string& path) { return path.substr(0, path.size() - ending_length(path)); }

void read_whole_file(const std::string& path, Sample& sample) {
  const InputFile file(path);
  if (file.size() > largest_image_file)
    data_error(path, format("has {} bytes, which is more than is supported", file.size()));
  sample.scratch.resize(static_cast<std::size_t>(file.size()));
  file.read(0, sample.scratch.data(), file.size());
}

void read_image_file(const std::string& path, std::int64_t channels, bool skip_unreadable, Sample& sample) {
  with_remedy(skip_unreadable, "repair or remove it, or set `on_error: skip`", [&] {
    read_whole_file(path, sample);
    decode_sample(sample.scratch.data(), std::ssize(sample.scratch), channels, path, sample);
  });
}

}  // namespace trainctl
