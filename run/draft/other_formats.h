// Names the formats of files that trainctl does not read, and how to convert them.
#pragma once

#include <string>

namespace trainctl {

// Throws Error{data} if the path is a file of a usual format for data that trainctl does not read, such as Excel's, or
// a folder with such files.
void refuse_other_formats(const std::string& path);

}  // namespace trainctl
