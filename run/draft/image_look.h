// Looks at some of the images of a folder.
#pragma once

#include <string>
#include <vector>

namespace trainctl {

struct Sample;

// Up to 60 names, evenly spread over the list.
std::vector<std::string> tried_images(const std::vector<std::string>& images);

// Reads an image in colour. Returns why it cannot be read, or "".
std::string failure_to_read(const std::string& path, Sample& sample);

// Describes the images in lists of paths that cannot be read: all empty files, and those among tried_images() of each
// list. "a/1.png: is empty; 2 others cannot be read, either", or "" if there are none.
std::string unreadable_images(const std::vector<std::vector<std::string>>& lists);

// Whether all pixels of an image of three channels are gray.
bool is_gray(const Sample& sample);

}  // namespace trainctl
