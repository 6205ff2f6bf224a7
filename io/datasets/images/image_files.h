// Finds and reads image files in folders.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "io/datasets/dataset.h"

namespace trainctl {

// The images in a folder and its subfolders: their paths relative to it, in bytewise order; links to folders are not
// followed. Images are the files with the usual endings of the supported formats, and files without an ending whose
// first bytes are those of such a format.
struct ImageListing {
  std::vector<std::string> images;
  std::map<std::string, std::int64_t> others;  // images of other formats: number of files by ending
  std::map<std::string, std::int64_t> system;  // files of file managers: number by name, such as ".DS_Store"

  // Adds the counts of another folder to these.
  void add_counts(const ImageListing& other);
  // Returns text such as "2 images are not read (.tif), ...; 3 files are skipped, ... (.DS_Store, ._*)", or an empty
  // text.
  std::string text_of_left_out() const;
};
ImageListing list_images(const std::string& folder);

// Whether a file or folder of this name is hidden or was created by a file manager.
bool is_system_name(const std::string& name);

// Throws Error{data} that says why a listing is empty and what to do.
[[noreturn]] void refuse_no_images(const std::string& folder, const ImageListing& listing);

// Returns the path without its ending: "deep/cat" for "deep/cat.JPG". An ending is a dot, a letter and up to four
// letters or digits.
std::string without_ending(const std::string& path);

// Reads a whole file into sample.scratch. Throws Error{data} for files larger than largest_image_file.
void read_whole_file(const std::string& path, Sample& sample);

// Reads an image file. Throws Error{data} that names the file; the remedy suggests `on_error: skip` unless
// `skip_unreadable` is true.
void read_image_file(const std::string& path, std::int64_t channels, bool skip_unreadable, Sample& sample);

}  // namespace trainctl
