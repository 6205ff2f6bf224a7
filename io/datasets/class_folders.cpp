// Finds folders of classes, and files in folders.
#include "io/datasets/class_folders.h"

#include <algorithm>

#include "core/base/files.h"
#include "io/datasets/arrays/bytes.h"
#include "io/datasets/dataset.h"
#include "io/datasets/images/image_files.h"
#include "io/datasets/utf8_names.h"

namespace trainctl {
namespace {

void add_files(const std::string& folder, const std::string& below,
               const std::function<bool(const std::string& name)>& is_wanted, std::vector<std::string>& files) {
  for (const FolderEntry& entry : list_folder(folder)) {
    if (is_system_name(entry.name)) continue;
    if (entry.type == FileType::folder) {
      add_files(folder + "/" + entry.name, below + entry.name + "/", is_wanted, files);
    } else if (is_wanted(entry.name)) {
      files.push_back(below + entry.name);
    }
  }
}

}  // namespace

std::vector<std::string> class_folders(const std::string& path) {
  std::vector<std::string> names;
  for (const FolderEntry& entry : list_folder(path, data_role)) {
    if (is_system_name(entry.name)) continue;
    const std::string folder = path + "/" + entry.name;
    if (entry.type == FileType::link && file_type(folder) == FileType::absent) {
      data_error(folder, "is a symbolic link to something that does not exist", "repair or remove it");
    }
    if (entry.type == FileType::folder || (entry.type == FileType::link && is_folder(folder))) {
      require_utf8_path(folder);
      names.push_back(entry.name);
    }
  }
  return names;
}

std::vector<std::string> files_below(const std::string& folder,
                                     const std::function<bool(const std::string& name)>& is_wanted) {
  std::vector<std::string> files;
  add_files(folder, "", is_wanted, files);
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace trainctl
