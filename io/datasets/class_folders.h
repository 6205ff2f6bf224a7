// Lists the folders of classes, and the files in a folder and its subfolders.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace trainctl {

// Returns the names of the folders in a folder, including links to folders, in bytewise order, without those that are
// hidden or belong to file managers. Throws Error{data} if there is no folder at the path, for a name that is not
// UTF-8, and for a link that leads nowhere.
std::vector<std::string> class_folders(const std::string& path);

// Returns the paths, relative to a folder, of the files in it and its subfolders whose names are wanted, in bytewise
// order. Links to folders are not followed; names that are hidden or belong to file managers are left out. `is_wanted`
// is called once for each other file.
std::vector<std::string> files_below(const std::string& folder,
                                     const std::function<bool(const std::string& name)>& is_wanted);

}  // namespace trainctl
