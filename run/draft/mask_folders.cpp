// Finds folders of images and masks by their names.
#include "run/draft/mask_folders.h"

#include <vector>

#include "core/base/file_names.h"
#include "core/base/files.h"
#include "io/datasets/images/image_files.h"
#include "run/draft/class_splits.h"

namespace trainctl {
namespace {

bool has_image_files(const std::string& folder) {
  return !folder.empty() && is_folder(folder) && !list_images(folder).images.empty();
}

// The images and masks that lie side by side in a folder.
MaskFolders folders_in(const std::string& folder) {
  static const std::vector<std::string> images{"images", "image", "imgs", "img"};
  static const std::vector<std::string> masks{"masks",        "mask",          "labels",      "annotations",
                                              "segmentation", "segmentations", "ground_truth"};
  const MaskFolders found{first_in_folder(folder, images), first_in_folder(folder, masks)};
  return has_image_files(found.images) && has_image_files(found.masks) ? found : MaskFolders();
}

// The folder of a split in a folder; "" if there is none.
std::string folder_of(const std::string& folder, NamedSplit split) {
  for (const FolderEntry& entry : list_folder(folder)) {
    const std::string path = folder + "/" + entry.name;
    if (split_named(entry.name) == split && is_folder(path)) return path;
  }
  return "";
}

}  // namespace

MaskSplits mask_splits(const std::string& folder) {
  MaskSplits splits;
  const MaskFolders all = folders_in(folder);
  const auto split = [&](NamedSplit name) -> MaskFolders {
    if (!all.found()) {
      const std::string path = folder_of(folder, name);
      return path.empty() ? MaskFolders() : folders_in(path);
    }
    const MaskFolders inner{folder_of(all.images, name), folder_of(all.masks, name)};
    return has_image_files(inner.images) && has_image_files(inner.masks) ? inner : MaskFolders();
  };
  splits.training = split(NamedSplit::training);
  if (!splits.training.found()) return {all, {}, {}};
  splits.validation = split(NamedSplit::validation);
  splits.test = split(NamedSplit::test);
  return splits;
}

}  // namespace trainctl
