// What the images of a folder look like, and which of them cannot be read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace trainctl {

// What a look at some of the images tells.
struct ImageLook {
  std::int64_t side = 0;  // the shorter one, in the middle of those that were looked at
  bool alike = true;      // all are squares of this side
  bool gray = true;
};

// Decodes images here and there in the folder. Throws Error{data} if none of them can be read.
ImageLook look_at_images(const std::string& folder);

// Names the images that cannot be read in the folders, of which some may be "": all empty files, and those among the
// images that look_at_images() tries. "a/1.png: is empty; 2 others cannot be read, either", or "" if there are none.
std::string unreadable_images(const std::vector<std::string>& folders);

}  // namespace trainctl
