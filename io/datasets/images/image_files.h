// Folders of image files: finding them, and reading one.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "io/datasets/dataset.h"

namespace trainctl {

// The images below a folder by their paths relative to it, in bytewise order; links to folders are not followed.
struct ImageListing {
  std::vector<std::string> images;             // .jpg, .jpeg and .png
  std::map<std::string, std::int64_t> others;  // images of other formats: number of files by ending
};
ImageListing list_images(const std::string& folder);

// "12 images of formats that are not read (.tif, .webp)", or an empty text.
std::string text_of_others(const std::map<std::string, std::int64_t>& others);

// The path without its ending: "deep/cat" for "deep/cat.JPG".
std::string without_ending(const std::string& path);

// Reads a whole file into sample.scratch. Throws Error{data} for one that is larger than image files can be.
void read_whole_file(const std::string& path, Sample& sample);

// Reads a JPEG or PNG file. Throws Error{data} that names it; the remedy names `on_error: skip` unless that is stated.
void read_image_file(const std::string& path, std::int64_t channels, bool skip_unreadable, Sample& sample);

}  // namespace trainctl
