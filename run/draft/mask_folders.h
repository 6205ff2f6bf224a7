// Recognizes a folder of images and a folder of their masks, also in the splits of a data set.
#pragma once

#include <string>

namespace trainctl {

// The folders of the images and of the masks of a split.
struct MaskFolders {
  std::string images, masks;

  bool found() const { return !images.empty(); }
};

// The folders of all splits; those of the last two may be absent.
struct MaskSplits {
  MaskFolders training, validation, test;
};

// Looks for folders with the usual names: images and masks side by side, in a folder for each split, or with a folder
// for each split in both. Returns none if there are no such folders with images.
MaskSplits mask_splits(const std::string& folder);

}  // namespace trainctl
