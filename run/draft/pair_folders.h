// Finds pairs of images: two folders with files of the same names, or a table with two columns of image files.
#pragma once

#include <string>
#include <vector>

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

// Looks for two folders with files of the same names: in the folder, in a folder for each split, with a folder for each
// split in both, or two for each split (train_LR and train_HR); if there are none, in its only folder, and so on. They
// are pairs if their names say so (input and target) or if each image of one resembles the image of the same name in
// the other. With TargetsAre::values all such folders are pairs, with TargetsAre::classes none.
PairSplits pair_splits(const std::string& folder, TargetsAre targets);

// Throws Error{data} that names the folders to choose from if each of several folders in the folder holds pairs.
void refuse_several_pairs(const std::string& folder, TargetsAre targets);

// The names of the columns of images and targets in a .csv file; empty if it has not exactly two columns of image
// files.
struct PairTable {
  std::string image_column, target_column;
  std::vector<std::string> left_out = {};  // further columns, except numbers and names of the lines
  char delimiter = ',';

  bool found() const { return !image_column.empty(); }
};
// With TargetsAre::classes the table has no pairs. `target` is the column that the user has chosen; empty: none.
PairTable pair_table(const std::string& path, TargetsAre targets, const std::string& target);

// "the columns 'a', 'b'": those that are left out.
std::string left_out_text(const PairTable& table);

// Throws Error{data} if the table is no data of image_pairs: if its fields are not separated by commas, if its targets
// are masks, or if it has further columns, which may be the targets, and the names of the two columns are not those of
// pairs. TargetsAre::values says that the images are targets.
void require_pairs(const std::string& path, const PairTable& table, TargetsAre targets);

}  // namespace trainctl
