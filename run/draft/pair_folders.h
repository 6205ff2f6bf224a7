// Finds pairs of images: two folders with files of the same names, or a table with two columns of image files.
#pragma once

#include <string>

#include "io/datasets/dataset.h"
#include "run/draft/draft.h"

namespace trainctl {

// The folders of the images and of their targets.
struct PairFolders {
  std::string images, targets;
  bool by_content = false;  // the folders' names do not tell that they hold pairs; the images do

  bool found() const { return !images.empty(); }
};

// The folders of all splits; those of the last two may be absent.
struct PairSplits {
  PairFolders training, validation, test;
};

// Looks for two folders with files of the same names: in the folder, in a folder for each split, or with a folder for
// each split in both. They are pairs if their names say so (input and target) or if each image of one resembles the
// image of the same name in the other. With TargetsAre::values all such folders are pairs, with TargetsAre::classes
// none.
PairSplits pair_splits(const std::string& folder, TargetsAre targets);

// The names of the columns of images and targets in a .csv file; empty if it has not exactly two columns of image
// files.
struct PairTable {
  std::string image_column, target_column;

  bool found() const { return !image_column.empty(); }
};
PairTable pair_table(const std::string& path);

// Whether two folders hold equally many images of the same names without endings.
bool have_equal_names(const std::string& one, const std::string& other);

}  // namespace trainctl
