// Lists the folders of classes.
#pragma once

#include <string>
#include <vector>

namespace trainctl {

// Returns the names of the folders in a folder, including links to folders, in bytewise order, without those that are
// hidden or belong to file managers. Throws Error{data} if there is no folder at the path, for a name that is not
// UTF-8, and for a link that leads nowhere.
std::vector<std::string> class_folders(const std::string& path);

}  // namespace trainctl
