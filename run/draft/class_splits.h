// Finds the folders of the classes and of the splits of a data set of files.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "run/draft/draft.h"

namespace trainctl {

// A split, or none.
enum class NamedSplit { none, training, validation, test };

// The split that a folder's name indicates, in upper or lower case and possibly with other words around it: "Training",
// "seg_train", "test_set".
NamedSplit split_named(const std::string& name);

// The folder of a split in a folder; "" if there is none.
std::string split_folder(const std::string& folder, NamedSplit split);

// The names of the folders in a folder, in bytewise order, without those of operating systems.
std::vector<std::string> folders_in(const std::string& folder);
// The path of the only folder in a folder; "" if it has none or several.
std::string only_folder(const std::string& folder);

// Whether a folder, or a folder below it, has files of the data set.
using HasFiles = std::function<bool(const std::string& folder)>;

// The folders of the splits, each with a folder for each class; the last two are "" if there are none.
struct ClassSplits {
  std::string training, validation, test;
};

// Finds the splits in a folder, or in its only folder; without a folder for training, the whole folder is the training
// split.
ClassSplits class_splits(const std::string& folder, const HasFiles& has_files);
// Whether the training split has folders of classes.
bool has_class_splits(const std::string& folder, const HasFiles& has_files);

// The paths, relative to a split, of the files in its class folders, which may be links, in bytewise order. `list`
// returns those in one folder.
std::vector<std::string> files_of_classes(
    const std::string& split, const std::function<std::vector<std::string>(const std::string& folder)>& list);

// The lines of a config's `data` section with the paths of the splits.
std::string splits_text(const DraftRequest& request, const ClassSplits& splits);

}  // namespace trainctl
