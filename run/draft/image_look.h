// Looks at some of the images of a folder.
#pragma once

#include <string>
#include <vector>

namespace trainctl {

struct Sample;

// Up to 60 names, evenly spread over the list.
std::vector<std::string> tried_images(const std::vector<std::string>& images);

// Whether all pixels of an image of three channels are gray.
bool is_gray(const Sample& sample);

}  // namespace trainctl
