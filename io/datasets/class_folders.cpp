// Finds the folders of classes in a folder.
#include "io/datasets/class_folders.h"

#include "core/base/files.h"
#include "io/datasets/arrays/bytes.h"
#include "io/datasets/dataset.h"
#include "io/datasets/images/image_files.h"
#include "io/datasets/utf8_names.h"

namespace trainctl {

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

}  // namespace trainctl
