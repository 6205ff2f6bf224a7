// Folders of image files: finding them, and reading one.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "io/datasets/dataset.h"

namespace trainctl {

// The images below a folder by their paths relative to it, in bytewise order; links to folders are not followed. Images
// are the files with the usual endings of the formats that are read, and files without an ending whose first bytes are
// those of such a format.
struct ImageListing {
  std::vector<std::string> images;
  std::map<std::string, std::int64_t> others;  // images that are not read: number of files by ending
  std::map<std::string, std::int64_t> system;  // what file managers left, by what it is called: ".DS_Store"

  // The counts of another folder are added to these.
  void add_counts(const ImageListing& other);
  // "2 images are not read (.tif), ...; 3 files are skipped, ... (.DS_Store, ._*)", or an empty text.
  std::string text_of_left_out() const;
};
ImageListing list_images(const std::string& folder);

// Whether a name in a folder of images is that of something which file managers leave there, or which is hidden.
bool is_system_name(const std::string& name);

// Why a listing is empty, and what to do. Throws Error{data}.
[[noreturn]] void refuse_no_images(const std::string& folder, const ImageListing& listing);

// The path without its ending: "deep/cat" for "deep/cat.JPG"; what follows a dot is an ending where it is a letter and
// up to four letters or digits.
std::string without_ending(const std::string& path);

// Reads a whole file into sample.scratch. Throws Error{data} for one that is larger than image files can be.
void read_whole_file(const std::string& path, Sample& sample);

// Reads an image file. Throws Error{data} that names it; the remedy names `on_error: skip` unless that is stated.
void read_image_file(const std::string& path, std::int64_t channels, bool skip_unreadable, Sample& sample);

}  // namespace trainctl
